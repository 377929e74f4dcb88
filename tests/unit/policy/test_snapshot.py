import hashlib
import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compactuary.errors import InputError
from policy.role_table import RoleTable
from policy.snapshot import Found, Snapshot, Standard, TableKey, content_hash


@st.composite
def role_tables(draw, role="main", unit="tool_calls"):
    ages = draw(st.integers(1, 12))
    hazards = draw(st.lists(st.floats(0, 0.9), min_size=ages, max_size=ages))
    means = draw(st.lists(st.floats(1, 500), min_size=ages, max_size=ages))
    counts = draw(st.lists(st.integers(1, 10**6), min_size=ages, max_size=ages))
    survival, share = [], 1.0
    for hazard in hazards:
        share *= 1 - hazard
        survival.append(share)
    return RoleTable(
        role=role,
        unit=unit,
        turns=draw(st.integers(1, 10**6)),
        tail_age=ages - 1,
        at_risk=tuple(counts),
        ends=tuple(counts),
        expected=tuple(means),
        lower=tuple(1.0 for _ in means),
        upper=tuple(m * 2 for m in means),
        survival=tuple(survival),
        continue_probability=tuple(1 - hazard for hazard in hazards),
        level=0.9,
        requests_per_call=draw(st.none() | st.floats(0.1, 10)),
        source=draw(st.sampled_from(["role", "all_roles", "standard"])),
        observed_age=draw(st.none() | st.integers(0, ages - 1)),
        credibility=tuple(
            draw(st.just([]) | st.lists(st.floats(0, 1), min_size=ages, max_size=ages))
        ),
        effective_ends=tuple(map(float, draw(st.just([]) | st.just(counts)))),
        half_life_turns=draw(st.none() | st.just(200.0)),
    )


KEYS = st.builds(
    TableKey,
    st.sampled_from(["raw", "portfolio", "decisive", "fallback"]),
    st.sampled_from(["tool_calls", "requests"]),
    st.text(min_size=1, max_size=8),
    st.sampled_from(["", "m"]),
)


@st.composite
def tables_by_key(draw):
    keys = draw(st.sets(KEYS, max_size=5))
    return {key: draw(role_tables(key.role, key.unit)) for key in keys}


def brute_survival(table, age):
    """S(age) by stepping through the table and then the constant hazard."""
    share = table.survival[min(age, table.tail_age)]
    for _ in range(age - table.tail_age):
        share *= 1 - 1 / table.expected[-1]
    return share


@given(role_tables(), st.integers(0, 20), st.integers(0, 30))
def test_probability_is_the_ratio_of_survivals(table, age, remaining):
    found = table.probability_more_than(age, remaining)
    assert 0 <= found <= 1
    if brute_survival(table, age) > 1e-12:
        ratio = brute_survival(table, age + remaining) / brute_survival(table, age)
        assert found == pytest.approx(ratio, abs=1e-9)


@given(role_tables(), st.integers(0, 20))
def test_median_is_the_first_remainder_that_at_most_half_exceed(table, age):
    median = table.median(age)
    assert median >= 1
    assert table.probability_more_than(age, median) <= 0.5 + 1e-6
    assert table.probability_more_than(age, median - 1) > 0.5 - 1e-6


def test_median_by_hand(make_table):
    table = make_table([4.0, 4.0, 4.0], survival=(0.9, 0.6, 0.45))
    assert table.median(0) == 2  # .45 is exactly half of .9
    assert table.median(1) == 3  # .45 · .75² = .253 ≤ .3, one step earlier .3375
    assert table.median(2) == 3  # .75³ = .42
    assert table.median(50) == 3


def test_median_of_a_tail_that_ends_at_once(make_table):
    table = make_table([1.0], survival=(1.0,))
    assert (table.median(0), table.median(9)) == (1, 1)
    assert table.probability_more_than(0, 1) == 0
    assert table.probability_more_than(0, 0) == 1


def test_a_role_that_never_calls_has_a_finite_answer(make_table):
    table = make_table([2.0], survival=(0.0,))
    assert table.median(0) == 1
    assert table.probability_more_than(0, 1) == 0.5


def test_beyond_the_tail_its_values_hold_and_the_hazard_is_constant(make_table):
    table = make_table([9.0, 8.0])
    inside, beyond = table.remaining(1), table.remaining(2)
    assert (inside.expected, inside.extrapolated, inside.continue_probability) == (8, False, 0.75)
    assert (beyond.expected, beyond.extrapolated, beyond.continue_probability) == (8, True, 0.875)
    assert (beyond.at_risk, beyond.ends) == (39, 10)
    assert (beyond.lower, beyond.upper) == pytest.approx((7.2, 9.6))


@given(role_tables())
def test_payload_round_trip_through_json(table):
    text = json.dumps(table.to_payload(), allow_nan=False)
    assert RoleTable.from_payload(json.loads(text)) == table


@given(tables_by_key(), st.integers(0, 10**9))
def test_the_hash_ignores_version_time_and_order(tables, version):
    one = Snapshot.of(version, "2026-11-30T12:00:00Z", tables)
    backwards = dict(reversed(tables.items()))
    other = Snapshot.of(version + 1, "2027-01-01T00:00:00Z", backwards)
    assert other.content_hash == one.content_hash


@given(tables_by_key())
def test_every_table_stands_where_its_key_says(tables):
    snapshot = Snapshot.of(1, "2026-11-30T12:00:00Z", tables)
    for key, table in tables.items():
        if key.shelf == "decisive":
            assert snapshot.decisive[key.unit][key.role, key.model] == table
        elif key.shelf == "portfolio":
            assert snapshot.portfolio[key.unit].unit == key.unit
    raw = {(key.unit, key.role) for key in tables if key.shelf == "raw"}
    assert {(unit, role) for unit, of in snapshot.tables.items() for role in of} == raw
    fallback = {(key.unit, key.role) for key in tables if key.shelf == "fallback"}
    assert {(unit, role) for unit, of in snapshot.fallback.items() for role in of} == fallback


def test_the_hash_tells_changed_tables_apart(make_table, make_snapshot):
    one = make_snapshot(make_table([9.0, 8.0]))
    assert one.content_hash != make_snapshot(make_table([9.0, 8.1])).content_hash
    assert one.content_hash != make_snapshot(make_table([9.0, 8.0], role="qa")).content_hash
    table = make_table([9.0])
    shelves = {
        Snapshot.of(1, "", {TableKey(shelf, "tool_calls", "main"): table}).content_hash
        for shelf in ("raw", "portfolio", "decisive", "fallback")
    }
    assert len(shelves) == 4


def test_the_hash_is_over_the_hashes_of_the_tables_in_any_order():
    digests = {
        TableKey("raw", "requests", "main"): "aa",
        TableKey("decisive", "tool_calls", "main", "m"): "bb",
    }
    other_way_round = dict(reversed(digests.items()))
    lines = b"decisive\ttool_calls\tmain\tm\tbb\nraw\trequests\tmain\t\taa"
    expected = hashlib.sha256(lines).hexdigest()
    assert content_hash(digests) == content_hash(other_way_round) == expected
    assert Snapshot.of(1, "", {}, digests).content_hash == expected


def test_whole_floats_may_come_back_as_integers(make_table):
    table = make_table([9.0, 8.0])
    assert RoleTable.from_payload(table.to_payload() | {"expected": [9, 8]}) == table


@pytest.mark.parametrize("key", ["role", "turns", "survival"])
def test_a_missing_key_is_named(make_table, key):
    payload = make_table([9.0]).to_payload()
    del payload[key]
    with pytest.raises(InputError, match=key):
        RoleTable.from_payload(payload)


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"at_risk": (1,)}, "at_risk"),
        ({"lower": (math.nan, 1.0)}, "lower"),
        ({"upper": (math.inf, 1.0)}, "upper"),
        ({"level": 1.5}, "level"),
        ({"continue_probability": (0.5, 1.5)}, "continue_probability"),
        ({"survival": (0.4, 0.6)}, "survival"),
        ({"survival": (1.1, 0.6)}, "survival"),
        ({"unit": "tokens"}, "unit"),
        ({"requests_per_call": 0.0}, "requests_per_call"),
        ({"credibility": (0.5,)}, "credibility"),
        ({"credibility": (0.5, 1.5)}, "credibility"),
        ({"effective_ends": (1.0, -1.0)}, "effective_ends"),
    ],
)
def test_an_impossible_table_is_refused(make_table, changes, field):
    with pytest.raises(InputError) as caught:
        make_table([9.0, 8.0], **changes)
    assert caught.value.where.endswith(f".main.{field}")
    with pytest.raises(InputError, match=r"main\.expected: .*below 1"):
        make_table([9.0, 0.5])


def test_lookup_goes_from_role_on_model_to_role_to_all_roles(make_table, make_snapshot):
    on_model, main = make_table([9.0], role="main on m"), make_table([7.0])
    everyone = make_table([5.0], role="*")
    snapshot = make_snapshot(main, models=[("main", "m", on_model)], portfolio=everyone)
    assert snapshot.lookup("tool_calls", "main", "m") == Found(on_model, (main, everyone), None)
    for model in ("other", "", None):
        assert snapshot.lookup("tool_calls", "main", model) == Found(main, (everyone,), None)
    assert snapshot.lookup("tool_calls", "stranger", "m") == Found(everyone, (), None)
    assert snapshot.lookup("requests", "main", "m") is None
    assert make_snapshot(main).lookup("tool_calls", "main") == Found(main, (), None)
    assert make_snapshot(main).lookup("tool_calls", "stranger") is None


def test_lookup_takes_the_fallback_of_the_name_also_behind_a_project(make_table):
    talks, works = make_table([20.0], role="*"), make_table([4.0], role="*")
    standard = {
        ("tool_calls", "main"): Standard("standard", 2000),
        ("tool_calls", ""): Standard("standard", 300),
        ("requests", ""): Standard("standard", 100),
    }
    kept = {
        TableKey("fallback", "tool_calls", "main"): talks,
        TableKey("fallback", "tool_calls"): works,
        TableKey("fallback", "requests"): works,
    }
    snapshot = Snapshot.of(1, "", kept, standard=standard)
    for role in ("main", "project/main", "a/b/main"):
        found = snapshot.lookup("tool_calls", role)
        assert (found.table is talks, found.standard.turns) == (True, 2000)
    for role in ("scout", "main/scout", "mainly", "main "):
        found = snapshot.lookup("tool_calls", role)
        assert (found.table is works, found.standard.turns) == (True, 300)
    # A unit without a fallback of that name has the one for every other.
    assert snapshot.lookup("requests", "main").standard.turns == 100


def test_printed_tables_never_decide(make_table):
    kept = {
        TableKey("raw", "tool_calls", "main"): make_table([9.0]),
        TableKey("portfolio", "tool_calls"): make_table([5.0], role="*"),
    }
    assert Snapshot.of(1, "", kept).lookup("tool_calls", "main") is None


def test_a_blended_table_says_what_is_its_own(make_table):
    table = make_table(
        [9.0, 8.0, 7.0],
        observed_age=1,
        credibility=(0.9, 0.5, 0.0),
        effective_ends=(27.0, 3.0, 0.0),
    )
    assert [table.remaining(age).extrapolated for age in range(4)] == [False, False, True, True]
    assert [table.remaining(age).credibility for age in (0, 1, 2, 99)] == [0.9, 0.5, 0.0, 0.0]
    assert [table.remaining(age).effective_ends for age in (0, 1, 99)] == [27, 3, 0]
    raw = make_table([9.0]).remaining(0)
    assert (raw.credibility, raw.effective_ends) == (1, 10)

import hashlib
import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compactuary.errors import InputError
from policy.snapshot import RoleTable, Snapshot, content_hash


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
    )


@st.composite
def snapshots(draw):
    units = draw(st.sets(st.sampled_from(["tool_calls", "requests"])))
    roles = draw(st.sets(st.text(min_size=1, max_size=8), max_size=3))
    tables = {unit: {role: draw(role_tables(role, unit)) for role in roles} for unit in units}
    portfolio = {unit: draw(role_tables("*", unit)) for unit in units}
    return Snapshot.of(draw(st.integers(0, 10**9)), "2026-11-30T12:00:00Z", tables, portfolio)


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


@given(snapshots())
def test_payload_round_trip_through_json(snapshot):
    for roles in snapshot.tables.values():
        for table in roles.values():
            text = json.dumps(table.to_payload(), allow_nan=False)
            assert RoleTable.from_payload(json.loads(text)) == table


@given(snapshots())
def test_the_hash_ignores_version_and_time(snapshot):
    other = Snapshot.of(
        snapshot.version + 1, "2027-01-01T00:00:00Z", snapshot.tables, snapshot.portfolio
    )
    assert other.content_hash == snapshot.content_hash


def test_the_hash_tells_changed_tables_apart(make_table, make_snapshot):
    one = make_snapshot(make_table([9.0, 8.0]))
    assert one.content_hash != make_snapshot(make_table([9.0, 8.1])).content_hash
    assert one.content_hash != make_snapshot(make_table([9.0, 8.0], role="qa")).content_hash


def test_the_hash_is_over_the_hashes_of_the_tables_in_any_order():
    digests = {("requests", "main"): "aa", ("tool_calls", "main"): "bb"}
    other_way_round = dict(reversed(digests.items()))
    expected = hashlib.sha256(b"requests\tmain\taa\ntool_calls\tmain\tbb").hexdigest()
    assert content_hash(digests) == content_hash(other_way_round) == expected
    assert Snapshot.of(1, "", {}, {}, digests).content_hash == expected


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
    ],
)
def test_an_impossible_table_is_refused(make_table, changes, field):
    with pytest.raises(InputError) as caught:
        make_table([9.0, 8.0], **changes)
    assert caught.value.where.endswith(f".main.{field}")
    with pytest.raises(InputError, match=r"main\.expected: .*below 1"):
        make_table([9.0, 0.5])


def test_lookup_falls_back_to_all_roles_and_then_to_none(make_table, make_snapshot):
    main, idle = make_table([9.0]), make_table([3.0], role="idle", ends=0)
    everyone = make_table([5.0], role="*")
    snapshot = make_snapshot(main, idle, portfolio=everyone)
    assert snapshot.lookup("tool_calls", "main") == (main, "role")
    assert snapshot.lookup("tool_calls", "idle") == (everyone, "all_roles")
    assert snapshot.lookup("tool_calls", "stranger") == (everyone, "all_roles")
    assert snapshot.lookup("requests", "main") == (None, "none")
    assert make_snapshot(idle).lookup("tool_calls", "idle") == (None, "none")

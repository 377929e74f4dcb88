"""Parameters: what stands in, look-ups, and the way through JSON."""

import json

import pytest

from compactuary.errors import InputError
from policy.parameters import ASSUMED, CompactionParameters, Parameter, Parameters
from policy.role_table import RoleTable
from policy.snapshot import Snapshot, TableKey

LEARNED = Parameters(
    role="main",
    model="m",
    growth_tokens=Parameter(1464.5, "role", 1439, 0.99, 859.0, 475.0, 1601.0),
    pauses=((60.0, 0.6), (300.0, 0.25), (3600.0, 0.1)),
    compactions={
        "summary": CompactionParameters(
            context_after_tokens=Parameter(50_000.0, "model", 2, 0.5, 49_000.0, 48_000.0, 51_000.0),
            observed_call={"read_tokens": 150_000.0, "output_tokens": 5000.0},
        ),
        "clear": CompactionParameters("clear"),
    },
)


def test_what_is_assumed_are_the_medians_of_real_compactions():
    """The model, §3: P = 28k, X′ = 51k, S + R = 5k; §4: 1.1k growth. The rest is off."""
    summary = ASSUMED.compaction()
    assert ASSUMED.prefix_tokens == Parameter(28_000)
    assert summary.context_after_tokens == Parameter(51_000)
    assert summary.cached_after_tokens == Parameter(28_000)
    assert summary.summary_output_tokens == Parameter(5_000)
    assert summary.rework_tokens == Parameter(0.0)
    assert ASSUMED.growth_tokens == ASSUMED.first_growth_tokens == Parameter(1_100)
    off = ("miss_probability", "resume_probability", "gap_seconds", "requests_after_turn")
    assert all(getattr(ASSUMED, name) == Parameter(0.0) for name in off)


def test_the_survival_of_pauses_is_a_step_curve():
    told = [LEARNED.pause_exceeds(seconds) for seconds in (0, 59, 60, 299.9, 300, 1e9)]
    assert told == [1.0, 1.0, 0.6, 0.6, 0.25, 0.1]
    assert ASSUMED.pause_exceeds(300) is None


def test_the_source_is_the_closest_level():
    assert (ASSUMED.source, LEARNED.source) == ("assumed", "model")
    assert Parameters(gap_seconds=Parameter(1.0, "all_roles")).source == "all_roles"


def test_an_unknown_strategy_is_taken_for_a_summary():
    assert LEARNED.compaction("sliding window") is LEARNED.compactions["summary"]
    assert LEARNED.compaction("clear").strategy == "clear"


def test_through_json_and_back():
    assert Parameters.from_payload(json.loads(json.dumps(LEARNED.to_payload()))) == LEARNED
    assert Parameters.from_payload(json.loads(json.dumps(ASSUMED.to_payload()))) == ASSUMED


@pytest.mark.parametrize("key", ["growth_tokens", "pauses", "compactions"])
@pytest.mark.parametrize("wrong", [None, 7, {"other": 1}])
def test_what_is_no_parameters_is_refused(key, wrong):
    with pytest.raises(InputError, match="are not stored parameters"):
        Parameters.from_payload(LEARNED.to_payload() | {key: wrong})


def test_described_for_people():
    told = LEARNED.described("main", "m")
    assert (told["role"], told["model"], told["source"]) == ("main", "m", "model")
    assert told["growth_tokens"]["observations"] == 1439
    assert told["pauses"][1] == {"seconds": 300.0, "probability": 0.25}
    assert told["cold_probability"] == {"300": 0.25, "3600": 0.1}
    assert [one["strategy"] for one in told["compactions"]] == ["summary", "clear"]
    unknown = ASSUMED.described("nobody")
    assert (unknown["role"], unknown["model"], unknown["source"]) == ("nobody", None, "assumed")
    assert json.loads(json.dumps(told)) == told


def parameters(role, tokens):
    return Parameters(role, growth_tokens=Parameter(tokens))


def place(role, model="", shelf="parameters"):
    return TableKey(shelf, "", role, model)


@pytest.fixture
def snapshot():
    return Snapshot.of(
        1,
        "",
        {},
        parameters={
            place("main"): parameters("main", 1),
            place("main", "m"): parameters("main", 2),
            place("main", shelf="parameters_fallback"): parameters("", 3),
            place("", shelf="parameters_fallback"): parameters("", 4),
        },
    )


@pytest.mark.parametrize(
    ("role", "model", "found"),
    [
        ("main", "m", 2),
        ("main", "other", 1),
        ("main", None, 1),
        ("shop/main", None, 3),
        ("scout", "m", 4),
        ("", None, 4),
    ],
)
def test_the_snapshot_goes_from_model_to_role_to_its_kind(snapshot, role, model, found):
    assert snapshot.parameters_of(role, model).growth_tokens.value == found


def test_without_a_fallback_it_is_assumed():
    assert Snapshot.of(1, "", {}).parameters_of("main") is ASSUMED


def test_the_hash_is_over_parameters_too(snapshot):
    again = Snapshot.of(1, "", {}, parameters={place("main"): parameters("main", 1)})
    assert (
        len({snapshot.content_hash, again.content_hash, Snapshot.of(1, "", {}).content_hash}) == 3
    )


def test_a_table_is_no_parameters():
    with pytest.raises(InputError, match="not a stored table"):
        RoleTable.from_payload(LEARNED.to_payload())

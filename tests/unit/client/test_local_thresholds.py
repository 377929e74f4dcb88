import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.schemas import ThresholdsQuery
from compactuary import local_thresholds
from compactuary.errors import InputError
from compactuary.local_thresholds import decide_locally, past_limit, thresholds_from
from compactuary.threshold_shelf import GIVEN
from policy import guards, sizes
from policy.thresholds import Thresholds


@pytest.mark.parametrize(
    ("calls", "context_tokens", "decision"),
    [
        (0, 189_999, "wait"),  # null is never
        (1, 120_000, "wait"),  # round(0.5) = 0 requests: never
        (2, 119_999, "wait"),
        (2, 120_000, "compact"),
        (3, 120_000, "compact"),  # round(1.5) = 2
        (3, 90_000, "wait"),
        (4, 90_001, "compact"),
        (1000, 90_001, "compact"),  # the last one holds beyond
        (0, 190_000, "wait"),  # exactly filling the window is within it
        (0, 190_001, "compact"),
    ],
)
def test_a_call_by_requests_made(document, calls, context_tokens, decision):
    assert decide_locally(thresholds_from(document), calls, context_tokens).decision == decision


@pytest.mark.parametrize(
    ("at", "idle_seconds", "smallest"),
    [
        ("turn_end", None, 80_000),
        ("resume", None, 60_000),
        ("idle", 9, None),
        ("idle", 10, 70_000),
        ("idle", 239, 70_000),
        ("idle", 240, 55_000),
        ("idle", None, 55_000),  # just before the cache expires
    ],
)
def test_other_moments_have_thresholds_of_their_own(document, at, idle_seconds, smallest):
    found = thresholds_from(document)

    def say(tokens):
        return decide_locally(found, 9, tokens, at=at, idle_seconds=idle_seconds).decision

    if smallest is None:
        assert say(180_000) == "wait"
    else:
        assert (say(smallest - 1), say(smallest)) == ("wait", "compact")


def test_guards_go_first(document):
    document |= {"at_call": [0], "at_turn_end": 0}
    found = thresholds_from(document)
    assert decide_locally(found, 0, 50_001).decision == "compact"
    assert decide_locally(found, 0, 50_000).decision == "wait"
    assert decide_locally(found, 0, 60_000, useless_compactions=1).decision == "compact"
    assert decide_locally(found, 0, 60_000, useless_compactions=2).decision == "wait"
    assert decide_locally(found, 0, 200_000, useless_compactions=2).decision == "compact"
    assert (
        decide_locally(found, 0, 200_000, at="turn_end", useless_compactions=2).decision == "wait"
    )


def test_an_unknown_moment_is_refused(document):
    with pytest.raises(InputError, match="at: is unknown"):
        decide_locally(thresholds_from(document), 0, 60_000, at="lunch")


TOKENS = st.none() | st.floats(0, 1e6)


@given(
    st.lists(TOKENS, min_size=1, max_size=6),
    TOKENS,
    TOKENS,
    st.lists(st.tuples(st.integers(0, 500), TOKENS), max_size=4, unique_by=lambda one: one[0]),
    st.none() | st.floats(1, 500),
    st.sampled_from(["call", "turn_end", "resume", "idle"]),
    st.integers(0, 9),
    st.none() | st.floats(0, 600),
)
def test_look_ups_are_the_policy_s_own(calls, end, resume, idle, again, at, requests, seconds):
    theirs = Thresholds("r", tuple(calls), end, resume, tuple(sorted(idle)), again)
    served = json.loads(json.dumps(theirs.to_payload()))
    served |= {"requests_per_call": 1.0, "hard_limit_tokens": None}
    assert thresholds_from(served).at(at, requests, seconds) == theirs.at(at, requests, seconds)


def test_what_is_assumed_is_what_the_service_assumes():
    assert local_thresholds.GROWTH_TOKENS == sizes.GROWTH_TOKENS
    assert local_thresholds.SUMMARY_OUTPUT_TOKENS == sizes.SUMMARY_OUTPUT_TOKENS
    assert local_thresholds.USELESS_IN_A_ROW == guards.USELESS_IN_A_ROW


def test_everything_thresholds_depend_on_is_asked_for():
    assert {*GIVEN} == {*ThresholdsQuery.model_fields} - {"model", "context_tokens"}


@given(st.integers(0, 300_000), st.integers(1, 300_000))
def test_the_limit_of_a_window_is_the_policy_s(context_tokens, window_tokens):
    theirs = guards.hard_limit(context_tokens, window_tokens)
    assert past_limit(context_tokens, window_tokens) is theirs


@pytest.mark.parametrize(
    "change",
    [
        {"at_call": []},
        {"at_call": None},
        {"at_call": ["1"]},
        {"at_call": [True]},
        {"at_call": [-1]},
        {"at_turn_end": float("nan")},
        {"at_idle": [[1]]},
        {"requests_per_call": None},
        {"requests_per_call": float("inf")},
        {"hard_limit_tokens": "x"},
        {"setting": [1]},
        {"setting": {"context_after_tokens": "x"}},
        {"rule": None},
    ],
)
def test_what_is_no_thresholds_is_refused(document, change):
    with pytest.raises(InputError, match="Fetch the thresholds again"):
        thresholds_from(document | change)


@pytest.mark.parametrize("document", [None, [], "x", 1, {}])
def test_another_document_is_refused(document):
    with pytest.raises(InputError):
        thresholds_from(document)

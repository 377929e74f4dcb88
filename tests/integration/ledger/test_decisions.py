"""The decision log in the ledger: written once, and joined to what turns then did."""

import pytest
from sqlalchemy import Engine, func, select

from ledger.database import reading, writing
from ledger.decisions import DecisionMade, Outcome, read_decisions, write_decisions
from ledger.events import RequestMade, TurnReached, TurnStarted
from ledger.recording import record
from ledger.schema import decisions
from ledger.usage import Usage
from ledger.versions import current_version


def made(decision_id="d", **more):
    """Make a decision with C = 12, s = 2, and requests that are 0.9 of the calls."""
    known = dict.fromkeys(DecisionMade._fields) | {
        "decision_id": decision_id,
        "at_ms": 1000,
        "turn_id": "t",
        "session_id": "s",
        "role": "main",
        "unit": "tool_calls",
        "calls": 0,
        "decision": "wait",
        "would_decide": "wait",
        "rule": "break-even",
        "reason": "does_not_pay",
        "moment": "call",
        "mode": "enforce",
        "expected_remaining_calls": 10.0,
        "expected_remaining_requests": 9.0,
        "continue_probability": 0.75,
        "probability_pays": 1 / 3,
        "break_even_calls": 6.0,
        "cost": 12.0,
        "saving_per_call": 2.0,
        "source": "role",
        "snapshot_version": 7,
        "policy_version": "2",
    }
    return DecisionMade(**known | more)


@pytest.fixture
def outcome_of(ledger: Engine):
    """Return what logs a decision and reads it back with its outcome."""

    def read(**more) -> Outcome | None:
        with writing(ledger) as connection:
            write_decisions(connection, [made(f"{more}", **more)])
        with reading(ledger) as connection:
            found = read_decisions(connection, limit=1000)
        (logged,) = (one for one in found if one.decision.decision_id == f"{more}")
        assert logged.decision == made(f"{more}", **more)
        return logged.outcome

    return read


@pytest.fixture
def turn(ledger: Engine):
    """Return what records a turn by the tool calls of each of its requests."""

    def told(*calls, end=None, turn_id="t", session="s", first=0, **started):
        begun = [] if first else [TurnStarted(turn_id, session, session, "test", "main", **started)]
        events = [
            RequestMade(
                f"{turn_id}:{session}:{number}",
                session,
                turn_id,
                number,
                1000 + number,
                "m",
                Usage(output=1),
                tuple((f"{number}:{call}", "Bash") for call in range(many)),
            )
            for number, many in enumerate(calls, start=first)
        ]
        ends = [TurnReached(turn_id, session, end, "told", 9000)] if end else []
        with writing(ledger) as connection:
            record(connection, [*begun, *events, *ends])

    return told


def left(outcome):
    return outcome.status, outcome.calls, outcome.requests


def test_the_columns_are_the_fields_and_hold_no_text_of_a_prompt():
    assert tuple(decisions.columns.keys()) == DecisionMade._fields


def test_a_turn_that_ended_tells_what_remained(turn, outcome_of):
    turn(1, 2, 0, end="ended")
    # Requests by the calls they make: 1, 3, 3. The last is still to come once 3 are made.
    for calls, requests in ((0, 3), (1, 2), (2, 1), (3, 1)):
        outcome = outcome_of(calls=calls)
        assert left(outcome) == ("ended", 3 - calls, requests)
        assert (outcome.ended, outcome.converted) == (True, False)


def test_requests_that_the_question_told_are_believed(turn, outcome_of):
    turn(1, 0, 1, 0, end="ended")
    # After one call the ledger can't tell one request from two.
    assert left(outcome_of(calls=1)) == ("ended", 1, 3)
    assert left(outcome_of(calls=1, requests=2)) == ("ended", 1, 2)


def test_asked_in_requests(turn, outcome_of):
    turn(1, 2, 0, end="ended")
    assert left(outcome_of(unit="requests", calls=1)) == ("ended", 2, 2)
    assert left(outcome_of(unit="requests", calls=3)) == ("ended", 0, 0)
    assert left(outcome_of(unit="requests", calls=5)) == ("ended", None, -2)


def test_a_cut_turn_tells_what_at_least_remained(turn, outcome_of):
    turn(1, 1, 0, end="cut")
    outcome = outcome_of(calls=1)
    assert left(outcome) == ("cut", 1, 2)
    assert not outcome.ended


def test_an_answer_that_asked_for_tools_is_followed_by_a_request(turn, outcome_of):
    turn(1, 1)
    assert left(outcome_of(calls=1)) == ("open", 1, 2)


def test_a_question_may_come_before_the_rows_it_counts(turn, outcome_of):
    turn(1)
    assert left(outcome_of(calls=4)) == ("open", 0, 0)
    turn(0, first=1, end="ended")
    # Closed with fewer calls than the question counted: the turn contradicts it.
    assert left(outcome_of(calls=5)) == ("ended", -4, None)


def test_unrecorded_requests_are_converted_by_the_answer_s_own_ratio(ledger, turn, outcome_of):
    turn()
    with writing(ledger) as connection:
        record(connection, [TurnReached("t", "s", "ended", None, 9000, tool_calls=14)])
    outcome = outcome_of(calls=4)
    assert left(outcome) == ("ended", 10, pytest.approx(9))
    assert outcome.converted
    unknown = outcome_of(calls=4, expected_remaining_calls=None)
    assert left(unknown) == ("ended", 10, None)
    assert (unknown.paid(made()), unknown.net(made())) == (None, None)


def test_stated_requests_are_spread_over_the_calls(ledger, turn, outcome_of):
    for turn_id, end in (("t", "ended"), ("u", "cut")):
        turn(turn_id=turn_id)
        reached = TurnReached(turn_id, "s", end, None, 9000, tool_calls=10, requests=6)
        with writing(ledger) as connection:
            record(connection, [reached])
    # None was made before the first call; then 5 for 10 calls, and the last one asks for none.
    for calls, requests in ((0, 6), (4, 4), (10, 1)):
        outcome = outcome_of(calls=calls)
        assert left(outcome) == ("ended", 10 - calls, pytest.approx(requests))
        assert outcome.converted == bool(calls)
    # Of the cut one, all 6 may have asked for the 10.
    for calls, requests in ((0, 6), (5, 3), (10, 0)):
        assert left(outcome_of(turn_id="u", calls=calls)) == ("cut", 10 - calls, requests)


def test_a_turn_seen_from_its_middle(turn, outcome_of):
    turn(1, 1, 0, end="ended", entry_calls=5, entry_requests=None)
    assert left(outcome_of(calls=6)) == ("ended", 1, 2)
    assert left(outcome_of(unit="requests", calls=6)) == ("ended", None, None)


def test_a_turn_of_unknown_beginning_tells_nothing(turn, outcome_of):
    turn(1, 1, 0, end="ended", entry_calls=None)
    assert left(outcome_of(calls=1)) == ("ended", None, None)


def test_a_session_s_decision_is_about_its_own_fork(turn, outcome_of):
    turn(1, 1, 0, end="ended")
    assert outcome_of(session_id="f", calls=1) is None
    turn(2, 1, 0, first=1, session="f")
    outcome = outcome_of(session_id="f", calls=1, at_ms=2000)
    assert (outcome.turn_id, outcome.session_id) == ("t@f", "f")
    # The fork goes on behind the first request: 2 + 1 calls, and three requests.
    assert left(outcome) == ("open", 3, 3)
    assert outcome_of(session_id=None, calls=1).session_id == "s"


def test_without_a_turn_there_is_no_outcome(outcome_of):
    assert outcome_of(turn_id=None, session_id=None) is None
    assert outcome_of(turn_id="of no ledger") is None


def test_paid_and_net_are_those_of_requests():
    def outcome(status, requests):
        return Outcome(status, "t", "s", 0, requests, converted=False)

    one = made()
    assert [outcome("ended", n).paid(one) for n in (6, 7)] == [False, True]
    assert [outcome("open", n).paid(one) for n in (6, 7)] == [None, True]
    assert outcome("open", 60).paid(made(break_even_calls=None)) is False
    assert (outcome("ended", 7).net(one), outcome("cut", 7).net(one)) == (2, None)


def test_a_decision_is_logged_once_and_moves_no_version(ledger):
    with reading(ledger) as connection:
        before = current_version(connection)
    for _ in range(2):
        with writing(ledger) as connection:
            write_decisions(connection, [made(str(n), at_ms=n) for n in range(250)])
    with writing(ledger) as connection:
        write_decisions(connection, [made("0", role="another"), made("new")])
        write_decisions(connection, [])
    with reading(ledger) as connection:
        assert connection.scalar(select(func.count()).select_from(decisions)) == 251
        assert current_version(connection) == before
        latest = read_decisions(connection, limit=3)
        assert [one.decision.decision_id for one in latest] == ["new", "249", "248"]
        assert read_decisions(connection, limit=9, role="another") == []
        assert len(read_decisions(connection, limit=999, since_ms=100)) == 151
        assert read_decisions(connection, limit=9, turn_id="x") == []


@pytest.mark.parametrize("text", ["'; DROP TABLE turns; --", "%s ? :name", "Rolle \U0001f916", '"'])
def test_names_are_values(ledger, text):
    with writing(ledger) as connection:
        write_decisions(connection, [made(text, role=text, turn_id=text, model=text)])
    with reading(ledger) as connection:
        (one,) = read_decisions(connection, limit=9, role=text, turn_id=text)
    assert (one.decision.decision_id, one.decision.model) == (text, text)

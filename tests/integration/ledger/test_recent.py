"""The latest turns of a role in the order of time, and those closed since a place in it."""

from collections.abc import Callable, Iterable

import pytest
from sqlalchemy import Engine

from ledger.database import reading, writing
from ledger.events import Event, RequestMade, TurnReached, TurnStarted
from ledger.recent import RecentTurn, Since, closed_since, recent_turns
from ledger.recording import record
from ledger.usage import Usage

Tell = Callable[..., None]


@pytest.fixture
def tell(ledger: Engine) -> Tell:
    """Record a turn: its last time, its calls, how it stands, and whose it is."""

    def told(
        turn_id: str,
        at_ms: int | None,
        calls: int = 3,
        status: str = "ended",
        *,
        role: str = "main",
        model: str | None = None,
        requests: int | None = None,
        entry: int | None = 0,
    ) -> None:
        begun = TurnStarted(
            turn_id,
            "s",
            "s",
            "test",
            role,
            at_ms,
            model=model,
            entry_calls=entry,
            entry_requests=entry,
        )
        _record(ledger, [begun, TurnReached(turn_id, "s", status, None, at_ms, calls, requests)])

    return told


def _record(ledger: Engine, events: Iterable[Event]) -> None:
    with writing(ledger) as connection:
        record(connection, list(events))


def recent(ledger: Engine, limit: int = 100, role: str = "main") -> list[RecentTurn]:
    with reading(ledger) as connection:
        return recent_turns(connection, role, limit)


def closed(ledger: Engine, since: Since | None = None, role: str = "main") -> list[str]:
    with reading(ledger) as connection:
        return [turn.turn_id for turn in closed_since(connection, role, since, 1000)]


def ids(found: Iterable[RecentTurn]) -> list[str]:
    return [turn.turn_id for turn in found]


def test_oldest_first_ties_by_id_and_those_without_a_time_before_all(
    ledger: Engine, tell: Tell
) -> None:
    tell("z-untimed", None)
    tell("a-late", 30)
    tell("c-tie", 20)
    tell("open", 20, status="open")
    tell("b-tie", 20, status="cut")
    tell("d-early", 10)
    tell("a-untimed", None)
    tell("other", 25, role="Plan")
    order = ["a-untimed", "z-untimed", "d-early", "b-tie", "c-tie", "open", "a-late"]
    assert ids(recent(ledger)) == order
    for limit in range(len(order) + 1):
        assert ids(recent(ledger, limit)) == order[len(order) - limit :]
    assert ids(recent(ledger, role="Plan")) == ["other"]
    assert recent(ledger, role="nobody") == []


def test_where_a_turn_stands_in_each_unit(ledger: Engine, tell: Tell) -> None:
    tell("1-ended", 1, 7, model="m", requests=5)
    tell("2-cut", 2, 7, "cut", requests=5)
    tell("3-open", 3, 7, "open", requests=5)
    tell("4-calls-only", 4, 7)
    tell("5-entered-late", 5, 7, requests=5, entry=2)
    tell("6-entry-unknown", 6, 7, requests=5, entry=None)
    tell("7-no-call", 7, 0, "cut")
    asks = RequestMade("r", "s", "8-asked", None, 8, None, Usage(output=1), unnamed_tool_calls=4)
    begun = TurnStarted("8-asked", "s", "s", "test", "main", 8)
    _record(ledger, [begun, asks, TurnReached("8-asked", "s", "cut", None, 8)])
    found = {turn.turn_id: turn for turn in recent(ledger)}
    places = {name[0]: (turn.tool_calls, turn.requests) for name, turn in found.items()}
    assert places == {
        "1": ((0, 7, True), (0, 5, True)),
        "2": ((0, 6, False), (0, 4, False)),
        "3": ((0, 6, False), (0, 4, False)),
        "4": ((0, 7, True), None),
        "5": ((2, 7, True), (2, 5, True)),
        "6": (None, None),
        "7": ((0, -1, False), None),
        # Its only answer asked for four calls: the second request had to follow.
        "8": ((0, 3, False), (0, 1, False)),
    }
    first = found["1-ended"]
    assert (first.model, first.status, first.last_ms) == ("m", "ended", 1)
    assert (first.place("tool_calls"), first.place("requests")) == ((0, 7, True), (0, 5, True))
    assert found["2-cut"].model == ""


def test_closed_turns_behind_a_place_each_once(ledger: Engine, tell: Tell) -> None:
    tell("b", 10)
    tell("a", 20, status="cut")
    tell("c", 20)
    tell("d", 20, status="open")
    tell("e", 30)
    tell("untimed", None)
    tell("other", 15, role="Plan")
    order = [("b", 10), ("a", 20), ("c", 20), ("e", 30)]
    assert closed(ledger) == [turn_id for turn_id, _ in order]
    for number, (turn_id, at_ms) in enumerate(order):
        behind = [later for later, _ in order[number + 1 :]]
        assert closed(ledger, Since(at_ms, turn_id)) == behind
    # Behind a time and an id that no turn has.
    assert closed(ledger, Since(20, "b")) == ["c", "e"]
    assert closed(ledger, Since(19, "zzz")) == ["a", "c", "e"]


def test_what_comes_in_late_or_closes_late(ledger: Engine, tell: Tell) -> None:
    tell("a", 10)
    tell("b", 20)
    since = Since(20, "b")
    tell("older", 15)
    tell("same-time-later-id", 20)
    tell("standing", 25, status="open")
    assert closed(ledger, since) == ["same-time-later-id"]
    _record(ledger, [TurnReached("standing", "s", "ended", None, 40, 5)])
    assert closed(ledger, since) == ["same-time-later-id", "standing"]


def test_nothing_of_a_role_unknown(ledger: Engine) -> None:
    assert closed(ledger) == []
    assert recent(ledger) == []

"""The decision log: answers as rows, and what their turns then did."""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import accumulate, chain, islice
from typing import Any, NamedTuple

from sqlalchemy import Connection, func, select

from ledger.among import among
from ledger.batch import forked
from ledger.schema import decisions, requests, tool_calls, turns

__all__ = ["DecisionMade", "Logged", "Outcome", "asking_roles", "read_decisions", "write_decisions"]

#: Turns looked up at once.
_CHUNK = 2000
#: Rows inserted by one statement.
_ROWS = 100


class DecisionMade(NamedTuple):
    """One answer as the log keeps it: the columns of the table ``decisions``, and nothing else.

    Parameters
    ----------
    decision_id : str
    at_ms : int
    session_id, turn_id : str or None
        As the question named them.
    role : str
    model : str or None
    unit : {'tool_calls', 'requests'}
    calls : int
        Made so far in the turn, in `unit`.
    requests : int or None
        Requests made so far in the turn, where the question counted them.
    context_tokens : int or None
    decision, would_decide : {'compact', 'wait'}
        The answer, and what guards and rule said, whatever the mode.
    rule, reason : str
        The rule, and the code of the reason.
    moment : {'call', 'turn_end', 'idle', 'resume'}
        When it was asked.
    mode : {'enforce', 'shadow', 'off'}
    threshold_tokens : float or None
        The context from which the rule compacts.
    expected_remaining_calls, expected_remaining_requests : float or None
        m(i) in both units.
    continue_probability, probability_pays : float or None
    break_even_calls : float or None
        C/s, which counts requests; None where nothing is saved.
    cost, saving_per_call : float
        C, and s per remaining request, in base tokens.
    expected_net : float or None
    source : str
        Whose table the estimate was from.
    snapshot_version : int
    policy_version : str
    prices_source : str or None
    """

    decision_id: str
    at_ms: int
    session_id: str | None
    turn_id: str | None
    role: str
    model: str | None
    unit: str
    calls: int
    requests: int | None
    context_tokens: int | None
    decision: str
    would_decide: str
    rule: str
    reason: str
    moment: str
    mode: str
    threshold_tokens: float | None
    expected_remaining_calls: float | None
    expected_remaining_requests: float | None
    continue_probability: float | None
    probability_pays: float | None
    break_even_calls: float | None
    cost: float
    saving_per_call: float
    expected_net: float | None
    source: str
    snapshot_version: int
    policy_version: str
    prices_source: str | None


class Outcome(NamedTuple):
    """What the turn of a decision did after it, as far as the ledger knows now.

    Parameters
    ----------
    status : {'ended', 'cut', 'open'}
        Of the turn. Where it did not end, the numbers are what at least remained.
    turn_id, session_id : str
        As the ledger has them; of a fork, its own.
    calls : int or None
        Tool calls that remained; negative where the turn was over before so many were made.
    requests : float or None
        Requests that remained, the next one included.
    converted : bool
        Whether `requests` is only `calls` converted: the requests were not recorded one by one.
    """

    status: str
    turn_id: str
    session_id: str
    calls: int | None
    requests: float | None
    converted: bool

    @property
    def ended(self) -> bool:
        """Whether the numbers are final."""
        return self.status == "ended"

    def paid(self, decision: DecisionMade) -> bool | None:
        """Return whether more requests remained than the break-even, None while unknown."""
        if decision.break_even_calls is None:
            return False
        if self.requests is None:
            return None
        more = self.requests > decision.break_even_calls
        return more if self.ended or more else None

    def net(self, decision: DecisionMade) -> float | None:
        """Return n·s − C in base tokens, where it is final."""
        if self.requests is None or not self.ended:
            return None
        return self.requests * decision.saving_per_call - decision.cost


class Logged(NamedTuple):
    """A decision, and its outcome where the ledger has its turn."""

    decision: DecisionMade
    outcome: Outcome | None


def write_decisions(connection: Connection, made: Iterable[DecisionMade]) -> None:
    """Add decisions to the log; one that is there stays as it is. Moves no version.

    Parameters
    ----------
    connection : Connection
        Inside a transaction that writes.
    made : iterable of DecisionMade
    """
    rows = list(made)
    for start in range(0, len(rows), _ROWS):
        some = rows[start : start + _ROWS]
        values = tuple(chain.from_iterable(some))
        connection.exec_driver_sql(_insert(connection.dialect.name, len(some)), values)


@lru_cache(maxsize=2 * _ROWS)
def _insert(dialect: str, rows: int) -> str:
    """Return the statement that inserts so many rows at once.

    Row by row, SQLite's driver would take and give back the interpreter's lock for each, and
    whoever answers questions beside it would stand in line.
    """
    mark = "%s" if dialect == "postgresql" else "?"
    row = f"({', '.join([mark] * len(DecisionMade._fields))})"
    return (
        f"INSERT INTO {decisions.name} ({', '.join(DecisionMade._fields)}) "  # noqa: S608 - own names
        f"VALUES {', '.join([row] * rows)} ON CONFLICT (decision_id) DO NOTHING"
    )


def asking_roles(connection: Connection) -> list[str]:
    """Return the roles that logged decisions name, sorted."""
    return sorted(connection.scalars(select(decisions.c.role).distinct()))


def read_decisions(
    connection: Connection,
    *,
    limit: int,
    role: str | None = None,
    since_ms: int | None = None,
    turn_id: str | None = None,
) -> list[Logged]:
    """Return the latest decisions, newest first, each with its outcome.

    Parameters
    ----------
    connection : Connection
    limit : int
        How many at most.
    role, turn_id : str, optional
        Only decisions that named them.
    since_ms : int, optional
        Only decisions made at that time or later.

    Notes
    -----
    A question names the ledger's turn id. Where its session is not the turn's, it asked about
    that session's fork of the turn, and has no outcome until the ledger has the fork.
    """
    wanted = select(*(decisions.c[name] for name in DecisionMade._fields))
    if role is not None:
        wanted = wanted.where(decisions.c.role == role)
    if turn_id is not None:
        wanted = wanted.where(decisions.c.turn_id == turn_id)
    if since_ms is not None:
        wanted = wanted.where(decisions.c.at_ms >= since_ms)
    wanted = wanted.order_by(decisions.c.at_ms.desc(), decisions.c.decision_id.desc())
    found = [DecisionMade(*row) for row in connection.execute(wanted.limit(limit))]
    turns_found = _turns_of(connection, found)
    places = [_turn_of(one, turns_found) for one in found]
    asking = {
        turn["turn_id"]
        for one, turn in zip(found, places, strict=True)
        if turn is not None and one.requests is None
    }
    paces = _paces_of(connection, asking)
    return [
        Logged(one, None if turn is None else _outcome(one, turn, paces.get(turn["turn_id"], ())))
        for one, turn in zip(found, places, strict=True)
    ]


_Turn = Mapping[str, Any]
_TURN_FACTS = (
    turns.c.turn_id,
    turns.c.session_id,
    turns.c.status,
    turns.c.entry_calls,
    turns.c.entry_requests,
    turns.c.tool_calls,
    turns.c.requests,
    turns.c.asked_for_tools,
)


def _chunks(names: Iterable[str]) -> Iterator[list[str]]:
    left = iter(names)
    while chunk := list(islice(left, _CHUNK)):
        yield chunk


def _turns_of(connection: Connection, made: Sequence[DecisionMade]) -> dict[str, _Turn]:
    """Read the turns that decisions name, and the forks they may mean."""
    ids = {one.turn_id for one in made if one.turn_id is not None}
    ids |= {forked(one.turn_id, one.session_id) for one in made if one.turn_id and one.session_id}
    found: dict[str, _Turn] = {}
    for chunk in _chunks(ids):
        rows = connection.execute(
            select(*_TURN_FACTS).where(among(connection, turns.c.turn_id, chunk))
        )
        found.update({row["turn_id"]: row for row in rows.mappings()})
    return found


def _turn_of(made: DecisionMade, found: Mapping[str, _Turn]) -> _Turn | None:
    turn = found.get(made.turn_id or "")
    if turn is None or made.session_id in (None, turn["session_id"]):
        return turn
    return found.get(forked(made.turn_id, made.session_id or ""))


def _paces_of(connection: Connection, turn_ids: Iterable[str]) -> dict[str, list[int]]:
    """Read, by turn, the tool calls made after each of its recorded requests, from 0 on."""
    named = (
        select(func.count())
        .where(tool_calls.c.request_id == requests.c.request_id)
        .scalar_subquery()
    )
    made: dict[str, list[int]] = {}
    for chunk in _chunks(turn_ids):
        rows = select(requests.c.turn_id, named + requests.c.unnamed_tool_calls)
        rows = rows.where(among(connection, requests.c.turn_id, chunk))
        for turn_id, calls in connection.execute(
            rows.order_by(requests.c.turn_id, requests.c.position)
        ):
            made.setdefault(turn_id, [0]).append(int(calls))
    return {turn_id: list(accumulate(calls)) for turn_id, calls in made.items()}


def _outcome(made: DecisionMade, turn: _Turn, pace: Sequence[int]) -> Outcome:
    by_calls = made.unit == "tool_calls"
    calls = _calls_left(made, turn, pace)
    if by_calls:
        left = _requests_left(turn, _requests_made(made, turn, pace))
        left = None if left is None or left < 0 else left
    else:
        left = _requests_left(turn, None if turn["entry_requests"] is None else made.calls)
    if turn["status"] == "open":
        # The question may come before the rows it counts.
        calls = None if calls is None else max(calls, 0)
        left = None if left is None else max(left, 0)
    remaining: float | None = left
    converted = by_calls and left is None and calls is not None and calls >= 0
    if converted:
        remaining = _converted(made, turn, calls or 0)
    return Outcome(turn["status"], turn["turn_id"], turn["session_id"], calls, remaining, converted)


def _calls_left(made: DecisionMade, turn: _Turn, pace: Sequence[int]) -> int | None:
    if turn["entry_calls"] is None:
        return None
    total = int(turn["tool_calls"])
    if made.unit == "tool_calls":
        return total - made.calls
    seen = made.calls - (turn["entry_requests"] or 0)
    known = turn["entry_requests"] is not None and 0 <= seen < len(pace)
    return total - turn["entry_calls"] - pace[seen] if known else None


def _requests_made(made: DecisionMade, turn: _Turn, pace: Sequence[int]) -> int | None:
    """Return the requests that made so many tool calls, or None where the ledger can't tell."""
    if made.requests is not None:
        return None if turn["entry_requests"] is None else made.requests
    if turn["entry_calls"] is None:
        return None
    # The fewest that made them: a request behind them that asked for no tool is still to come.
    known = pace or [0]
    seen = bisect_left(known, made.calls - turn["entry_calls"])
    return seen + (turn["entry_requests"] or 0) if seen < len(known) else None


def _requests_left(turn: _Turn, made: int | None) -> int | None:
    """Return the requests that remained; of a turn without an end, those that at least did."""
    if made is None or turn["requests"] is None:
        return None
    # An answer that asked for tools is followed by another request.
    follows = turn["status"] != "ended" and bool(turn["asked_for_tools"])
    return int(turn["requests"]) - made + follows


def _converted(made: DecisionMade, turn: _Turn, calls: int) -> float | None:
    """Return remaining tool calls as requests, where the ledger has no requests one by one.

    The turn's own requests are spread evenly over its calls, but for the last one of a turn that
    ended, which asked for none; of a turn that does not tell them, by the answer's own ratio.
    """
    if turn["requests"] is not None:
        seen = int(turn["requests"]) - (turn["entry_requests"] or 0)
        of = int(turn["tool_calls"]) - (turn["entry_calls"] or 0)
        last = 1 if turn["status"] == "ended" else 0
        return seen - (seen - last) * (of - calls) / of if of else float(seen)
    expected = made.expected_remaining_calls
    if not expected or made.expected_remaining_requests is None:
        return None
    return calls * made.expected_remaining_requests / expected

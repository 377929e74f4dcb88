"""Past compactions as cases: what stood before each, what followed, and what its own call used."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, NamedTuple

from sqlalchemy import Connection, Row, func, select

from backtest.context_growth import growth_behind, other_growth
from backtest.context_lines import ContextLine, LineTurn, MadeRequest, Place, read_lines
from backtest.summary_calls_seen import (
    SummaryCallSeen,
    call_seen,
    nearest_calls,
    summary_calls,
)
from estimator.pauses import OVER_SECONDS
from ledger.batch import forked
from ledger.observations import HIT
from ledger.schema import compactions, turns

__all__ = ["CLEAR", "CompactionCase", "Remaining", "compaction_cases"]

#: Strategy that makes no call: old tool results are cleared.
CLEAR = "clear"
#: Sessions whose requests are held at once.
_SESSIONS = 32
#: Steps behind a compaction from which on its growth is compared with the usual.
_LEAST_FOLLOWED = 5
_OVER_MS = OVER_SECONDS * 1_000


class Remaining(NamedTuple):
    """What followed on a compaction within a horizon.

    Parameters
    ----------
    calls, requests : int
        Tool calls and requests up to the horizon's end.
    counted_calls, counted_requests : int
        Those before the next compaction that made a summary: from there on both contexts, with
        this compaction and without it, would have been cut alike.
    missed : int
        Counted requests behind the first whose cache had expired, or did not hold.
    final : bool
        Whether the counted numbers are all there ever was; else at least as many.
    """

    calls: int
    requests: int
    counted_calls: int
    counted_requests: int
    missed: int
    final: bool


@dataclass(frozen=True, slots=True)
class CompactionCase:
    """One compaction with everything that its verdict rests on.

    Parameters
    ----------
    compaction_id, session_id : str
    turn_id : str or None
        The turn it was made in, or the one that followed; None where none did.
    at_ms : int or None
    trigger, model, provider : str or None
    strategy, role : str
    between_turns : bool
    context_before : int or None
        X in tokens. Of a clear it is the context of the request before: what logs tell of it is
        an estimate of the messages alone.
    context_after : int or None
        X′ in tokens: context of the first request after it.
    before, first : MadeRequest or None
        The request before it, and the first one after it.
    pause_before_seconds, pause_seconds : float or None
        From the request before up to it, and up to the first request after it.
    in_turn, in_session : Remaining
        What followed, by horizon.
    call : SummaryCallSeen or None
        Its own call, where the log has it.
    followed_tokens, followed_requests : int
        By how much the next requests of the turn let the context grow, and how many they were.
    project : str or None
        The project its role was told with.
    rework_tokens : float or None
        Growth of the next ten requests beyond the usual one of its role, by chance below 0; None
        where fewer than five followed.
    """

    compaction_id: str
    session_id: str
    turn_id: str | None
    at_ms: int | None
    trigger: str | None
    strategy: str
    role: str
    model: str | None
    provider: str | None
    between_turns: bool
    context_before: int | None
    context_after: int | None
    before: MadeRequest | None
    first: MadeRequest | None
    pause_before_seconds: float | None
    pause_seconds: float | None
    in_turn: Remaining
    in_session: Remaining
    call: SummaryCallSeen | None = None
    followed_tokens: int = 0
    followed_requests: int = 0
    project: str | None = None
    rework_tokens: float | None = None


def compaction_cases(
    connection: Connection, usual_growth: float, *, by_project: bool = False
) -> list[CompactionCase]:
    """Read every compaction of a ledger.

    Parameters
    ----------
    connection : Connection
        Of a migrated ledger.
    usual_growth : float
        Tokens that a request usually adds, for roles that tell of no other requests.
    by_project : bool, default False
        Whether roles were imported by project, as ``project/role``.

    Returns
    -------
    list of CompactionCase
        By time, those without one first.
    """
    told: dict[str, list[Row[Any]]] = defaultdict(list)
    for row in connection.execute(select(compactions)):
        told[row.session_id].append(row)
    ends = _log_ends(connection, by_project=by_project)
    cases: list[CompactionCase] = []
    growth: Counter[str] = Counter()
    steps: Counter[str] = Counter()
    sessions = iter(sorted(told))
    while chunk := list(islice(sessions, _SESSIONS)):
        lines = read_lines(connection, chunk)
        calls = summary_calls(connection, chunk)
        for line, placed in _placed([row for name in chunk for row in told[name]], lines):
            cases += _cases(line, placed, calls, ends)
            for role, tokens in other_growth(line, [one.place for one in placed if one.place]):
                growth[role] += tokens
                steps[role] += 1
    usual = {role: growth[role] / count for role, count in steps.items()}
    cases = [_with_rework(case, usual.get(case.role, usual_growth)) for case in cases]
    if by_project:
        cases = [_with_project(case) for case in cases]
    return sorted(cases, key=lambda case: (case.at_ms or 0, case.compaction_id))


def _log_ends(connection: Connection, *, by_project: bool) -> dict[str, int]:
    """Return when the logs of each project end; without projects, of all under no name."""
    ends: dict[str, int] = {}
    heard = select(turns.c.role, func.max(turns.c.last_ms)).group_by(turns.c.role)
    for role, last_ms in connection.execute(heard):
        project = _project(role) if by_project else ""
        ends[project] = max(ends.get(project, 0), last_ms or 0)
    return ends


def _project(role: str) -> str:
    return role.partition("/")[0] if "/" in role else ""


class _Placed(NamedTuple):
    """A compaction at its place in a line; None where the log tells neither turn nor time."""

    row: Row[Any]
    place: Place | None


def _placed(
    rows: Iterable[Row[Any]], lines: Mapping[str, ContextLine]
) -> Iterator[tuple[ContextLine, list[_Placed]]]:
    """Yield lines with their compactions, in the order in which these were made."""
    by_line: dict[int, tuple[ContextLine, list[_Placed]]] = {}
    for row in rows:
        line, turn = _line_and_turn(row, lines)
        if turn is not None:
            place: Place | None = line.within(
                turn, at_ms=row.at_ms, calls=row.calls_before, made=row.requests_before
            )
        elif row.at_ms is not None:
            place = line.from_time(row.at_ms) or line.begins[-1]
        else:
            place = None
        by_line.setdefault(id(line), (line, []))[1].append(_Placed(row, place))
    for line, placed in by_line.values():
        placed.sort(key=_order)
        yield line, placed


def _order(one: _Placed) -> tuple[int, int, str]:
    return (
        -1 if one.place is None else one.place.requests,
        one.row.at_ms or 0,
        one.row.compaction_id,
    )


def _line_and_turn(
    row: Row[Any], lines: Mapping[str, ContextLine]
) -> tuple[ContextLine, int | None]:
    """Return a compaction's line, and which of its turns it was made in; None is between turns."""
    # A forked session goes on with a turn of another one under a name of its own.
    for turn_id in (row.turn_id, forked(row.turn_id, row.session_id)):
        line = lines.get(turn_id or "")
        if line is not None and line.session_id == row.session_id:
            return line, next(
                place for place, turn in enumerate(line.turns) if turn.turn_id == turn_id
            )
    return lines.get(row.session_id) or ContextLine.of(row.session_id, (), single=False), None


def _cases(
    line: ContextLine,
    placed: Sequence[_Placed],
    calls: Mapping[str, Sequence[Row[Any]]],
    ends: Mapping[str, int],
) -> list[CompactionCase]:
    over = _is_over(line, ends)
    summaries = [one.row for one in placed if one.row.strategy != CLEAR]
    nearest = nearest_calls(summaries, calls.get(line.session_id, ()))
    cases = []
    for number, (row, place) in enumerate(placed):
        later = (one.place for one in placed[number + 1 :] if one.row.strategy != CLEAR)
        cases.append(_case(line, row, place, next(later, None), over, nearest))
    return cases


def _is_over(line: ContextLine, ends: Mapping[str, int]) -> bool:
    """Say whether a line is known to have come to its end, and not just its log."""
    if not line.turns:
        return False
    last = line.turns[-1]
    if line.single:
        return last.status == "ended"
    if last.status == "open" or last.last_ms is None:
        return False
    log_end = ends.get(_project(last.role), ends.get("", 0))
    return log_end - last.last_ms >= _OVER_MS


def _case(
    line: ContextLine,
    row: Row[Any],
    place: Place | None,
    following: Place | None,
    over: bool,
    nearest: Mapping[str, Row[Any]],
) -> CompactionCase:
    in_turn, in_session = _remaining(line, place, following, over)
    before = first = turn = None
    if place is not None:
        before = line.request(place.requests - 1)
        counted = range(place.requests, place.requests + in_session.counted_requests)
        first = next((made for made in map(line.request, counted) if made and made.context), None)
        turn = line.turns[place.turn] if place.turn < len(line.turns) else None
    grown, steps = (0, 0)
    if place is not None and first is not None:
        grown, steps = growth_behind(line, place, in_turn.counted_requests)
    told = turn or (line.turns[-1] if line.turns else None)
    own_before = before.context if before else None
    return CompactionCase(
        compaction_id=row.compaction_id,
        session_id=row.session_id,
        turn_id=turn.turn_id if turn else row.turn_id,
        at_ms=_first_known(
            row.at_ms, first.at_ms if first else None, told.last_ms if told else None
        ),
        trigger=row.trigger,
        strategy=row.strategy,
        role=told.role if told else "unknown",
        model=_model(first, before, told),
        provider=told.provider if told else None,
        between_turns=row.turn_id is None,
        context_before=own_before
        if row.strategy == CLEAR and own_before
        else row.context_before or own_before,
        context_after=first.context if first else row.context_after,
        before=before,
        first=first,
        pause_before_seconds=_seconds(before and before.at_ms, row.at_ms),
        pause_seconds=_seconds(before and before.at_ms, first and first.at_ms),
        in_turn=in_turn,
        in_session=in_session,
        call=call_seen(nearest.get(row.compaction_id), first),
        followed_tokens=grown,
        followed_requests=steps,
    )


def _first_known(*values: int | None) -> int | None:
    return next((value for value in values if value is not None), None)


def _model(
    first: MadeRequest | None, before: MadeRequest | None, turn: LineTurn | None
) -> str | None:
    told = (first and first.model, before and before.model, turn and turn.model)
    return next((model for model in told if model), None)


def _seconds(from_ms: int | None, to_ms: int | None) -> float | None:
    return None if from_ms is None or to_ms is None else max(0.0, (to_ms - from_ms) / 1_000)


def _remaining(
    line: ContextLine, place: Place | None, following: Place | None, over: bool
) -> tuple[Remaining, Remaining]:
    """Return what followed within the turn, and within the session."""
    if place is None:
        nothing = Remaining(0, 0, 0, 0, 0, final=False)
        return nothing, nothing
    end = line.begins[-1]
    inside = place.turn < len(line.turns)
    turn_end = line.begins[place.turn + 1] if inside else end
    ended = line.turns[place.turn].status == "ended" if inside else over
    in_turn = following if following is not None and following.turn == place.turn else None
    return (
        _counted(line, place, turn_end, in_turn, final=ended),
        _counted(line, place, end, following, final=over),
    )


def _counted(
    line: ContextLine, place: Place, end: Place, following: Place | None, *, final: bool
) -> Remaining:
    stop = end if following is None else following
    return Remaining(
        calls=end.calls - place.calls,
        requests=end.requests - place.requests,
        counted_calls=max(stop.calls - place.calls, 0),
        counted_requests=max(stop.requests - place.requests, 0),
        missed=sum(
            _missed(line.request(number - 1), line.request(number))
            for number in range(place.requests + 1, stop.requests)
        ),
        final=final or following is not None,
    )


def _missed(before: MadeRequest | None, made: MadeRequest | None) -> bool:
    if before is None or made is None or not before.cached:
        return False
    return made.cache_read < HIT * before.context


def _with_rework(case: CompactionCase, usual: float) -> CompactionCase:
    if case.followed_requests < _LEAST_FOLLOWED:
        return case
    return replace(case, rework_tokens=case.followed_tokens - usual * case.followed_requests)


def _with_project(case: CompactionCase) -> CompactionCase:
    project, slash, role = case.role.partition("/")
    return replace(case, project=project, role=role) if slash else case

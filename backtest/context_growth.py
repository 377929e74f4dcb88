"""How contexts grow: behind compactions, which tells of rework, and elsewhere."""

from bisect import bisect_left
from collections.abc import Iterator, Sequence

from backtest.context_lines import ContextLine, MadeRequest, Place
from ledger.compaction_observations import FOLLOWED_REQUESTS
from ledger.observations import FALL

__all__ = ["growth_behind", "other_growth"]


def growth_behind(line: ContextLine, place: Place, requests: int) -> tuple[int, int]:
    """Return by how much a context grew behind a compaction, and over how many requests.

    Parameters
    ----------
    line : ContextLine
    place : Place
        Where it was made.
    requests : int
        Those that count as its own, the first one included; ten beyond that one are looked at.
    """
    stop = min(place.requests + requests, place.requests + FOLLOWED_REQUESTS + 1)
    steps = grown = 0
    for number in range(place.requests + 1, stop):
        before, made = line.request(number - 1), line.request(number)
        if before is None or made is None or not _grew(before, made):
            break
        steps, grown = steps + 1, grown + made.context - before.context
    return grown, steps


def other_growth(line: ContextLine, places: Sequence[Place]) -> Iterator[tuple[str, int]]:
    """Yield role and growth of the requests within turns that don't follow on a compaction.

    Parameters
    ----------
    line : ContextLine
    places : sequence of Place
        Of its compactions, in order.
    """
    starts = [place.requests for place in places]
    for begin, turn in zip(line.begins, line.turns, strict=False):
        for number in range(1, len(turn.made)):
            before, made = turn.made[number - 1], turn.made[number]
            latest = bisect_left(starts, begin.requests + number + 1)
            away = latest == 0 or (begin.requests + number - starts[latest - 1] > FOLLOWED_REQUESTS)
            if away and made.position == before.position + 1 and _grew(before, made):
                yield turn.role, made.context - before.context


def _grew(before: MadeRequest, made: MadeRequest) -> bool:
    """Say whether a context went on, and neither shrank nor changed to another model's count."""
    return before.model == made.model and made.context >= before.context * (1 - FALL)

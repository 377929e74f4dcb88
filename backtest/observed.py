"""The compactions that the agents of the logs made themselves, seen in the contexts."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from backtest.scenario import PREFIX_TOKENS, Aftermath, fixed_aftermath
from backtest.sequences import Sequences

__all__ = ["Observed", "learned_aftermath", "observed_compactions"]

#: A context that falls to this share of a large one, and stays down, was compacted.
_FALL, _LARGE_TOKENS = 0.7, 60_000.0
#: Requests on either side of a compaction over which rework is looked for.
_FOLLOWED = 10

_Numbers = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Observed:
    """What real compactions left behind.

    Parameters
    ----------
    unit, row : ndarray of int, shape (compactions,)
        Whose, and the first request after it.
    before_tokens, after_tokens : ndarray of float, shape (compactions,)
        Context of the request before, and X′, that of the request after.
    rework_tokens : ndarray of float, shape (compactions,)
        Growth of the next ten requests beyond that of the ten before; negative where less.
    """

    unit: NDArray[np.int64]
    row: NDArray[np.int64]
    before_tokens: _Numbers
    after_tokens: _Numbers
    rework_tokens: _Numbers


def observed_compactions(sequences: Sequences) -> Observed:
    """Find falls of the context that the next request does not undo.

    Parameters
    ----------
    sequences : Sequences
        Main sessions and sub-agents alike.
    """
    unit, context = sequences.unit, sequences.context_tokens
    before = np.append(0.0, context[:-1])
    fell = (context < _FALL * before) & (before > _LARGE_TOKENS) & ~sequences.first
    after = np.append(context[1:], 0.0)
    within = np.append(unit[1:] == unit[:-1], False)
    # A single odd request between two large ones is none.
    fell &= ~within | (after < _FALL * before)
    places = np.flatnonzero(fell)
    extra = [_rework(sequences, place) for place in places.tolist()]
    return Observed(unit[places], places, before[places], context[places], np.array(extra))


def _rework(sequences: Sequences, place: int) -> float:
    """Return growth behind a compaction beyond that ahead of it, over as many requests."""
    unit = int(np.searchsorted(sequences.begins, place, side="right")) - 1
    begin, end = sequences.begins[unit : unit + 2].tolist()
    reach = min(_FOLLOWED, end - place - 1, place - begin - 1)
    growth = sequences.growth_tokens
    behind, ahead = growth[place + 1 : place + 1 + reach], growth[place - reach : place]
    return float(behind.sum() - ahead.sum())


def learned_aftermath(sequences: Sequences, known: NDArray[np.bool_], *, own: bool) -> Aftermath:
    """Return X′ and L as real compactions show them.

    Parameters
    ----------
    sequences : Sequences
        The units it is for.
    known : ndarray of bool, shape (units,)
        The units whose compactions may be looked at.
    own : bool
        Whether a session that compacted keeps its own X′, as what is billed does, or has the
        median like all others, as what a rule believes does.

    Returns
    -------
    Aftermath
        P as always; X′ − P and L are medians, those of `fixed_aftermath` where no compaction is
        known.
    """
    seen = observed_compactions(sequences)
    prefix = np.minimum(sequences.first_context_tokens, float(PREFIX_TOKENS))[seen.unit]
    tails, rework = np.maximum(seen.after_tokens - prefix, 0.0), seen.rework_tokens
    counted = known[seen.unit]
    if not counted.any():
        return fixed_aftermath(sequences)
    sessions: dict[str, float] = {}
    if own:
        for unit in np.unique(seen.unit[counted]).tolist():
            sessions[sequences.session[unit]] = float(np.median(tails[seen.unit == unit]))
    return fixed_aftermath(
        sequences,
        float(np.median(tails[counted])),
        max(0.0, float(np.median(rework[counted]))),
        tail_of_session=sessions,
    )

"""Prequential: every session is decided by turns that had ended before it began."""

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from backtest.known import known_before
from backtest.sequences import Sequences
from backtest.trial import Round
from compactuary.errors import InputError

__all__ = ["FIRST_SESSIONS", "Block", "blocks", "prequential", "session_starts"]

#: Rules are fitted for the first time when this many sessions have begun.
FIRST_SESSIONS = 10


class Block(NamedTuple):
    """Sessions that are decided by one fit.

    Parameters
    ----------
    at_seconds : float
        When rules were fitted: on turns that had ended before.
    units : ndarray of bool, shape (units,)
        Those of sessions that began from then on, up to the next fit.
    """

    at_seconds: float
    units: NDArray[np.bool_]


def session_starts(sequences: Sequences) -> NDArray[np.float64]:
    """Return when the session of each unit began; 0 where no time is known."""
    firsts = sequences.at_seconds[sequences.begins[:-1]]
    _, code = np.unique(np.array(sequences.session), return_inverse=True)
    begun = np.full(int(code.max()) + 1, np.inf)
    # A session may have units with a time and others without: those can't tell when it began.
    np.minimum.at(begun, code, np.where(firsts > 0, firsts, np.inf))
    return np.where(np.isfinite(begun), begun, 0.0)[code]


def blocks(sequences: Sequences) -> list[Block]:
    """Divide sessions by the fit that decides them.

    Rules are fitted when 10, 20, 40 … sessions have begun: a schedule that depends on nothing
    later.

    Parameters
    ----------
    sequences : Sequences
        Sessions without a known time are in no block.

    Returns
    -------
    list of Block
        By time; empty where fewer than 11 sessions are dated.
    """
    starts = session_starts(sequences)
    names = np.array(sequences.session)
    _, places = np.unique(names, return_index=True)
    begun = np.sort(starts[places])
    begun = begun[begun > 0]
    counts, many = [], FIRST_SESSIONS
    while many < begun.size:
        counts.append(many)
        many *= 2
    # The session that begins next is the first one that the fit decides.
    times = [*(float(begun[count]) for count in counts), np.inf]
    return [Block(at, (starts >= at) & (starts < until)) for at, until in pairwise(times)]


def prequential(sequences: Sequences) -> Iterator[Round]:
    """Yield what is known at each fit, and the units that it decides.

    Parameters
    ----------
    sequences : Sequences
        Whole sessions, or turns alone.

    Raises
    ------
    InputError
        Fewer than 11 sessions have a time, or no turn ended before the last fit.
    """
    rounds = 0
    for block in blocks(sequences):
        known = known_before(sequences, block.at_seconds)
        if known is not None and known.ended.any() and block.units.any():
            rounds += 1
            yield Round(known, block.units)
    if not rounds:
        raise InputError(
            "no session with a time began after ten others",
            where="split",
            value=f"time, {len(set(sequences.session))} sessions",
            remedy="Name more logs, or give --split random",
        )

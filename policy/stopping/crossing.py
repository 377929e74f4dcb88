"""The crossing: the context from which compacting is cheaper than waiting."""

import numpy as np

from policy.stopping.batch import FORBIDDEN, ROUNDING, Batch
from policy.stopping.problem import Array

__all__ = ["crossing"]


def crossing(batch: Batch, excess: Array) -> Array:
    """Return the smallest context at which compacting is cheaper, by problem.

    Parameters
    ----------
    batch : Batch
        The problems.
    excess : ndarray, shape (points, problems)
        What waiting costs more than compacting.

    Returns
    -------
    ndarray, shape (problems,)
        Linear between points, and above X′ + L; NaN where there is none up to the limit, beyond
        which a compaction is forced.
    """
    # What is equal on paper differs by rounding.
    more = excess > ROUNDING * (1.0 + np.abs(batch.summary))
    more[0] = False
    first = more.argmax(axis=0)
    every = np.arange(excess.shape[1])
    high, low = excess[first, every], excess[first - 1, every]
    # Where nothing crosses `high` may be anything.
    share = np.where(low < 0.0, low / (low - np.maximum(high, 1e-300)), 0.0)
    context = batch.context[first - 1, every] + share * batch.step
    found = np.maximum(context, np.floor(batch.context[0]) + 1.0)
    forced = (high > FORBIDDEN / 2.0) | (found > batch.limit)
    crossed: Array = np.where(more.any(axis=0) & ~forced, found, np.nan)
    return crossed

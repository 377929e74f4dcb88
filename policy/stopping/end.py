"""The end of a turn: compact before the pause, be asked while idle, or wait for what comes."""

from typing import NamedTuple

import numpy as np

from policy.stopping.batch import Batch
from policy.stopping.problem import Array
from policy.stopping.turn import choose

__all__ = ["End", "end_of"]


class End(NamedTuple):
    """The end of a turn: its value, and waiting less compacting then and while idle."""

    value: Array
    excess: Array
    idle_excess: Array


def end_of(batch: Batch, warm: Array, cold: Array) -> End:
    """Return E from V_0 and V_c.

    Notes
    -----
    Who asks at idle time t, not resumed by then, chooses between waiting and a compaction whose
    context is cold after the expiry. At t = 0 that is the end of the turn.
    """
    asked = np.where(np.isnan(batch.asked), batch.cold, batch.asked)
    early = batch.goes_on * (1.0 - asked) * warm
    late_warm, late_cold = batch.goes_on * (asked - batch.cold), batch.goes_on * batch.cold
    waits = late_warm * warm + late_cold * cold
    idle = (batch.goes_on * asked + 1.0 - batch.goes_on) * batch.pause_summary + (
        late_warm * (warm[0] + batch.recache) + late_cold * cold[0]
    )
    idle_waits, idle_excess = choose(waits, idle)
    later = early + np.where(np.isnan(batch.asked), waits, idle_waits)
    now = batch.goes_on * (1.0 - batch.cold) * batch.recache
    value, excess = choose(later, batch.pause_summary + (later[0] + now))
    return End(value, excess, idle_excess)

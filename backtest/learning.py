"""What sequences teach a rule: lives of turns, growth, misses, and how sessions go on."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from backtest.scenario import Aftermath, Scenario
from backtest.sequences import Sequences
from compactuary.errors import InputError
from estimator.histogram import Histogram
from estimator.life_table import LifeTable, life_table
from policy.role_table import RoleTable
from policy.rules.life import Life
from policy.rules.setting import Setting

__all__ = ["Habits", "Learned", "learned", "session_life"]

#: Idle times at which the survival of pauses is told, as shares of the time to live.
_SHARES_OF_TTL = (0.1, 0.25, 0.5, 0.75, 0.95, 1.0)
#: How many turns of a project weigh as much as what all projects say of how sessions go on.
_PRIOR_TURNS = 10.0

_Truths = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Habits:
    """One kind of unit: main sessions, or sub-agents' turns.

    Parameters
    ----------
    life : Life
        Turns in requests.
    growth_tokens, first_growth_tokens : float
        g and g₀, means.
    miss_probability : float
        q, the share of requests in mid-turn that came after the cache had expired.
    resume_probability, cold_probability : float
        q_s and p_c.
    requests_after_turn : float
        ν.
    pauses : tuple of (float, float)
        ``(idle_seconds, P(pause > idle_seconds))`` of sessions that go on.
    prefix_tokens, after_tokens, rework_tokens : float
        P, X′ and L, means of the units.
    """

    life: Life
    growth_tokens: float
    first_growth_tokens: float
    miss_probability: float
    resume_probability: float
    cold_probability: float
    requests_after_turn: float
    pauses: tuple[tuple[float, float], ...]
    prefix_tokens: float
    after_tokens: float
    rework_tokens: float

    def setting(self, scenario: Scenario) -> Setting:
        """Return what a rule is compiled for."""
        summary = scenario.summary_output_tokens
        return Setting(
            read_weight=scenario.read_weight,
            write_weight=scenario.write_weight,
            output_weight=scenario.output_weight,
            context_after_tokens=self.after_tokens,
            cached_after_tokens=self.prefix_tokens,
            summary_output_tokens=summary,
            instruction_tokens=scenario.instruction_tokens,
            growth_tokens=self.growth_tokens,
            first_growth_tokens=self.first_growth_tokens,
            # A rule is forced where growth and summary no longer fit; here that is the limit.
            window_tokens=scenario.limit_tokens + self.growth_tokens + summary,
            miss_probability=self.miss_probability,
            resume_probability=self.resume_probability,
            cold_probability=self.cold_probability,
            requests_after_turn=self.requests_after_turn,
            rework_tokens=self.rework_tokens,
            quality_cost=scenario.quality_cost,
            pauses=self.pauses,
            ttl_seconds=scenario.ttl_seconds,
        )


@dataclass(frozen=True, slots=True)
class Learned:
    """What is known of both kinds of unit.

    Parameters
    ----------
    main, subagent : Habits
        Of all projects.
    by_project : mapping of str to Habits
        Of main sessions: q_s, p_c and the pauses as the project's own turns tell them, blended
        with those of all projects at the weight of ten turns; the rest is as everywhere.
    """

    main: Habits
    subagent: Habits
    by_project: Mapping[str, Habits] = field(default_factory=dict)

    def of_project(self, project: str) -> Habits:
        """Return the habits of main sessions of a project, of all projects where it is not known.

        Parameters
        ----------
        project : str
            As sequences name it.
        """
        return self.by_project.get(project, self.main)


def learned(sequences: Sequences, aftermath: Aftermath, ttl_seconds: float) -> Learned:
    """Learn from sequences.

    Parameters
    ----------
    sequences : Sequences
        Those a rule may know.
    aftermath : Aftermath
        What compactions leave in them, as far as a rule knows it.
    ttl_seconds : float
        How long the cache lives.

    Raises
    ------
    InputError
        No turn of a main session ended. Sub-agents without an ended turn are taken for main
        sessions of one turn, and where nobody is the main agent, that is a sub-agent.
    """
    main = _habits(sequences, aftermath, ttl_seconds, sequences.main)
    subagent = _habits(sequences, aftermath, ttl_seconds, ~sequences.main)
    # Who names every role in his own way has no main session.
    if main is None and not sequences.main.any():
        main = subagent
    if main is None:
        raise InputError(
            "no turn of a main session ended" if sequences.main.any() else "no turn ended",
            where="sequences",
            value=f"{sequences.units} units",
            remedy="Learn from more sessions",
        )
    alone = replace(
        subagent or main, resume_probability=0.0, cold_probability=0.0, requests_after_turn=0.0
    )
    return Learned(main, alone, _by_project(sequences, main, ttl_seconds))


def _by_project(sequences: Sequences, main: Habits, ttl_seconds: float) -> dict[str, Habits]:
    """Blend how a project's sessions go on with how all do."""
    blended = {}
    for project in sorted(set(sequences.project)):
        units = np.array([own == project for own in sequences.project]) & sequences.main
        if not units.any():
            continue
        resumed, waits, _ = _after_turns(sequences.chosen(units))
        blended[project] = replace(
            main,
            resume_probability=_blend(resumed.size, waits, main.resume_probability),
            cold_probability=_blend(
                int((resumed > ttl_seconds).sum()), resumed.size, main.cold_probability
            ),
            pauses=tuple(
                (seconds, _blend(int((resumed > seconds).sum()), resumed.size, left))
                for seconds, left in main.pauses
            ),
        )
    return blended


def _blend(seen: int, of: int, everywhere: float) -> float:
    return (seen + _PRIOR_TURNS * everywhere) / (of + _PRIOR_TURNS)


def session_life(sequences: Sequences) -> Life:
    """Return the life of main sessions in requests, all of them taken to have ended.

    Parameters
    ----------
    sequences : Sequences
        At least one main session among them.
    """
    lengths = sequences.lengths[sequences.main]
    return Life.of(_role_table(life_table(Histogram.from_rows((0, n, True, 1) for n in lengths))))


def _habits(
    sequences: Sequences, aftermath: Aftermath, ttl_seconds: float, units: _Truths
) -> Habits | None:
    own, left = sequences.chosen(units), aftermath.chosen(units)
    life = _life(own)
    if life is None:
        return None
    inside = ~own.first & (own.age > 0)
    opens = own.opens_turn
    growth = _mean(own.growth_tokens[inside], 0.0)
    resumed, waits, after = _after_turns(own)
    return Habits(
        life=life,
        growth_tokens=growth,
        first_growth_tokens=_mean(own.growth_tokens[opens], growth),
        miss_probability=_mean(own.gap_seconds[inside] > ttl_seconds, 0.0),
        resume_probability=resumed.size / waits if waits else 0.0,
        cold_probability=_mean(resumed > ttl_seconds, 0.0),
        requests_after_turn=after,
        pauses=tuple(
            (share * ttl_seconds, _mean(resumed > share * ttl_seconds, 0.0))
            for share in _SHARES_OF_TTL
        ),
        prefix_tokens=float(left.prefix_tokens.mean()),
        after_tokens=float(left.after_tokens.mean()),
        rework_tokens=float(left.rework_tokens.mean()),
    )


def _after_turns(own: Sequences) -> tuple[NDArray[np.float64], int, float]:
    """Return pauses of sessions that went on, how often one may have begun, and mean ν."""
    waits = np.flatnonzero(own.waits)
    ends = own.begins[1:][own.unit[waits]] - 1
    pauses = own.gap_seconds[np.flatnonzero(own.opens_turn)]
    return pauses, int(waits.size), _mean(ends - waits, 0.0)


def _life(own: Sequences) -> Life | None:
    """Return the life of turns in requests, None where none ended."""
    last = np.flatnonzero(own.last)
    ended = own.ended[last]
    # Of a cut turn the request after its last is known only where the answer asked for tools.
    known = own.age[last] + (ended | own.asked_for_tools[last])
    rows = zip(known.tolist(), ended.tolist(), strict=True)
    histogram = Histogram.from_rows((0, exit_, end, 1) for exit_, end in rows)
    return Life.of(_role_table(life_table(histogram))) if histogram.ends else None


def _role_table(table: LifeTable) -> RoleTable:
    return RoleTable(
        role="",
        unit="requests",
        turns=int(table.turns_with_a_call),
        tail_age=table.tail_age,
        at_risk=tuple(table.at_risk.tolist()),
        ends=tuple(table.ends.tolist()),
        expected=tuple(table.mean.tolist()),
        lower=tuple(table.lower.tolist()),
        upper=tuple(table.upper.tolist()),
        survival=tuple(table.survival.tolist()),
        continue_probability=tuple(table.continue_probability.tolist()),
        level=table.level,
        requests_per_call=None,
    )


def _mean(values: NDArray[np.generic], otherwise: float) -> float:
    return float(values.astype(np.float64).mean()) if values.size else otherwise

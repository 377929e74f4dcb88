"""The rules that a backtest compares, fitted on some sequences and laid out on others."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from backtest.learning import Habits, Learned, session_life
from backtest.occupancies import ThreeThresholds, fixed_plans, train_three_thresholds
from backtest.plan import NEVER, Plan, by_unit, plan_of
from backtest.returns import fit_returns, idle_thresholds, waits_of, with_idle
from backtest.scenario import Aftermath, Scenario
from backtest.sequences import Sequences
from policy.rules.break_even import thresholds_by_remaining
from policy.rules.idle import idles
from policy.rules.life import Life
from policy.rules.renewal import renewals
from policy.rules.rules import RULES
from policy.rules.setting import Setting
from policy.thresholds import Thresholds

__all__ = ["CANDIDATES", "Candidate", "Fitted", "occupancy"]


@dataclass(frozen=True, slots=True, eq=False)
class Fitted:
    """What a rule may know.

    Parameters
    ----------
    sequences : Sequences
        The units it was fitted on.
    aftermath : Aftermath
        What compactions leave in them, as the rule believes.
    learned : Learned
        What they teach.
    scenario : Scenario
        The prices.
    """

    sequences: Sequences
    aftermath: Aftermath
    learned: Learned
    scenario: Scenario


Candidate = Callable[[Fitted, Sequences], Plan]


def _by_name(name: str) -> Candidate:
    """Return a rule that is compiled from lives and settings alone."""

    def laid_out(fitted: Fitted, sequences: Sequences) -> Plan:
        main, subagent = fitted.learned.main, fitted.learned.subagent
        return plan_of(
            _compiled(name, main, fitted.scenario),
            _compiled(name, subagent, fitted.scenario),
            sequences,
            fitted.scenario.ttl_seconds,
        )

    return laid_out


def _by_project(compiled: Callable[[list[tuple[Life, Setting]]], list[Thresholds]]) -> Candidate:
    """Return a rule that knows how the sessions of each project go on.

    Parameters
    ----------
    compiled : callable
        Compiles many problems at once, which is faster than one after the other.
    """

    def laid_out(fitted: Fitted, sequences: Sequences) -> Plan:
        known, scenario = fitted.learned, fitted.scenario
        projects = sorted(set(sequences.project))
        habits = [known.subagent, *(known.of_project(project) for project in projects)]
        subagent, *mains = compiled([(each.life, each.setting(scenario)) for each in habits])
        plans = {
            project: plan_of(main, subagent, sequences, scenario.ttl_seconds)
            for project, main in zip(projects, mains, strict=True)
        }
        return by_unit([plans[project] for project in sequences.project], sequences)

    return laid_out


def _compiled(name: str, habits: Habits, scenario: Scenario) -> Thresholds:
    return RULES[name](habits.life, habits.setting(scenario))


def occupancy(context_tokens: float) -> Candidate:
    """Return the threshold that everybody ships."""

    def laid_out(fitted: Fitted, sequences: Sequences) -> Plan:
        del fitted
        return _single(fixed_plans(sequences, (context_tokens,)))

    return laid_out


def _share_of_window(share: float) -> Candidate:
    """Return the threshold at a share of what the model can hold."""

    def laid_out(fitted: Fitted, sequences: Sequences) -> Plan:
        return occupancy(share * fitted.scenario.window_tokens)(fitted, sequences)

    return laid_out


def _three_thresholds(fitted: Fitted, sequences: Sequences) -> Plan:
    found: ThreeThresholds = train_three_thresholds(
        fitted.sequences, fitted.aftermath, fitted.scenario
    )
    main = _single(fixed_plans(sequences, (found.main,), turn_end_tokens=found.turn_end))
    subagent = _single(fixed_plans(sequences, (found.subagent,)))
    of_main = sequences.main[sequences.unit]
    before = np.where(of_main, main.before_request, subagent.before_request)
    return replace(main, before_request=before)


def _break_even_session(fitted: Fitted, sequences: Sequences) -> Plan:
    """Return break-even against the mean residual life of whole sessions."""
    main, life = fitted.learned.main, session_life(fitted.sequences)
    return plan_of(
        RULES["break-even"](life, main.setting(fitted.scenario)),
        _compiled("break-even", fitted.learned.subagent, fitted.scenario),
        sequences,
        fitted.scenario.ttl_seconds,
        by_session=True,
    )


def _median_session(fitted: Fitted, sequences: Sequences) -> Plan:
    """Return break-even against the conditional median of what remains of a session."""
    main = fitted.learned.main
    own = fitted.sequences.chosen(fitted.sequences.main)
    lengths = np.sort(own.lengths)
    medians = [float(np.median(lengths[lengths > made]) - made) for made in range(int(lengths[-1]))]
    return plan_of(
        thresholds_by_remaining("median-session", medians, main.setting(fitted.scenario)),
        _compiled("break-even", fitted.learned.subagent, fitted.scenario),
        sequences,
        fitted.scenario.ttl_seconds,
        by_session=True,
    )


def _idle_by_session(fitted: Fitted, sequences: Sequences) -> Plan:
    """Return `idle` by project whose probability of a late return knows the session's age."""
    scenario, known = fitted.scenario, fitted.learned
    returns = fit_returns(waits_of(fitted.sequences, known, scenario), scenario.ttl_seconds)
    waits = waits_of(sequences, known, scenario)
    chances = returns.probability(waits.known)
    projects = [sequences.project[unit] for unit in sequences.unit[waits.row].tolist()]
    settings = {
        project: (known.of_project(project).life, known.of_project(project).setting(scenario))
        for project in sorted(set(projects))
    }
    thresholds = idle_thresholds(settings, projects, chances)
    plan = _by_project(idles)(fitted, sequences)
    return with_idle(plan, sequences, waits, thresholds, scenario)


def _single(plans: Plan) -> Plan:
    return Plan(plans.before_request[0], plans.in_pause[0], plans.after_last[0])


#: By the name a table prints; every one is forced at the scenario's limit.
CANDIDATES: Mapping[str, Candidate] = {
    "never": occupancy(NEVER),
    **{f"occupancy {size}k": occupancy(1_000.0 * size) for size in (60, 80, 100, 120, 150, 167)},
    "occupancy 80%": _share_of_window(0.80),
    "occupancy 95%": _share_of_window(0.95),
    "eoq": _by_name("eoq"),
    "three-thresholds": _three_thresholds,
    "fixed-remaining": _by_name("fixed-remaining"),
    "median-remaining": _by_name("median-remaining"),
    "lindy": _by_name("lindy"),
    "median-session": _median_session,
    "break-even": _by_name("break-even"),
    "break-even session": _break_even_session,
    "reorder": _by_name("reorder"),
    "renewal": _by_name("renewal"),
    "idle": _by_name("idle"),
    "renewal by project": _by_project(renewals),
    "idle by project": _by_project(idles),
    "idle by session": _idle_by_session,
}

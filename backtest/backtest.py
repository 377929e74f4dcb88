"""The backtest: what rules would have cost on whole sequences, and how sure that is."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from backtest.bootstrap import DRAWS, Ratios, drawn_ratios
from backtest.candidates import CANDIDATES, Candidate
from backtest.known import growth_so_far, turns_alone
from backtest.observed import learned_aftermath, observed_compactions
from backtest.prequential import prequential
from backtest.scenario import Aftermath, Scenario
from backtest.sequences import Sequences
from backtest.trial import Mapped, Trial, halves, round_trial, rounds_of
from compactuary.errors import InputError

__all__ = [
    "BASELINE",
    "CLAIRVOYANT",
    "HINDSIGHT",
    "HORIZONS",
    "MEASURED",
    "SPLITS",
    "Backtest",
    "Leavings",
    "Options",
    "RuleResult",
    "backtest",
    "compared_results",
]

HORIZONS = ("session", "turn")
SPLITS = ("time", "random")
BASELINE = "trigger"
HINDSIGHT = "best threshold"
CLAIRVOYANT = "clairvoyant"

_Numbers = NDArray[np.float64]


class Leavings(NamedTuple):
    """What a compaction leaves behind: in truth, and as rules that know some sequences believe.

    Parameters
    ----------
    name : str
        Such as 'X′ and L as measured'.
    truth : callable
        ``sequences -> Aftermath``.
    believed : callable
        ``sequences that a rule knows -> Aftermath`` of them.
    """

    name: str
    truth: Callable[[Sequences], Aftermath]
    believed: Callable[[Sequences], Aftermath]


def _measured(sequences: Sequences, *, own: bool) -> Aftermath:
    return learned_aftermath(sequences, np.ones(sequences.units, dtype=np.bool_), own=own)


MEASURED = Leavings(
    "X′ and L as measured",
    lambda sequences: _measured(sequences, own=True),
    lambda sequences: _measured(sequences, own=False),
)


@dataclass(frozen=True, slots=True)
class Options:
    """How rules are compared.

    Parameters
    ----------
    rules : tuple of str
        Names of `candidates`.
    horizon : {'session', 'turn'}
        Whether units are whole sessions, or turns that stand alone.
    split : {'time', 'random'}
        Prequential, or random halves both ways.
    seed : int, default 0
        Of the random halves and of the bootstrap.
    draws : int, default 1,000
        Of the bootstrap.
    leavings : Leavings
        By default X′ and L as measured.
    """

    rules: tuple[str, ...] = tuple(CANDIDATES)
    horizon: Literal["session", "turn"] = "session"
    split: Literal["time", "random"] = "time"
    seed: int = 0
    draws: int = DRAWS
    leavings: Leavings = MEASURED


@dataclass(frozen=True, slots=True)
class RuleResult:
    """One rule on the units scored.

    Parameters
    ----------
    rule : str
    cost : float
        Base tokens: the input side and the summaries.
    dollars : float or None
        None where no price of a base token is known.
    relative : float
        Cost over that of the baseline, less 1.
    interval : tuple of float
        90% interval of it, paired, by session.
    shown : bool
        Whether the interval leaves 0 out; else no difference is shown.
    shown_together : bool
        Whether it is shown also for all rules of the table at once.
    over_best : float
        Cost less that of the best fixed threshold in hindsight, over the baseline's.
    over_best_interval : tuple of float
        90% interval of it.
    share : float or None
        Part of the clairvoyant's saving; None where the clairvoyant saves nothing.
    regret : float
        Cost less the clairvoyant's, over the baseline's.
    compactions : float or None
        How often it compacted: a mean over splits. None in hindsight over several thresholds.
    share_paid : float or None
        Part of those that saved more than they cost, up to the next one or the end.
    hindsight : bool
        Whether it was chosen on the units that it is billed on: no rule that anybody could use.
    """

    rule: str
    cost: float
    dollars: float | None
    relative: float
    interval: tuple[float, float]
    shown: bool
    shown_together: bool
    over_best: float
    over_best_interval: tuple[float, float]
    share: float | None
    regret: float
    compactions: float | None
    share_paid: float | None
    hindsight: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Backtest:
    """Rules on sequences.

    Parameters
    ----------
    options : Options
    scenario : Scenario
        Prices, and the limit.
    sequences : Sequences
        All units, those not scored too.
    aftermath : Aftermath
        What compactions leave in them.
    trial : Trial
        Bills by rule and unit.
    baseline : RuleResult
        The trigger at the limit.
    rules : tuple of RuleResult
        Least cost first; the best fixed threshold and the clairvoyant, chosen in hindsight, last.
    compactions_seen : int
        How many compactions of the logs X′ and L rest on; 0 where they are assumed.
    dollars_per_token : float or None
        Price of a base token.
    """

    options: Options
    scenario: Scenario
    sequences: Sequences
    aftermath: Aftermath
    trial: Trial
    baseline: RuleResult
    rules: tuple[RuleResult, ...]
    compactions_seen: int
    dollars_per_token: float | None


def backtest(
    sequences: Sequences,
    scenario: Scenario,
    options: Options | None = None,
    *,
    dollars_per_token: float | None = None,
    candidates: Mapping[str, Candidate] = CANDIDATES,
    mapped: Mapped = map,
) -> Backtest:
    """Replay rules on sequences.

    Parameters
    ----------
    sequences : Sequences
        As the logs tell them.
    scenario : Scenario
        Prices, and the limit at which every rule is forced: the baseline.
    options : Options, optional
        By default every rule, whole sessions, prequentially.
    dollars_per_token : float, optional
        Price of a base token.
    candidates : mapping of str to Candidate
        Where the options' rules are looked up.
    mapped : callable, optional
        What calls a function on each of several items, here or on other processes.

    Raises
    ------
    InputError
        There is no such rule, horizon or split, or nothing to learn from or to score on.
    """
    asked = options or Options(rules=tuple(candidates))
    _check(asked, candidates)
    units = growth_so_far(turns_alone(sequences) if asked.horizon == "turn" else sequences)
    aftermath = asked.leavings.truth(units)
    chosen = {name: candidates[name] for name in asked.rules}
    trial = _trial(units, aftermath, scenario, asked, chosen, mapped)
    results = compared_results(trial, units, asked, dollars_per_token=dollars_per_token)
    return Backtest(
        options=asked,
        scenario=scenario,
        sequences=units,
        aftermath=aftermath,
        trial=trial,
        baseline=results[0],
        rules=tuple(results[1:]),
        compactions_seen=int(observed_compactions(units).unit.size),
        dollars_per_token=dollars_per_token,
    )


def compared_results(
    found: Trial,
    sequences: Sequences,
    options: Options,
    *,
    dollars_per_token: float | None = None,
    units: NDArray[np.bool_] | None = None,
) -> list[RuleResult]:
    """Return the baseline, then every rule, then what was chosen in hindsight.

    Parameters
    ----------
    found : Trial
    sequences : Sequences
        Which the trial is of.
    options : Options
    dollars_per_token : float, optional
    units : ndarray of bool, optional
        Only these, such as one project's.
    """
    kept = found.scored if units is None else found.scored & units
    columns = _columns(found, kept)
    baseline, ceiling = columns.cost[0], columns.cost[-1]
    total = float(baseline.sum()) or 1.0
    sessions = [sequences.session[place] for place in np.flatnonzero(kept).tolist()]
    draw = {"draws": options.draws, "seed": options.seed}
    ratios = drawn_ratios(columns.cost - baseline, baseline, sessions, **draw)
    to_best = drawn_ratios(columns.cost - columns.cost[-2], baseline, sessions, **draw)
    room = float((baseline - ceiling).sum())
    results = []
    for place, name in enumerate(columns.names):
        cost = float(columns.cost[place].sum())
        results.append(
            RuleResult(
                rule=name,
                cost=cost,
                dollars=None if dollars_per_token is None else cost * dollars_per_token,
                **_intervals(ratios, to_best, place),
                share=float((baseline - columns.cost[place]).sum()) / room if room > 0 else None,
                regret=float((columns.cost[place] - ceiling).sum()) / total,
                **_counts(columns, place),
                hindsight=place >= len(columns.names) - 2,
            )
        )
    rules = sorted(results[1:-2], key=lambda one: one.cost)
    return [results[0], *rules, *results[-2:]]


class _Columns(NamedTuple):
    """Bills of the baseline, the rules, the best threshold and the clairvoyant."""

    names: tuple[str, ...]
    cost: _Numbers
    compactions: _Numbers
    paid: _Numbers


def _columns(found: Trial, kept: NDArray[np.bool_]) -> _Columns:
    unknown = np.full((1, int(kept.sum())), np.nan)
    reference = found.reference

    def stacked(rules: _Numbers, both: _Numbers, best: _Numbers) -> _Numbers:
        return np.concatenate([both[:1, kept], rules[:, kept], best, both[1:, kept]])

    return _Columns(
        (BASELINE, *found.rules, HINDSIGHT, CLAIRVOYANT),
        stacked(found.cost, reference.cost, found.best[None, kept]),
        stacked(found.compactions, reference.compactions.astype(np.float64), unknown),
        stacked(found.paid, reference.paid.astype(np.float64), unknown),
    )


def _intervals(ratios: Ratios, to_best: Ratios, place: int) -> dict[str, Any]:
    return {
        "relative": float(ratios.estimate[place]),
        "interval": (float(ratios.lower[place]), float(ratios.upper[place])),
        "shown": bool(ratios.shown[place]),
        "shown_together": bool(ratios.shown_together[place]),
        "over_best": float(to_best.estimate[place]),
        "over_best_interval": (float(to_best.lower[place]), float(to_best.upper[place])),
    }


def _counts(columns: _Columns, place: int) -> dict[str, Any]:
    made, paid = float(columns.compactions[place].sum()), float(columns.paid[place].sum())
    known = np.isfinite(made)
    return {
        "compactions": made if known else None,
        "share_paid": paid / made if known and made else None,
    }


def _trial(
    sequences: Sequences,
    aftermath: Aftermath,
    scenario: Scenario,
    options: Options,
    candidates: Mapping[str, Candidate],
    mapped: Mapped,
) -> Trial:
    if options.split == "time":
        rounds = prequential(sequences)
    else:
        rounds = rounds_of(sequences, halves(sequences, (options.seed,)))
    return round_trial(
        sequences,
        aftermath,
        scenario,
        rounds,
        candidates,
        options.leavings.believed,
        mapped=mapped,
    )


def _check(options: Options, candidates: Mapping[str, Candidate]) -> None:
    known = {"horizon": HORIZONS, "split": SPLITS}
    for name, choices in known.items():
        if getattr(options, name) not in choices:
            raise InputError(
                f"no such {name}",
                where=name,
                value=getattr(options, name),
                remedy=f"Choose one of {', '.join(choices)}",
            )
    wrong = next((name for name in options.rules if name not in candidates), None)
    if wrong is not None or not options.rules:
        raise InputError(
            "no such rule",
            where="rules",
            value=wrong or "none",
            remedy=f"Choose among {', '.join(candidates)}",
        )
    if options.draws < 1:
        raise InputError(
            "no bootstrap without draws", where="draws", value=options.draws, remedy="Give 1,000"
        )

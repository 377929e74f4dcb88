"""Where to switch a rule on: what it would have saved in each role, and where m changes nothing."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from backtest.backtest import Backtest
from backtest.bootstrap import Ratios, drawn_ratios
from compactuary.errors import InputError

__all__ = ["LEAST_SESSIONS", "WITHOUT_M", "WITH_M", "RoleSaving", "role_savings"]

#: Two rules that differ in nothing but m: one weighs what remains, one takes it for endless.
WITH_M, WITHOUT_M = "reorder", "eoq"
#: Roles seen in fewer sessions are not judged.
LEAST_SESSIONS = 5

_Numbers = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class RoleSaving:
    """A role under a rule, against the trigger at the limit.

    Parameters
    ----------
    role : str
    rule : str
    turns, sessions, requests : int
        What was scored.
    saving : float
        Base tokens, expected from as many turns again; negative where the rule costs more.
    saving_interval : tuple of float
        90% interval of it, by session.
    dollars : float or None
        The saving in dollars; None where no price is known.
    relative : float
        Minus the saving over the trigger's bill.
    verdict : {'on', 'off', 'no difference shown', 'nothing to decide', 'too few sessions'}
        On where the rule is cheaper and off where it is dearer, for all roles at once at 95%;
        else no difference is shown. Nothing is to be decided where neither ever compacts.
    with_m : float
        Bill of `reorder` less that of `eoq`, over the trigger's: what m(i) is worth, as the two
        differ in nothing else.
    with_m_interval : tuple of float
        90% interval of it.
    m_matters : bool or None
        Whether the interval leaves 0 out; None where the role is not judged.
    """

    role: str
    rule: str
    turns: int
    sessions: int
    requests: int
    saving: float
    saving_interval: tuple[float, float]
    dollars: float | None
    relative: float
    verdict: str
    with_m: float
    with_m_interval: tuple[float, float]
    m_matters: bool | None


def role_savings(found: Backtest, rule: str) -> list[RoleSaving]:
    """Return what a rule would have saved by role, most requests first.

    Parameters
    ----------
    found : Backtest
        Whose rules contain `rule`, 'reorder' and 'eoq'.
    rule : str

    Raises
    ------
    InputError
        One of them was not among the rules compared.
    """
    trial, sequences = found.trial, found.sequences
    for name in (rule, WITH_M, WITHOUT_M):
        if name not in trial.rules:
            raise InputError(
                "was not among the rules compared",
                where="rules",
                value=name,
                remedy=f"Compare {rule}, {WITH_M} and {WITHOUT_M}",
            )
    units = np.flatnonzero(trial.scored)
    names, code = np.unique([sequences.role[unit] for unit in units.tolist()], return_inverse=True)
    of_role = code == np.arange(names.size)[:, None]
    sessions = [sequences.session[unit] for unit in units.tolist()]
    bills = of_role * trial.baseline[units]

    def drawn(difference: _Numbers) -> Ratios:
        draws, seed = found.options.draws, found.options.seed
        return drawn_ratios(of_role * difference[units], bills, sessions, draws=draws, seed=seed)

    saved = drawn(trial.of(rule) - trial.baseline)
    gained = drawn(trial.of(WITH_M) - trial.of(WITHOUT_M))
    turns = np.bincount(sequences.unit[sequences.last], minlength=sequences.units)
    rows = [
        _row(name, rule, found, units[of_role[place]], turns, saved, gained, place)
        for place, name in enumerate(names.tolist())
    ]
    return sorted(rows, key=lambda row: (-row.requests, row.role))


def _row(
    role: str,
    rule: str,
    found: Backtest,
    units: NDArray[np.int64],
    turns: NDArray[np.int64],
    saved: Ratios,
    gained: Ratios,
    place: int,
) -> RoleSaving:
    sequences = found.sequences
    seen = len({sequences.session[unit] for unit in units.tolist()})
    total, judged = float(found.trial.baseline[units].sum()), seen >= LEAST_SESSIONS
    saving = 0.0 - float(saved.estimate[place]) * total
    price = found.dollars_per_token
    return RoleSaving(
        role=role,
        rule=rule,
        turns=int(turns[units].sum()),
        sessions=seen,
        requests=int(sequences.lengths[units].sum()),
        saving=saving,
        saving_interval=(-float(saved.upper[place]) * total, -float(saved.lower[place]) * total),
        dollars=None if price is None else saving * price,
        relative=float(saved.estimate[place]),
        verdict=_verdict(found, rule, units, saving if saved.shown_together[place] else 0.0)
        if judged
        else "too few sessions",
        with_m=float(gained.estimate[place]),
        with_m_interval=(float(gained.lower[place]), float(gained.upper[place])),
        m_matters=bool(gained.shown[place]) if judged else None,
    )


def _verdict(found: Backtest, rule: str, units: NDArray[np.int64], shown_saving: float) -> str:
    made = found.trial.compactions[found.trial.rules.index(rule), units]
    if not made.any() and not found.trial.reference.compactions[0, units].any():
        return "nothing to decide"
    if not shown_saving:
        return "no difference shown"
    return "on" if shown_saving > 0 else "off"

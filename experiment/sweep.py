"""The sweep: every arm with more and more injected documents, and one arm over its threshold."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from compactuary.errors import InputError
from experiment.arms import ARMS
from experiment.graph import ReportRun, Setting, run_report
from experiment.model import Model
from policy.prices import Prices

__all__ = ["DOCUMENTS", "SWEPT", "THRESHOLDS", "THRESHOLD_TOKENS", "Plan", "Sweep", "sweep"]

#: Injected documents, unless asked otherwise.
DOCUMENTS = (0, 10, 25, 50)
#: Where every arm compacts.
THRESHOLD_TOKENS = 15_000
#: Where the preserving arm compacts, one after the other.
THRESHOLDS = (6_000, 10_000, 15_000, 20_000, 25_000, 30_000)
#: The arm whose threshold is swept.
SWEPT = "preserving"


@dataclass(frozen=True, slots=True)
class Plan:
    """What is run.

    Parameters
    ----------
    documents : tuple of int
        Injected documents.
    arms : tuple of str
    threshold_tokens : int
        Context past which the arms compact.
    thresholds : tuple of int
        Those of the preserving arm, at the largest number of documents; none: not swept.
    seed : int
        Of documents and, where it is simulated, model: the same for all runs.

    Raises
    ------
    InputError
        Nothing is to be run, or an arm, a number of documents or a threshold is wrong.
    """

    documents: tuple[int, ...] = DOCUMENTS
    arms: tuple[str, ...] = ARMS
    threshold_tokens: int = THRESHOLD_TOKENS
    thresholds: tuple[int, ...] = THRESHOLDS
    seed: int = 0

    def __post_init__(self) -> None:
        for where, given in (("--documents", self.documents), ("--arms", self.arms)):
            if not given:
                raise InputError("is empty", where=where, remedy="Name at least one")
        self.settings()

    def settings(self) -> list[Setting]:
        """Return every run once, those of the arms first."""
        of_arms = [
            Setting(arm, count, self.threshold_tokens, self.seed)
            for arm in self.arms
            for count in self.documents
        ]
        return list(dict.fromkeys([*of_arms, *self.swept()]))

    def swept(self) -> list[Setting]:
        """Return the runs over the threshold."""
        most = max(self.documents)
        return [Setting(SWEPT, most, each, self.seed) for each in self.thresholds]


@dataclass(frozen=True, slots=True)
class Sweep:
    """What came of it.

    Parameters
    ----------
    plan : Plan
    prices : Prices
        What the bills are reckoned with.
    runs : tuple of ReportRun
        By arm, then by documents.
    thresholds : tuple of ReportRun
        Of the preserving arm, by threshold.
    """

    plan: Plan
    prices: Prices
    runs: tuple[ReportRun, ...]
    thresholds: tuple[ReportRun, ...]

    def run(self, arm: str, documents: int) -> ReportRun:
        """Return one arm's run."""
        return next(
            one
            for one in self.runs
            if one.setting.arm == arm and one.setting.documents == documents
        )

    def of_arm(self, arm: str) -> list[ReportRun]:
        """Return an arm's runs by documents."""
        return [one for one in self.runs if one.setting.arm == arm]


def sweep(
    model: Model,
    prices: Prices,
    plan: Plan,
    progress: Callable[[Setting], None] | None = None,
) -> Sweep:
    """Run what is planned, one after the other.

    Parameters
    ----------
    model : Model
    prices : Prices
    plan : Plan
    progress : callable, optional
        Told of every run before it begins.

    Raises
    ------
    CompactuaryError
        The model's provider refused.
    """
    done: dict[Setting, ReportRun] = {}
    for setting in plan.settings():
        if progress:
            progress(setting)
        done[setting] = run_report(setting, model, prices)
    of_arms = [
        Setting(arm, count, plan.threshold_tokens, plan.seed)
        for arm in plan.arms
        for count in plan.documents
    ]
    return Sweep(plan, prices, _chosen(done, of_arms), _chosen(done, plan.swept()))


def _chosen(done: dict[Setting, ReportRun], settings: Iterable[Setting]) -> tuple[ReportRun, ...]:
    found: Sequence[ReportRun] = [done[one] for one in settings]
    return tuple(found)

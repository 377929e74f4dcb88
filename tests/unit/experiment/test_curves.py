"""Curves in letters, and the plan of a sweep."""

import pytest

from compactuary.errors import InputError
from experiment.arms import ARMS
from experiment.curves import letter_curves
from experiment.sweep import Plan


def test_letters_stand_where_the_values_are():
    series = {"trimming": [1.0, 0.5], "baseline": [1.0, 0.0], "naive": [0.8, 0.26]}
    assert letter_curves("quality", series, (0, 50), 1.0, ["0", "½", "1"]) == (
        "quality\n"
        "1 | btn\n"
        "½ |         tn\n"
        "0 |         b\n"
        "  +----------------\n" + "    0       50 injected documents\n"
        "    b baseline, t trimming, n naive\n"
    )


def test_every_arm_has_a_letter_of_its_own():
    assert len({arm[0] for arm in ARMS}) == len(ARMS)


def test_a_plan_runs_nothing_twice():
    plan = Plan(documents=(0, 5), arms=("preserving", "naive"), thresholds=(6_000, 15_000))
    told = [(one.arm, one.documents, one.threshold_tokens) for one in plan.settings()]
    assert told == [
        ("preserving", 0, 15_000),
        ("preserving", 5, 15_000),
        ("naive", 0, 15_000),
        ("naive", 5, 15_000),
        ("preserving", 5, 6_000),
    ]


@pytest.mark.parametrize(
    ("given", "where"),
    [
        ({"arms": ("forgetting",)}, "--arms"),
        ({"arms": ()}, "--arms"),
        ({"documents": ()}, "--documents"),
        ({"documents": (0, -1)}, "--documents"),
        ({"threshold_tokens": 100}, "--threshold, --thresholds"),
        ({"thresholds": (4_999,)}, "--threshold, --thresholds"),
    ],
)
def test_a_wrong_plan_is_refused(given, where):
    with pytest.raises(InputError) as refused:
        Plan(**given)
    assert refused.value.where == where
    assert refused.value.remedy

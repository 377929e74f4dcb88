"""C as strategies quote it against C as the local cache server bills it, on real sessions.

``python -m benchmarks.quoted_cost [EVERY]`` takes one session of so many, default 12; 1 takes all
and half an hour. It needs the shared data folder beside the checkout.
"""

import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from strategies.registry import strategy
from strategies.strategy import Strategy
from tests.provider.billed import Compared, compared, views_of
from tests.provider.real_sessions import SESSIONS, messages_of

__all__ = ["sampled"]

#: Of less than this an error in percent says nothing.
LEAST_COST = 1_000
LEAST_MESSAGES = 3


def made_in(folder: Path) -> dict[str, Callable[[Any], Strategy]]:
    """Return what makes each strategy of a summarizer; transcripts go to a folder."""
    return {
        "sliding_window": lambda _: strategy("sliding_window", keep_last=10),
        "token_budget": lambda _: strategy("token_budget", budget_tokens=20_000),
        "micro": lambda _: strategy("micro"),
        "tail_digest": lambda _: strategy("tail_digest"),
        "summarize": lambda model: strategy("summarize", model=model),
        "summarize within a turn": lambda model: strategy(
            "summarize", model=model, within_turn=True
        ),
        "auto": lambda model: strategy("auto", model=model, transcripts=folder),
    }


def sampled(paths: Sequence[Path], folder: Path) -> dict[tuple[str, str], list[Compared]]:
    """Return what was compared at the end of sessions, by strategy and knowledge of tokens."""
    found = defaultdict(list)
    for messages in map(messages_of, paths):
        if len(messages) < LEAST_MESSAGES:
            continue
        views = views_of(messages)
        for name, make in made_in(folder).items():
            for known, each in compared(make, messages, views).items():
                if each.billed >= LEAST_COST:
                    found[name, known].append(each)
    return found


def main() -> None:
    """Print the errors of one run."""
    print("error of C quoted: median, 90% within, and the share within 10% and 2%")
    every = int(sys.argv[1]) if len(sys.argv) > 1 else 12
    with tempfile.TemporaryDirectory() as folder:
        found = sampled(SESSIONS[::every], Path(folder))
    for (name, known), each in sorted(found.items()):
        errors = np.array([one.error for one in each])
        size = np.abs(errors)
        within = f"{np.mean(size <= 0.1):5.0%} {np.mean(size <= 0.02):5.0%}"
        print(
            f"{name:<24}{known:<15}{len(each):>4} sessions {np.median(errors):+7.1%} "
            f"{np.quantile(size, 0.9):6.1%} {within}"
        )


if __name__ == "__main__":
    main()

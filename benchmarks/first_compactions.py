"""How well what is learned foretells the first request after a compaction, and how soon.

Each project of a folder of Claude Code logs is a user who starts with an empty ledger. Every
compaction is foretold from those before it alone, then by medians of all others of its project.
"""

import argparse
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from api.learned_parameters import Group, blended
from api.role_samples import TokenSamples, compaction_samples
from estimator.samples import median_sample
from ledger.compaction_observations import CompactionSeen, compactions_seen, latest_compactions
from ledger.database import open_engine, reading
from ledger.importing import import_logs
from ledger.log_file import ImportOptions
from migrations.upgrade import upgrade
from policy.parameters import ASSUMED, DEFAULT_STRATEGY
from policy.sizes import CONTEXT_AFTER_TOKENS, GROWTH_TOKENS, PREFIX_TOKENS

LOGS = Path(__file__).parents[2] / "shared" / "data" / "logs"
#: What others assume: the kept prefix and 16,000 tokens of summary and tail.
ASSUMED_ELSEWHERE = PREFIX_TOKENS + 16_000
FULL = (0.0, 0.1, 0.25, 0.5, 1.0, 2.0, 3.0, 5.0, 10.0)
FIRST = 10


class Forecast(NamedTuple):
    """Context, cache reads and cache writes of a first request after a compaction."""

    context: float
    read: float
    written: float


class Told(NamedTuple):
    """A compaction, how many came before it, and what was foretold."""

    project: str
    before: int
    seen: CompactionSeen
    learned: Forecast


def projects(logs: Path) -> dict[str, list[CompactionSeen]]:
    """Return each project's summaries that a request followed, oldest first."""
    found = {}
    for folder in sorted(path for path in logs.iterdir() if path.is_dir()):
        own = folder / "claude-code"
        if not own.is_dir() and not list(folder.glob("*/subagents")):
            continue
        with tempfile.TemporaryDirectory() as place:
            engine = open_engine(str(Path(place) / "ledger.db"))
            upgrade(engine)
            import_logs(engine, [own if own.is_dir() else folder], ImportOptions(skip_corrupt=True))
            with reading(engine) as connection:
                rows = latest_compactions(connection, 10_000)
                seen = compactions_seen(connection, rows)
            engine.dispose()
        kept = [seen[row.compaction_id] for row in reversed(rows) if row.compaction_id in seen]
        summaries = [
            one for one in kept if one.strategy == DEFAULT_STRATEGY and one.cached_after is not None
        ]
        if summaries:
            found[folder.name] = summaries
    return found


def actual(seen: CompactionSeen) -> Forecast:
    """Return what the request after a compaction used."""
    context, read = seen.context_after or 0, seen.cached_after or 0
    return Forecast(context, read, context - read - (seen.uncached_after or 0))


def prequential(found: Mapping[str, Sequence[CompactionSeen]]) -> Iterator[Told]:
    """Foretell every compaction from the ones before it, as the service would."""
    for project, seen in found.items():
        for number, one in enumerate(seen):
            past = seen[:number]
            first = [other.opening_context for other in seen[: number + 1] if other.opening_context]
            yield Told(project, number, one, foretold(one, past, first))


def foretold(
    one: CompactionSeen, past: Sequence[CompactionSeen], first_contexts: Sequence[int]
) -> Forecast:
    """Return the forecast for a role's compaction on its model.

    Parameters
    ----------
    past : sequence of CompactionSeen
        Those before it, oldest first.
    first_contexts : sequence of int
        Of sessions so far; a session's own is known before its first compaction.
    """
    tokens = TokenSamples(median_sample(first_contexts[-20:]))
    role = blended("main", "", "role", _group(past, tokens), ASSUMED)
    on_model = [other for other in past if other.model == one.model]
    known = blended("main", one.model, "model", _group(on_model, TokenSamples()), role).compaction()
    context, read = known.context_after_tokens.value, known.cached_after_tokens.value
    return Forecast(context, read, context - read - (one.uncached_after or 0))


def _group(past: Sequence[CompactionSeen], tokens: TokenSamples) -> Group:
    samples = compaction_samples(past[::-1], GROWTH_TOKENS)
    return Group(tokens, compactions={DEFAULT_STRATEGY: samples} if past else {})


def left_out(found: Mapping[str, Sequence[CompactionSeen]]) -> list[tuple[Forecast, Forecast]]:
    """Return forecasts by the plain medians of a project's other compactions, and what was."""
    pairs = []
    for seen in found.values():
        used = np.array([actual(one) for one in seen], dtype=np.float64)
        for number, one in enumerate(seen):
            others = np.delete(used, number, axis=0)
            if len(others):
                context, read, _ = np.median(others, axis=0)
                written = context - read - (one.uncached_after or 0)
                pairs.append((Forecast(context, read, written), actual(one)))
    return pairs


def errors(pairs: Iterable[tuple[Forecast, Forecast]]) -> dict[str, list[float]]:
    """Return relative errors by what is foretold; what was 0 has none."""
    found: dict[str, list[float]] = {name: [] for name in Forecast._fields}
    for forecast, was in pairs:
        for wrong, guess, true in zip(found.values(), forecast, was, strict=True):
            if true:
                wrong.append(abs(guess - true) / true)
    return found


def with_full(
    found: Mapping[str, Sequence[CompactionSeen]],
    value: Callable[[CompactionSeen], float],
    prior: Callable[[CompactionSeen], float],
    full: float,
    latest: int | None = None,
) -> float:
    """Return the mean relative error over the first ten compactions of each project and model.

    Parameters
    ----------
    value, prior : callable
        What is foretold, and what it is guessed to be before anything is learned.
    full : float
        K.
    latest : int, optional
        How many of the past are looked at; all by default.
    """
    wrong = []
    for seen in found.values():
        for model in {one.model for one in seen}:
            own = [one for one in seen if one.model == model and value(one)]
            for number, one in enumerate(own[: FIRST + 1]):
                past = [value(other) for other in own[:number]][-(latest or number or 1) :]
                z = len(past) / (len(past) + full) if past else 0.0
                guess = (1 - z) * prior(one) + (z * float(np.median(past)) if past else 0.0)
                wrong.append(abs(guess - value(one)) / value(one))
    return float(np.mean(wrong))


def _print_errors(title: str, pairs: Iterable[tuple[Forecast, Forecast]]) -> None:
    for name, wrong in errors(pairs).items():
        median, mean = np.median(wrong), np.mean(wrong)
        print(f"{title:34}{name:10}{len(wrong):5}  median {median:6.1%}  mean {mean:6.1%}")


def _print_soon(told: Sequence[Told]) -> None:
    head = "learned"
    print(
        f"\nmean error of the context after n compactions of a project  {head:>9}     51k     44k"
    )
    for number in (0, 1, 2, 3, 5):
        now = [one for one in told if one.before == number]
        truth = np.array([actual(one.seen).context for one in now])
        guesses = (
            np.array([one.learned.context for one in now]),
            float(CONTEXT_AFTER_TOKENS),
            float(ASSUMED_ELSEWHERE),
        )
        means = [float(np.mean(np.abs(guess - truth) / truth)) for guess in guesses]
        told_means = "".join(f"{mean:8.1%}" for mean in means)
        print(f"n = {number}, {len(now)} projects{'':42}{told_means}")


def main(arguments: Sequence[str] = ()) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.first_compactions")
    parser.add_argument("--logs", type=Path, default=LOGS)
    found = projects(parser.parse_args(arguments).logs)
    counts = ", ".join(f"{name} {len(seen)}" for name, seen in found.items())
    print(f"summaries that a request followed: {counts}\n")
    told = list(prequential(found))
    _print_errors("from those before it", [(one.learned, actual(one.seen)) for one in told])
    _print_errors("medians of all others", left_out(found))
    _print_soon(told)
    print("\nmean error over the first ten of each project and model, by K")
    print(f"{'':34}" + "".join(f"{full:>8g}" for full in FULL))
    lines = {
        "context, guessed 51k": (_context, lambda _one: CONTEXT_AFTER_TOKENS, None),
        "context, guessed first + 9k": (_context, lambda one: _first(one) + 9_000, None),
        "cache reads, all": (_read, lambda one: _first(one) * 2 / 3, None),
        "cache reads, latest five": (_read, lambda one: _first(one) * 2 / 3, 5),
    }
    for name, (value, prior, latest) in lines.items():
        wrong = [with_full(found, value, prior, full, latest) for full in FULL]
        print(f"{name:34}" + "".join(f"{one:8.1%}" for one in wrong))


def _context(one: CompactionSeen) -> float:
    return actual(one).context


def _read(one: CompactionSeen) -> float:
    return actual(one).read


def _first(one: CompactionSeen) -> float:
    return one.opening_context or 42_000


if __name__ == "__main__":
    main(sys.argv[1:])

"""One quote, one whole answer and one local decision, in process, with prices cached."""

import timeit
from datetime import UTC, datetime

from api.compiler import Compiler
from api.estimates import Estimates
from policy.decision import decide
from policy.parameters import ASSUMED
from policy.prices import GenaiPriceBook
from policy.question import Question
from policy.quote import quote
from policy.served_thresholds import asked_thresholds

REPEATS, TIMES = 9, 5_000
ASKED = Question(
    role="main", calls=12, context_tokens=150_000, model="claude-opus-4-8", rule="renewal"
)


def microseconds(work: object) -> float:
    """Return the least time of one run over several repeats; others on the machine only add."""
    took = timeit.repeat(work, number=TIMES, repeat=REPEATS)  # type: ignore[arg-type]
    return min(took) / TIMES * 1e6


def main() -> None:
    """Print the figures of one run."""
    snapshot, prices, now = Estimates().snapshot(0), GenaiPriceBook(), datetime.now(UTC)
    compiler = Compiler(lambda: snapshot, prices)
    key = asked_thresholds(ASKED, snapshot, prices, at=now)
    thresholds = compiler.compile(key, ASKED).thresholds

    def answer() -> object:
        return decide(ASKED, snapshot, prices, at=now, decision_id="d", book=compiler)

    def local() -> bool:
        threshold = thresholds.at("call", 12)
        return threshold is not None and threshold <= 150_000

    quoted = microseconds(lambda: quote(ASKED, prices, ASSUMED, at=now))
    print(f"one quote: {quoted:.1f} µs (target 20 µs)")
    print(f"one decision by thresholds: {microseconds(local):.2f} µs (target 10 µs)")
    print(f"one whole answer, with its reasons and basis: {microseconds(answer):.1f} µs")


if __name__ == "__main__":
    main()

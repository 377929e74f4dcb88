"""Every strategy on a long conversation, and on one ten times as long.

Times are of the processor, the least of a few runs: other work on the machine then counts little.
"""

import gc
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from policy.prices import Prices
from strategies.formats.recognise import see
from strategies.registry import strategy

MESSAGES, TIMES = 1_000, 7
MADE = (
    "none",
    "micro",
    "sliding_window",
    "token_budget budget_tokens=99",
    "tail_digest bulky_tokens=9",
    "summarize",
    "auto threshold_tokens=0",
    "compact_tool",
    "server_side",
)
#: What each may take on a thousand messages, in milliseconds, and that a quote may take.
MOST_MS = {"micro": 5.0, "sliding_window": 5.0}
MOST_QUOTE_MS = 1.0
PRICES = Prices("m", "caller", 0.1, 1.25, 2.0, 5.0, {}, None, "caller", None)


def long_session(messages: int) -> list[dict[str, Any]]:
    """Return a conversation of so many messages: prompts, calls, results and answers."""
    made: list[dict[str, Any]] = []
    for number in range(messages // 4):
        use = {"type": "tool_use", "id": f"c{number}", "name": "bash", "input": {"command": "ls"}}
        result = {"type": "tool_result", "tool_use_id": f"c{number}", "content": "line\n" * 40}
        made += [
            {"role": "user", "content": f"do {number}"},
            {"role": "assistant", "content": [{"type": "text", "text": "so"}, use]},
            {"role": "user", "content": [result]},
            {"role": "assistant", "content": "done"},
        ]
    return made


def milliseconds(run: Callable[[], object]) -> float:
    """Return the least time of a few runs, without full passes of the garbage collector."""
    spans = []
    gc.collect()
    gc.disable()
    for _ in range(TIMES):
        begun = time.process_time()
        run()
        spans.append(time.process_time() - begun)
    gc.enable()
    return min(spans) * 1000


def measured(made: str, folder: Path) -> str:
    """Return a line with the figures of one strategy."""
    settings: dict[str, Any] = {}
    if made.startswith(("summarize", "auto", "compact_tool")):
        settings["model"] = lambda _request: "brief"
    if made.startswith(("auto", "compact_tool")):
        settings["transcripts"] = folder
    chosen = strategy(made, **settings)
    small, large = long_session(MESSAGES), long_session(10 * MESSAGES)
    view = see(small)
    short, long = (milliseconds(lambda each=each: chosen.compact(each)) for each in (small, large))  # type: ignore[misc]
    quote = milliseconds(lambda: chosen.quote(view, PRICES))
    most = MOST_MS.get(chosen.name)
    aim = f" (at most {most:.0f})" if most else ""
    return (
        f"{made:<32}{MESSAGES} messages {short:6.2f} ms{aim}, {10 * MESSAGES} {long:7.1f} ms, "
        f"ratio {long / short:.1f} (10 is linear); quote of a view {quote:.2f} ms (at most "
        f"{MOST_QUOTE_MS:.0f})"
    )


def main() -> None:
    """Print the figures of one run."""
    with tempfile.TemporaryDirectory() as folder:
        for made in MADE:
            print(measured(made, Path(folder)))


if __name__ == "__main__":
    main()

"""Every strategy on a long conversation, and on one ten times as long."""

import gc
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from strategies.registry import strategy

MESSAGES, TIMES = 400, 5
MADE = (
    "micro",
    "sliding_window",
    "token_budget budget_tokens=99",
    "tail_digest bulky_tokens=9",
    "summarize",
    "auto threshold_tokens=0",
)


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
        begun = time.perf_counter()
        run()
        spans.append(time.perf_counter() - begun)
    gc.enable()
    return min(spans) * 1000


def main() -> None:
    """Print the figures of one run."""
    small, large = long_session(MESSAGES), long_session(10 * MESSAGES)
    with tempfile.TemporaryDirectory() as folder:
        for made in MADE:
            settings: dict[str, Any] = {}
            if made.startswith(("summarize", "auto")):
                settings["model"] = lambda _request: "brief"
            if made.startswith("auto"):
                settings["transcripts"] = Path(folder)
            chosen = strategy(made, **settings)
            short = milliseconds(lambda chosen=chosen: chosen.compact(small))  # type: ignore[misc]
            long = milliseconds(lambda chosen=chosen: chosen.compact(large))  # type: ignore[misc]
            print(
                f"{made:<32}{MESSAGES} messages {short:6.1f} ms, "
                f"{10 * MESSAGES} {long:7.1f} ms, ratio {long / short:.1f} (10 is linear)"
            )


if __name__ == "__main__":
    main()

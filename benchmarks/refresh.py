"""Refresh of all tables after one new turn, in a ledger of 10⁴ and of 10⁶ turns."""

import random
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from sqlalchemy import Connection, Engine

from api.refresh import Refresher
from ledger.database import open_engine, writing
from ledger.events import TurnReached, TurnStarted
from ledger.histogram import Cell, cells_of
from ledger.recording import record
from ledger.schema import histogram, turns
from ledger.versions import set_version
from migrations.upgrade import upgrade

ROLES = 13
LONGEST = 300
REPEATS = 60
_CHUNK = 50_000


def turn_rows(count: int, seed: int = 1) -> Iterator[dict[str, object]]:
    """Yield closed turns of 13 roles with geometric lives of mean 8 to 45."""
    draw = random.Random(seed)
    for number in range(count):
        role = draw.randrange(ROLES)
        calls = min(LONGEST, 1 + int(draw.expovariate(1 / (8 + 3 * role))))
        yield {
            "turn_id": f"t{number}",
            "session_id": f"s{number // 10}",
            "thread_id": f"s{number // 10}",
            "source": "benchmark",
            "role": f"role-{role}",
            "model": "claude-opus-5",
            "status": "ended" if draw.random() > 0.1 else "cut",
            "entry_calls": 0,
            "entry_requests": 0,
            "tool_calls": calls,
            "requests": calls + 1,
            "asked_for_tools": False,
        }


def fill(connection: Connection, count: int) -> None:
    """Write the rows and their histogram, without the cost of recording each."""
    cells: Counter[Cell] = Counter()
    rows = turn_rows(count)
    while chunk := list(islice(rows, _CHUNK)):
        for row in chunk:
            cells.update(cells_of(row))
        connection.execute(turns.insert(), chunk)
    set_version(connection, 1)
    connection.execute(
        histogram.insert(),
        [
            {
                "unit": cell.unit,
                "role": cell.role,
                "model": cell.model,
                "entry": cell.entry,
                "exit": cell.exit,
                "ended": cell.ended,
                "count": turns_there,
                "version": 1,
            }
            for cell, turns_there in cells.items()
        ],
    )


def refresh_seconds(engine: Engine) -> list[float]:
    """Record a new turn and refresh, again and again; return what the refreshes took."""
    refresher = Refresher(engine, 3600)
    refresher.refresh()
    took = []
    for number in range(REPEATS):
        turn_id = f"new-{number}"
        with writing(engine) as connection:
            record(
                connection,
                [
                    TurnStarted(turn_id, "s", "s", "benchmark", f"role-{number % ROLES}"),
                    TurnReached(turn_id, "s", "ended", None, None, tool_calls=9, requests=10),
                ],
            )
        begun = time.perf_counter()
        refresher.refresh()
        took.append(time.perf_counter() - begun)
        if refresher.state.error:
            raise RuntimeError(refresher.state.error)
    return took


def main() -> None:
    """Print the median refresh at both sizes, and their ratio."""
    medians = {}
    for count in (10_000, 1_000_000):
        with tempfile.TemporaryDirectory() as folder:
            engine = open_engine(str(Path(folder) / "ledger.db"))
            upgrade(engine)
            with writing(engine) as connection:
                fill(connection, count)
            took = refresh_seconds(engine)
            engine.dispose()
        medians[count] = statistics.median(took)
        print(
            f"refresh after one new turn, {count:>9,} turns: median {medians[count] * 1e3:.1f} ms, "
            f"slowest of {len(took)} {max(took) * 1e3:.1f} ms"
        )
    print(f"ratio 10⁶ : 10⁴ = {medians[1_000_000] / medians[10_000]:.2f} (target 0.80 to 1.20)")


if __name__ == "__main__":
    main()

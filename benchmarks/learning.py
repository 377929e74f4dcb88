"""Learning after one new turn, in a ledger of 10⁶ turns with requests and compactions."""

import statistics
import tempfile
import time
from pathlib import Path

from sqlalchemy import Connection, Engine, select

from api.learning import LEARNED_COMPACTIONS, LEARNED_TURNS, Learning
from benchmarks.refresh import ROLES, fill
from ledger.database import open_engine, reading, writing
from ledger.events import Event, RequestMade, TurnReached, TurnStarted
from ledger.recent import recent_turns
from ledger.recording import record
from ledger.schema import compactions, requests, turns
from ledger.token_classes import Usage
from migrations.upgrade import upgrade

TURNS = 1_000_000
REQUESTS = 20
REPEATS = 60
MINUTE_MS = 60_000
GROWTH_TOKENS = 1100


def fill_requests(connection: Connection) -> None:
    """Give the latest turns of each role requests, and the latest of all a compaction each."""
    latest = [
        turn.turn_id
        for role in range(ROLES)
        for turn in recent_turns(connection, f"role-{role}", LEARNED_TURNS)
    ]
    of_session = select(turns.c.turn_id, turns.c.session_id).where(turns.c.turn_id.in_(latest))
    session = {row.turn_id: row.session_id for row in connection.execute(of_session)}
    made = [
        {
            "request_id": f"{turn_id}:{position}",
            "session_id": session[turn_id],
            "turn_id": turn_id,
            "position": position,
            "at_ms": (number * REQUESTS + position) * MINUTE_MS,
            "model": "claude-opus-5",
            "uncached": 10,
            "cache_read": 20_000 + position * GROWTH_TOKENS,
            "cache_write_5m": GROWTH_TOKENS,
        }
        for number, turn_id in enumerate(latest)
        for position in range(REQUESTS)
    ]
    connection.execute(requests.insert(), made)
    connection.execute(
        compactions.insert(),
        [
            {
                "compaction_id": f"c{number}",
                "session_id": session[turn_id],
                "turn_id": turn_id,
                "at_ms": (number * REQUESTS + 5) * MINUTE_MS,
                "context_before": 160_000,
                "context_after": 27_000,
                "requests_before": 5,
            }
            for number, turn_id in enumerate(latest)
        ],
    )


def learning_seconds(engine: Engine) -> tuple[float, list[float]]:
    """Learn everything, then record a turn with requests and learn again, over and over."""
    learning = Learning()
    roles = [f"role-{role}" for role in range(ROLES)]
    with reading(engine) as connection:
        everything = {role: recent_turns(connection, role, LEARNED_TURNS) for role in roles}
        begun = time.process_time()
        learning.follow(connection, everything)
        first = time.process_time() - begun
    took = []
    for number in range(REPEATS):
        role, turn_id = roles[number % ROLES], f"learned-{number}"
        usage = Usage(uncached=10, cache_read=20_000, cache_write_5m=GROWTH_TOKENS)
        at_ms = 10**10 + number * MINUTE_MS
        events: list[Event] = [
            TurnStarted(turn_id, "s", "s", "benchmark", role, at_ms, model="claude-opus-5"),
            *(
                RequestMade(f"{turn_id}:{n}", "s", turn_id, n, at_ms + n, "claude-opus-5", usage)
                for n in range(REQUESTS)
            ),
            TurnReached(turn_id, "s", "ended", None, at_ms + REQUESTS),
        ]
        with writing(engine) as connection:
            record(connection, events)
        with reading(engine) as connection:
            latest = {role: recent_turns(connection, role, LEARNED_TURNS)}
            begun = time.process_time()
            learning.follow(connection, latest)
            took.append(time.process_time() - begun)
    return first, took


def main() -> None:
    """Print what learning takes at first, and after one new turn."""
    with tempfile.TemporaryDirectory() as folder:
        engine = open_engine(str(Path(folder) / "ledger.db"))
        upgrade(engine)
        with writing(engine) as connection:
            fill(connection, TURNS)
            fill_requests(connection)
        first, took = learning_seconds(engine)
        engine.dispose()
    print(
        f"learning {ROLES} roles, {ROLES * LEARNED_TURNS:,} turns with {REQUESTS} requests and "
        f"{LEARNED_COMPACTIONS} compactions: {first * 1e3:.0f} CPU ms"
    )
    print(
        f"learning after one new turn, {TURNS:,} turns: median {statistics.median(took) * 1e3:.1f} "
        f"CPU ms, slowest of {len(took)} {max(took) * 1e3:.1f} ms (target 5)"
    )


if __name__ == "__main__":
    main()

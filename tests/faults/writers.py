"""Writers that keep telling until they are acknowledged, and what the ledger must then hold."""

import http.client
import json
import os
import random
import threading
import time
import urllib.error
import urllib.request
from dataclasses import dataclass, field

from sqlalchemy import func, select

from ledger.database import open_engine, reading
from ledger.schema import requests, turns
from tests.integration.ledger.rows import kept, recounted

#: Rounds of each fault; a soak runs more, and a seed that failed can be run again.
ROUNDS = int(os.environ.get("FAULT_ROUNDS", "2"))
SEED = int(os.environ.get("FAULT_SEED", str(random.SystemRandom().randrange(10**6))))
TIMEOUT_SECONDS = 5.0
PAUSE_SECONDS = 0.02
GIVE_UP_SECONDS = 120.0


@dataclass
class Acknowledged:
    """What somebody was told is in the ledger: requests by turn, and turns that ended."""

    requests: dict[str, set[str]] = field(default_factory=dict)
    ended: dict[str, int] = field(default_factory=dict)

    def missing_from(self, engine):
        """Return what is not there, or is there otherwise."""
        with reading(engine) as connection:
            there = set(connection.execute(select(requests.c.turn_id, requests.c.request_id)))
            rows = connection.execute(
                select(turns.c.turn_id, turns.c.status, turns.c.tool_calls, turns.c.requests)
            ).all()
        totals = {row[0]: row[1:] for row in rows}
        wrong = [
            request_id
            for turn_id, ids in self.requests.items()
            for request_id in ids
            if (turn_id, request_id) not in there
        ]
        for turn_id, made in self.ended.items():
            if totals.get(turn_id) != ("ended", made, made):
                wrong.append((turn_id, made, totals.get(turn_id)))
        return wrong


class Fleet:
    """Threads that write to a service whose workers, or whose database, die under them."""

    def __init__(self, url, seed, writers=4, prefix=""):
        self._url = url
        self._prefix = prefix
        self._stop = threading.Event()
        self._draws = [random.Random(seed * 100 + number) for number in range(writers)]
        self._threads = [
            threading.Thread(target=self._write, args=(number,)) for number in range(writers)
        ]
        self.told = [Acknowledged() for _ in range(writers)]
        self.refused = 0
        self.problems = []

    def __enter__(self):
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_error):
        self._stop.set()
        for thread in self._threads:
            thread.join(GIVE_UP_SECONDS + 10)
        assert not self.problems, self.problems

    def _write(self, number):
        turn = 0
        try:
            while not self._stop.is_set():
                turn_id = f"{self._prefix}w{number}-{turn}"
                if (number + turn) % 2:
                    self._turn(self.told[number], turn_id, self._draws[number])
                else:
                    self._stream(self.told[number], turn_id, self._draws[number])
                turn += 1
        except Exception as error:  # noqa: BLE001 - told by the thread that waits
            self.problems.append(repr(error))

    def _turn(self, told, turn_id, draw):
        begun = {"role": "main", "session_id": turn_id, "model": "claude-opus-5"}
        self._until_taken("PUT", f"/turns/{turn_id}", begun)
        made = draw.randrange(1, 9)
        for place in range(made):
            request_id = f"{turn_id}:{place}"
            body = {"request_id": request_id, "usage": {"output": place}, "tool_calls": 1}
            self._until_taken("POST", f"/turns/{turn_id}/requests", body)
            told.requests.setdefault(turn_id, set()).add(request_id)
        self._until_taken("POST", f"/turns/{turn_id}/end", {"status": "ended"})
        told.ended[turn_id] = made

    def _stream(self, told, prefix, draw):
        """Tell some turns as one stream; all of it again where it was not acknowledged."""
        lines, made = [], {}
        for number in range(draw.randrange(1, 30)):
            turn_id = f"{prefix}/{number}"
            begun = {"event": "turn", "turn_id": turn_id, "role": "main", "session_id": turn_id}
            lines.append(begun | {"model": "claude-opus-5"})
            made[turn_id] = draw.randrange(1, 9)
            for place in range(made[turn_id]):
                body = {"event": "request", "turn_id": turn_id, "request_id": f"{turn_id}:{place}"}
                lines.append(body | {"usage": {"output": place}, "tool_calls": 1})
            lines.append({"event": "end", "turn_id": turn_id, "status": "ended"})
        body = "\n".join(map(json.dumps, lines)).encode()
        answer = self._until_taken("POST", "/ingest", body, "application/x-ndjson")
        assert answer["refused"] == 0, answer
        for turn_id, calls in made.items():
            told.requests[turn_id] = {f"{turn_id}:{place}" for place in range(calls)}
            told.ended[turn_id] = calls

    def _until_taken(self, method, path, body, media="application/json"):
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        deadline = time.monotonic() + GIVE_UP_SECONDS
        while True:
            asked = urllib.request.Request(
                self._url + path, data, {"content-type": media}, method=method
            )
            try:
                with urllib.request.urlopen(asked, timeout=TIMEOUT_SECONDS) as answer:
                    return json.load(answer)
            except urllib.error.HTTPError as error:
                if error.code != 503:
                    raise AssertionError(path, error.code, error.read().decode()) from error
            except (OSError, ValueError, http.client.HTTPException):
                pass  # nobody there, or gone in the middle of the answer
            self.refused += 1
            assert time.monotonic() < deadline, (method, path)
            time.sleep(PAUSE_SECONDS)


def check(url, acknowledged):
    """Acknowledged writes are all there, none twice, and the histogram is a recount's."""
    engine = open_engine(url)
    try:
        for told in acknowledged:
            assert told.missing_from(engine) == []
        with reading(engine) as connection:
            rows = connection.scalar(select(func.count()).select_from(requests))
        assert kept(engine) == recounted(engine)
        return rows
    finally:
        engine.dispose()

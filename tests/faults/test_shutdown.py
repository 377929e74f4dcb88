"""Stopped in the ordinary way, nothing answered is lost; two hosts on one ledger agree."""

import socket
import threading
import time

import httpx
import pytest
from sqlalchemy import select

from cli.serve import GRACE_SECONDS
from ledger.database import open_engine, reading
from ledger.schema import decisions
from migrations.upgrade import upgrade
from tests.faults.conftest import PATIENCE_SECONDS
from tests.faults.writers import SEED, Acknowledged, Fleet, check

pytestmark = pytest.mark.enable_socket


class Askers:
    """Threads that ask for decisions until nobody answers any more."""

    def __init__(self, address, count=4):
        self.ids = [[] for _ in range(count)]
        self._address = address
        self._threads = [threading.Thread(target=self._ask, args=(mine,)) for mine in self.ids]
        for thread in self._threads:
            thread.start()

    def _ask(self, mine):
        body = {"role": "main", "calls": 3, "cost": 4, "saving": 4}
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            try:
                answer = httpx.post(f"{self._address}/should-compact", json=body, trust_env=False)
            except httpx.TransportError:
                return
            assert answer.status_code == 200
            mine.append(answer.json()["decision_id"])

    def join(self):
        for thread in self._threads:
            thread.join()
        return {one for mine in self.ids for one in mine}


def until(holds):
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_stop_leaves_every_answer_in_the_log(database, serve, workers):
    service = serve(database.url, "--workers", workers)
    askers = Askers(service.address)
    until(lambda: sum(map(len, askers.ids)) > 100)
    service.stop()
    answered = askers.join()
    assert len(answered) > 100
    engine = open_engine(database.url)
    with reading(engine) as connection:
        logged = set(connection.scalars(select(decisions.c.decision_id)))
    engine.dispose()
    assert answered <= logged
    assert "could not be logged" not in service.log()


def test_a_stream_that_stands_still_does_not_hold_up_a_stop(database, serve):
    service = serve(database.url)
    answer = httpx.post(
        f"{service.address}/should-compact",
        json={"role": "main", "calls": 3, "cost": 4, "saving": 4},
        trust_env=False,
    ).json()
    with socket.create_connection(("127.0.0.1", service.port)) as stalled:
        head = "POST /ingest HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-ndjson\r\n"
        stalled.sendall(f"{head}Content-Length: 1000\r\n\r\n{{".encode())
        time.sleep(0.5)
        begun = time.monotonic()
        service.stop()
    assert time.monotonic() - begun < GRACE_SECONDS + 10
    engine = open_engine(database.url)
    with reading(engine) as connection:
        logged = set(connection.scalars(select(decisions.c.decision_id)))
    engine.dispose()
    assert answer["decision_id"] in logged


@pytest.mark.postgres
def test_two_hosts_on_one_ledger(own_postgres, serve):
    engine = open_engine(own_postgres.url)
    upgrade(engine)
    engine.dispose()
    hosts = [serve(own_postgres.url, "--workers", "2"), serve(own_postgres.url)]
    fleets = [
        Fleet(host.address, SEED + number, writers=2, prefix=f"h{number}-")
        for number, host in enumerate(hosts)
    ]
    with fleets[0], fleets[1]:
        until(lambda: all(len(one.ended) > 10 for fleet in fleets for one in fleet.told))
    told: list[Acknowledged] = [*fleets[0].told, *fleets[1].told]
    assert check(own_postgres.url, told) > 100
    body = {"role": "main", "calls": 3, "cost": 4, "saving": 4}
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        # Each question may meet another worker.
        answers = [
            httpx.post(f"{host.address}/should-compact", json=body, trust_env=False).json()
            for host in hosts
            for _ in range(6)
        ]
        said = {
            (one["versions"]["estimate"], one["expected_remaining_calls"], one["break_even_calls"])
            for one in answers
        }
        if len(said) == 1:
            break
        assert time.monotonic() < deadline, said
        time.sleep(0.2)
    pages = [httpx.get(f"{host.address}/status", trust_env=False).json() for host in hosts]
    assert len({page["snapshot"]["content_hash"] for page in pages}) == 1

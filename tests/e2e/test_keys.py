"""Keys at a live service: made, used, expired and revoked by the command line."""

import json
import subprocess
import sys
import time

import httpx
import pytest

from compactuary.__main__ import main
from tests.e2e.conftest import PATIENCE_SECONDS, environment, free_port

pytestmark = pytest.mark.enable_socket  # loopback only

ASKED = {"role": "main", "calls": 1, "cost": 1, "saving": 1}


@pytest.fixture
def create(compactuary, tmp_path):
    """Return what makes a key by the command line, and tells the header that sends it."""

    def make(name, *scopes, **more):
        flags = [word for scope in scopes for word in ("--scope", scope)]
        flags += [word for option, value in more.items() for word in (f"--{option}", value)]
        done = compactuary("keys", "create", name, *flags, "--db", tmp_path / "l.db")
        assert done.code == 0, done.err
        assert done.out.count("\n") == 1
        return {"authorization": f"Bearer {done.out.strip()}"}

    return make


def _until(holds):
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_key_from_its_making_to_its_end(create, compactuary, serve, tmp_path):
    agent = create("agent", "decide", days=1)
    soon = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 5))
    short = create("short", "read", expires=soon)
    client, _ = serve(tmp_path / "l.db")

    def status(headers, path="/status"):
        return client.get(path, headers=headers).status_code

    assert client.post("/should-compact", json=ASKED, headers=agent).status_code == 200
    refused = client.get("/status", headers=agent)
    assert refused.status_code == 403
    assert "'read'" in refused.json()["detail"]
    assert client.post("/turns", json=[], headers=agent).status_code == 403
    wrong = {"authorization": agent["authorization"][:-3] + "AAA"}
    assert status(wrong) == status({}) == 401
    assert status({}, "/healthz") == status({}, "/readyz") == 200
    _until(lambda: client.get("/status", headers=short).status_code == 401)
    assert client.get("/status", headers=short).json()["type"].endswith("key-expired")
    assert compactuary("keys", "revoke", "agent", "--db", tmp_path / "l.db").code == 0
    _until(lambda: client.post("/should-compact", json=ASKED, headers=agent).status_code == 401)
    listed = json.loads(compactuary("keys", "list", "--json", "--db", tmp_path / "l.db").out)
    assert {row["name"]: row["state"] for row in listed} == {"agent": "revoked", "short": "expired"}


def test_other_machines_are_served_once_there_is_a_key(create, serve, tmp_path):
    key = create("ops", "read")
    client, _ = serve(tmp_path / "l.db", "--host", "0.0.0.0")
    assert client.get("/status", headers=key).status_code == 200
    assert client.get("/status").status_code == 401


def test_no_key_is_logged_whatever_the_level(create, tmp_path, serve):
    key = create("ops", "admin")
    words = ("--log-level", "debug", "--log-format", "json", "--workers", "2")
    client, process = serve(tmp_path / "l.db", *words)
    token = key["authorization"].removeprefix("Bearer ")
    secret = token.split("_", 2)[2]
    answers = [client.post("/should-compact", json=ASKED, headers=key) for _ in range(20)]
    assert {answer.status_code for answer in answers} == {200}
    asked = {answer.json()["decision_id"] for answer in answers}
    shown = client.get("/status", headers=key).text + client.get("/metrics", headers=key).text
    for header in (f"Basic {token}", f"Bearer x{token}", f"Bearer {token[:-1]}", token):
        assert client.get("/status", headers={"authorization": header}).status_code == 401
    # As part of a path or a query a key is none, and is not logged there either.
    assert client.get(f"/status?key={token}").status_code == 401
    process.terminate()
    out, err = process.communicate(timeout=PATIENCE_SECONDS)
    lines = [json.loads(line) for line in err.splitlines() if line.startswith("{")]
    assert {line["decision_id"] for line in lines if line["message"] == "decided"} == asked
    assert sum(line["message"] == "a request was refused" for line in lines) == 5
    for told in (shown, out, err):
        assert token not in told
        assert secret not in told


def _families(client, headers=None):
    from prometheus_client.parser import text_string_to_metric_families  # noqa: PLC0415

    text = client.get("/metrics", headers=headers).text
    return {family.name: family.samples for family in text_string_to_metric_families(text)}


def test_whichever_worker_is_scraped_tells_of_both(serve, tmp_path):
    client, _ = serve(tmp_path / "l.db", "--workers", "2")
    for _ in range(40):
        assert client.post("/should-compact", json=ASKED).status_code == 200

    def decided():
        samples = _families(client)["compactuary_decisions"]
        return sum(sample.value for sample in samples if sample.name.endswith("_total"))

    # Once both have shown their counts, every scrape tells the whole, whoever answers it.
    _until(lambda: [decided() for _ in range(10)] == [40] * 10)

    def workers():
        return {sample.labels["worker"] for sample in _families(client)["compactuary_info"]}

    _until(lambda: len(workers()) == 2)


def test_traces_without_the_extra_are_refused_before_anything_is_served(tmp_path):
    blocked = "import sys; sys.modules['opentelemetry.sdk.trace'] = None; "
    run = "from compactuary.__main__ import main; sys.exit(main(sys.argv[1:]))"
    words = ["serve", "--traces", "--db", str(tmp_path / "l.db"), "--port", str(free_port())]
    done = subprocess.run(
        [sys.executable, "-c", blocked + run, *words],
        cwd=tmp_path,
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_SECONDS,
    )
    assert done.returncode == 2
    assert "compactuary[otel]" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_body_beyond_the_limit_is_answered_though_it_was_not_read(serve, tmp_path):
    client, _ = serve(tmp_path / "l.db")
    body = b" " * (17 * 1024 * 1024)
    headers = {"content-type": "application/json"}
    response = client.post("/turns", content=body, headers=headers)
    assert response.status_code == 413
    # One that does not say how long it is, is refused where it gets too long.
    parts = (body[at : at + 65536] for at in range(0, len(body), 65536))
    try:
        response = client.post("/turns", content=parts, headers=headers)
    except httpx.WriteError:  # the answer was there before the body ended
        return
    assert response.status_code == 413


def test_the_command_line_tells_and_refuses(create, compactuary, tmp_path, capsys):
    db = tmp_path / "l.db"
    assert compactuary("keys", "list").out.startswith("There are no keys")
    create("it's 🦊", "decide", "read", expires="2999-12-31")
    listed = compactuary("keys", "list", "--db", db).out.splitlines()
    assert listed[0].split() == ["name", "id", "state", "expires", "scopes"]
    assert listed[1].endswith("in force  2999-12-31  decide read")
    scope = ("--scope", "read", "--db", db)
    for words, where in (
        (("create", "a", "--scope", "reed", "--db", db), "scope: "),
        (("create", "a", "--expires", "2020-01-01", *scope), "--expires: "),
        (("create", "a", "--expires", "soon", *scope), "--expires: "),
        (("create", "a", "--expires", "2999-01-01", "--days", "3", *scope), "--expires: "),
        (("create", "it's 🦊", *scope), "name: "),
        (("create", "", *scope), "name: "),
        (("revoke", "nobody", "--db", db), "name: "),
    ):
        # In this process, which needs not start each time.
        assert main(["keys", *map(str, words)]) == 2
        told = capsys.readouterr()
        assert told.err.startswith(f"error: {where}")
        assert told.err.count("\n") == 1
        assert not told.out
    assert main(["keys", "create", "a", "--db", str(db)]) == 2
    told = json.loads(compactuary("keys", "revoke", "it's 🦊", "--db", db, "--json").out)
    assert told["name"] == "it's 🦊"

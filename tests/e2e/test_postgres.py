"""The same logs in PostgreSQL give the same rows and the same table as in SQLite."""

import json

import pytest

from ledger.database import open_engine

pytestmark = [pytest.mark.postgres, pytest.mark.enable_socket]


def test_postgres_holds_what_sqlite_holds(
    compactuary, serve, example, example_ledger, postgres_server
):
    url = open_engine(postgres_server).url.render_as_string(hide_password=False)
    done = compactuary("import", example, "--db", url)
    assert done.out.startswith("25 files read, 0 unchanged: 3,415 new turns, 491 requests")
    for kind in ("turns", "requests"):
        words = ["export", kind, "--format", "jsonl", "--db"]
        ours, theirs = (compactuary(*words, db).out.splitlines() for db in (url, example_ledger))
        assert sorted(ours) == sorted(theirs)
    table = compactuary("table", "--json", "--db", url)
    assert table.out == compactuary("table", "--json", "--db", example_ledger).out
    client, _ = serve(url, "--workers", "2")
    assert {row["role"]: row for row in client.get("/tables").json()} == {
        row["role"]: row for row in json.loads(table.out)
    }
    words = ["decide", "--role", "dev-front", "--calls", 30, "--cost", 60_000, "--saving", 9_000]
    ours, theirs = (
        json.loads(compactuary(*words, "--json", "--db", db).out) for db in (url, example_ledger)
    )
    assert ours.pop("decision_id") != theirs.pop("decision_id")
    assert (ours.pop("versions")["policy"], ours) == (theirs.pop("versions")["policy"], theirs)
    drift = compactuary("drift", "--json", "--db", url)
    assert drift.out == compactuary("drift", "--json", "--db", example_ledger).out
    assert client.get("/drift").json() == json.loads(drift.out)

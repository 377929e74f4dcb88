"""``compactuary decisions`` where there is none of those asked for."""

from cli.app import run
from ledger.database import writing
from ledger.decisions import DecisionMade, write_decisions

NOON_MS = 1_768_478_400_000  # 2026-01-15 12:00 UTC


def made(name, role):
    known = dict.fromkeys(DecisionMade._fields) | {
        "decision_id": name,
        "at_ms": NOON_MS,
        "role": role,
        "unit": "tool_calls",
        "calls": 0,
        "decision": "wait",
        "would_decide": "wait",
        "rule": "break-even",
        "reason": "does_not_pay",
        "moment": "call",
        "mode": "enforce",
        "cost": 12.0,
        "saving_per_call": 2.0,
        "source": "role",
        "snapshot_version": 7,
        "policy_version": "2",
    }
    return DecisionMade(**known)


def test_decisions_that_are_not_there_name_the_roles_that_asked(sqlite_ledger, capsys):
    def told(*words):
        assert run(["decisions", "--db", str(sqlite_ledger.url), *words]) == 0
        return capsys.readouterr().out

    assert told("--role", "nobody").startswith("No decision was logged. ")
    with writing(sqlite_ledger) as connection:
        write_decisions(connection, [made("1", "main"), made("2", "dev"), made("3", "dev")])
    assert told("--role", "nobody") == "No decision for role nobody; known roles: dev, main.\n"
    none_since = "No decision since 2030-01-01; known roles: dev, main.\n"
    assert told("--since", "2030-01-01") == none_since
    assert told("--role", "dev", "--since", "2030-01-01").startswith(
        "No decision for role dev since 2030-01-01; "
    )
    assert told("--role", "dev").startswith("2 decisions, ")

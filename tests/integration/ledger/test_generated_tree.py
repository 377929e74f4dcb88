"""A generated tree imports to what its manifest says, on both databases."""

from collections import Counter

import pytest
from sqlalchemy import select

from examples.claude_code_tree import write_tree
from ledger.schema import compactions, requests, turns
from tests.integration.ledger.rows import (
    everything,
    imported,
    kept,
    recounted,
    rows_of,
    token_sums,
    version_of,
)

STANDING = {
    "ended": ("ended", None),
    "interrupted": ("cut", "interrupted"),
    "failed": ("cut", "api_error"),
    "in_flight": ("open", "in_flight"),
}


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    root = tmp_path_factory.mktemp("tree")
    return root, write_tree(root, sessions=12)


@pytest.fixture
def filled(ledger, tree):
    root, manifest = tree
    assert imported(ledger, root) == []
    return ledger, manifest


def test_every_turn_is_as_it_was_written(filled):
    engine, manifest = filled
    found = {
        (row["session_id"], row["thread_id"], row["started_ms"]): row
        for row in rows_of(engine, (turns,))["turns"]
    }
    assert len(found) == len(manifest.turns)
    shown = Counter(
        (
            row["session_id"],
            row["role"],
            row["model"],
            row["status"],
            row["tool_calls"],
            row["requests"],
        )
        for row in found.values()
    )
    written = Counter(
        (
            turn.session_id,
            turn.role,
            turn.model,
            STANDING[turn.status][0],
            turn.tool_calls,
            turn.requests,
        )
        for turn in manifest.turns
    )
    assert shown == written
    reasons = Counter(row["reason"] for row in found.values() if row["status"] == "cut")
    assert reasons == Counter(
        STANDING[turn.status][1]
        for turn in manifest.turns
        if turn.status in ("interrupted", "failed")
    )


def test_triggers_and_parents(filled):
    engine, manifest = filled
    rows = rows_of(engine, (turns,))["turns"]
    own = Counter(turn.trigger for turn in manifest.turns if turn.agent_id is None)
    assert Counter(row["trigger"] for row in rows if row["thread_id"] == row["session_id"]) == own
    ids = {row["turn_id"]: row for row in rows}
    agents = [row for row in rows if row["thread_id"] != row["session_id"]]
    assert agents
    for row in agents:
        assert ids[row["parent_turn_id"]]["session_id"] == row["session_id"]


def test_every_token_counts_once(filled):
    engine, manifest = filled
    summaries = sum((made.summary for made in manifest.compactions), start=type(manifest.tokens)())
    total = manifest.tokens + summaries
    assert token_sums(engine) == {
        "uncached": total.uncached,
        "cache_read": total.cache_read,
        "cache_write": total.cache_write,
        "output": total.output,
    }
    with engine.connect() as connection:
        kinds = Counter(connection.scalars(select(requests.c.kind)))
    assert kinds == {"agent": manifest.requests, "compaction": len(manifest.compactions)}


def test_every_compaction_is_where_it_was(filled):
    engine, manifest = filled
    rows = rows_of(engine, (compactions,))["compactions"]
    assert Counter(
        (
            row["session_id"],
            row["turn_id"] is None,
            row["trigger"],
            row["context_before"],
            row["context_after"] or 0,
            row["calls_before"],
        )
        for row in rows
    ) == Counter(
        (
            made.session_id,
            made.turn is None,
            made.trigger,
            made.pre_tokens,
            made.context_after,
            made.tool_calls_before,
        )
        for made in manifest.compactions
    )


def test_the_histogram_is_that_of_the_turns(filled):
    engine, _ = filled
    assert kept(engine) == recounted(engine)


def test_importing_again_changes_nothing(filled, tree):
    engine, _ = filled
    before = everything(engine)
    assert imported(engine, tree[0]) == []
    assert everything(engine) == before


def test_reading_again_from_the_beginning_changes_no_fact(filled, tree):
    engine, _ = filled
    before, version = rows_of(engine), version_of(engine)
    assert imported(engine, tree[0], reread=True) == []
    for path in tree[0].rglob("*.jsonl"):
        path.touch()
    assert imported(engine, tree[0], reread=True) == []
    assert rows_of(engine) == before
    assert version_of(engine) == version


def test_sub_agents_may_be_read_before_their_parents(ledger, tree):
    root, manifest = tree
    paths = sorted(root.rglob("*.jsonl"), key=lambda path: "subagents" not in path.parts)
    for path in paths:
        assert imported(ledger, path) == []
    roles = Counter(row["role"] for row in rows_of(ledger, (turns,))["turns"])
    assert roles == Counter(turn.role for turn in manifest.turns)
    assert kept(ledger) == recounted(ledger)


def test_roles_by_project(sqlite_ledger, tree):
    root, manifest = tree
    assert imported(sqlite_ledger, root, role_by_project=True) == []
    roles = Counter(row["role"].split("/")[1] for row in rows_of(sqlite_ledger, (turns,))["turns"])
    assert roles == Counter(turn.role for turn in manifest.turns)

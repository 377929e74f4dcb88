"""Forks: copied beginnings count once, whichever file comes first."""

import json
from collections import Counter
from random import Random

import pytest

from examples.claude_code_tree import write_tree
from ledger.database import open_engine
from migrations.upgrade import upgrade
from tests.integration.ledger.rows import imported, kept, recounted, rows_of, token_sums
from tests.unit.ledger.transcript import Transcript, said, tokens, use

CALLS = "tool_calls"


def original():
    """Two turns: two calls and an end; three calls and an end. Seven requests."""
    log = Transcript("s1")
    log.user("Fix it.", uuid="p1")
    for number in (1, 2):
        log.answer(f"m{number}", use(f"t{number}"))
        log.result(f"t{number}")
    log.answer("m3", said())
    log.user("Next.", uuid="p2")
    for number in (4, 5, 6):
        log.answer(f"m{number}", use(f"t{number}"))
        log.result(f"t{number}")
    log.answer("m7", said())
    return log


def fork_of(log, lines, session="s2"):
    """Copy the first lines into a new session."""
    part = Transcript(log.session, lines=log.lines[:lines], seconds=log.seconds + 100)
    return part.copied(session)


def forked_between_turns():
    log = original()
    fork = fork_of(log, 6)
    fork.user("Another way.", uuid="f1")
    fork.answer("n1", use("u1"))
    fork.result("u1")
    fork.answer("n2", said())
    return log, fork


def forked_in_mid_turn():
    """The copy goes on behind the first call of the second turn, with four calls of its own."""
    log = original()
    fork = fork_of(log, 9)
    for number in (1, 2, 3, 4):
        fork.answer(f"n{number}", use(f"u{number}"))
        fork.result(f"u{number}")
    fork.answer("n5", said())
    return log, fork


def filled(engine, folder, files, order):
    for name in order:
        assert imported(engine, files[name].write(folder)) == []
    assert kept(engine) == recounted(engine)
    return rows_of(engine)


def at_risk_and_ends(rows, unit):
    """At how many ages turns were at risk, and at which they ended: what the likelihood sees."""
    at_risk, ends = Counter(), Counter()
    for cell in rows["histogram"]:
        if cell["unit"] == unit:
            last = cell["exit"]
            at_risk.update(dict.fromkeys(range(cell["entry"], last + 1), cell["count"]))
            if cell["ended"]:
                ends[last] += cell["count"]
    return at_risk, ends


@pytest.mark.parametrize("order", ["ab", "ba"])
def test_a_fork_between_turns_adds_its_own_turn_only(ledger, tmp_path, order):
    log, fork = forked_between_turns()
    rows = filled(ledger, tmp_path, {"a": log, "b": fork}, order)
    turns = {row["turn_id"]: (row["status"], row[CALLS], row["requests"]) for row in rows["turns"]}
    assert turns == {"p1": ("ended", 2, 3), "p2": ("ended", 3, 4), "f1": ("ended", 1, 2)}
    assert token_sums(ledger)["cache_read"] == 9 * 100
    assert len(rows["tool_calls"]) == 6


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        (
            "ab",
            {
                "p1": ("s1", 0, 2, 3),
                "p2": ("s1", 0, 3, 4),
                "p2@s2": ("s2", 1, 5, 6),
            },
        ),
        (
            "ba",
            {
                "p1": ("s2", 0, 2, 3),
                "p2": ("s2", 0, 5, 6),
                "p2@s1": ("s1", 1, 3, 4),
            },
        ),
    ],
)
def test_a_fork_in_mid_turn_enters_with_the_calls_copied(ledger, tmp_path, order, expected):
    log, fork = forked_in_mid_turn()
    rows = filled(ledger, tmp_path, {"a": log, "b": fork}, order)
    names = ("session_id", "entry_calls", CALLS, "requests")
    turns = {row["turn_id"]: tuple(row[name] for name in names) for row in rows["turns"]}
    assert turns == expected
    assert {row["status"] for row in rows["turns"]} == {"ended"}
    assert token_sums(ledger)["cache_read"] == 12 * 100
    assert len(rows["tool_calls"]) == 2 + 3 + 4


@pytest.mark.parametrize("unit", ["tool_calls", "requests"])
@pytest.mark.parametrize("forked", [forked_between_turns, forked_in_mid_turn])
def test_either_order_gives_the_same_likelihood(sqlite_ledger, tmp_path, unit, forked):
    found = []
    for order in ("ab", "ba"):
        log, fork = forked()
        # Other ids, so that one ledger can hold both.
        for transcript in (log, fork):
            text = transcript.text.decode()
            path = tmp_path / order / f"{transcript.session}.jsonl"
            path.parent.mkdir(exist_ok=True)
            for name in "smntpfu":
                for number in range(1, 9):
                    text = text.replace(f'"{name}{number}"', f'"{name}{number}-{order}"')
            path.write_text(text)
        for session in ("s1", "s2") if order == "ab" else ("s2", "s1"):
            assert imported(sqlite_ledger, tmp_path / order / f"{session}.jsonl") == []
        found.append(at_risk_and_ends(rows_of(sqlite_ledger), unit))
    (risk, ends), (both_risk, both_ends) = found
    # What the second order added is what the first one had given.
    assert both_risk == risk + risk
    assert both_ends == ends + ends


def test_the_likelihood_of_a_fork_in_mid_turn_by_hand(sqlite_ledger, tmp_path):
    log, fork = forked_in_mid_turn()
    rows = filled(sqlite_ledger, tmp_path, {"a": log, "b": fork}, "ab")
    cells = {
        (cell["entry"], cell["exit"], cell["ended"]): cell["count"]
        for cell in rows["histogram"]
        if cell["unit"] == CALLS
    }
    assert cells == {(0, 2, True): 1, (0, 3, True): 1, (1, 5, True): 1}


def test_a_copy_of_a_whole_session_adds_nothing(ledger, tmp_path):
    log = original()
    copy = log.copied("s9")
    before = filled(ledger, tmp_path, {"a": log}, "a")
    assert imported(ledger, copy.write(tmp_path)) == []
    assert rows_of(ledger) == before


def test_a_fork_that_is_resumed_and_its_original_go_on_apart(ledger, tmp_path):
    log, fork = forked_in_mid_turn()
    filled(ledger, tmp_path, {"a": log, "b": fork}, "ab")
    for transcript, name in ((log, "x"), (fork, "y")):
        transcript.user("And now?", uuid=f"q{name}")
        transcript.answer(f"m{name}", use(f"t{name}"))
        transcript.result(f"t{name}")
        transcript.answer(f"last-{name}", said(), usage=tokens(read=1))
    rows = filled(ledger, tmp_path, {"a": log, "b": fork}, "ba")
    added = {row["turn_id"]: row[CALLS] for row in rows["turns"] if row["turn_id"][0] == "q"}
    assert added == {"qx": 1, "qy": 1}


def test_compactions_of_a_copied_beginning_count_once(ledger, tmp_path):
    log = Transcript("s1")
    log.user("Fix it.", uuid="p1")
    log.answer("m1", use("t1"))
    log.compacted(uuid="c1")
    log.answer("m2", said(), usage=tokens(1, 30_000, 0))
    fork = log.copied("s2")
    fork.user("More.", uuid="f1")
    fork.answer("n1", said())
    rows = filled(ledger, tmp_path, {"a": log, "b": fork}, "ab")
    (made,) = rows["compactions"]
    assert (made["session_id"], made["turn_id"], made["context_after"]) == ("s1", "p1", 30_001)


def test_a_compaction_of_the_turn_that_a_fork_goes_on_with_is_the_forks(ledger, tmp_path):
    log, fork = original(), fork_of(original(), 9)
    fork.compacted(uuid="c1")
    fork.answer("n1", use("u1"), usage=tokens(1, 30_000, 0))
    fork.result("u1")
    fork.answer("n2", said())
    rows = filled(ledger, tmp_path, {"a": log, "b": fork}, "ab")
    (made,) = rows["compactions"]
    found = (made["session_id"], made["turn_id"], made["context_after"])
    assert found == ("s2", "p2@s2", 30_001)


def test_a_forks_sub_agents_are_the_originals(ledger, tmp_path):
    log = Transcript("s1")
    log.user("Fix it.", uuid="p1")
    log.answer("m1", use("call", "Agent", subagent_type="Explore"))
    told = {"agentId": "a1", "status": "completed", "totalToolUseCount": 3}
    log.result("call", toolUseResult=told)
    log.answer("m2", said())
    fork = log.copied("s2")
    fork.user("More.", uuid="f1")
    fork.answer("n1", said())
    rows = filled(ledger, tmp_path, {"a": log, "b": fork}, "ab")
    assert {row["turn_id"] for row in rows["turns"]} == {"p1", "s1/agent-a1", "f1"}


def calls_at_risk_and_ends(rows):
    """The same from the sessions' own turns, with open ones cut where they stand."""
    at_risk, ends = Counter(), Counter()
    for turn in rows["turns"]:
        if turn["thread_id"] != turn["session_id"]:
            continue
        ended = turn["status"] == "ended"
        last = turn[CALLS] if ended else turn[CALLS] - 1
        at_risk.update(range(turn["entry_calls"], last + 1))
        ends.update([last] if ended else [])
    return at_risk, ends


def places_to_fork(data):
    """Return numbers of lines: requests that answer what the session holds before them."""
    seen, places, before = set(), [], {}
    for number, text in enumerate(data.split(b"\n")[:-1]):
        line = json.loads(text)
        message_id = line.get("message", {}).get("id")
        answers = line["type"] == "assistant" and message_id not in seen
        if answers and before.get("type") == "user" and not before.get("isMeta"):
            places.append(number)
        seen.add(message_id)
        before = line
    return places


@pytest.mark.parametrize("seed", range(8))
def test_a_real_shaped_session_forked_anywhere(tmp_path, seed):
    """Whichever of two copies goes on in the log, calls and the likelihood are the same."""
    write_tree(tmp_path / "tree", sessions=2, seed=seed, body_chars=20)
    rng = Random(seed)
    found = []
    sessions = {path: path.read_bytes() for path in (tmp_path / "tree").glob("*/*/*.jsonl")}
    cuts = {path: rng.choice(places_to_fork(data)) for path, data in sorted(sessions.items())}
    for order in ("original first", "fork first"):
        engine = open_engine(str(tmp_path / f"{order}.db"))
        upgrade(engine)
        for path, cut in cuts.items():
            lines = sessions[path].split(b"\n")
            fork = tmp_path / order / f"{path.stem[:-4]}f0f0.jsonl"
            fork.parent.mkdir(exist_ok=True)
            copied = b"\n".join(lines[:cut]).replace(path.stem.encode(), fork.stem.encode())
            fork.write_bytes(copied + b"\n")
            files = [path, fork]
            for file in files if order == "original first" else files[::-1]:
                assert imported(engine, file) == []
        assert kept(engine) == recounted(engine)
        rows = rows_of(engine)
        found.append(
            (
                calls_at_risk_and_ends(rows),
                token_sums(engine),
                {row["request_id"] for row in rows["requests"]},
                {row["tool_call_id"] for row in rows["tool_calls"]},
            )
        )
        engine.dispose()
    assert found[0] == found[1]

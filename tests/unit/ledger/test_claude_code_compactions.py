"""Compactions: where in a turn, how large before, how large after."""

import pytest

from ledger.events import CompactionMade
from tests.unit.ledger.transcript import START_MS, Transcript, read, said, tokens, use


@pytest.fixture
def log():
    return Transcript()


def test_a_boundary_in_mid_turn(log):
    log.user("Fix it.", uuid="p1")
    log.answer("m1", use("t1"), use("t2"))
    log.result("t1", "t2")
    log.compacted(uuid="c1", before=167_094)
    log.answer("m2", use("t3"), usage=tokens(3, 21_460, 12_497))
    log.result("t3")
    log.answer("m3", said(), usage=tokens(1, 40_000, 100))
    told = read(log)
    assert list(told.compactions.values()) == [
        CompactionMade(
            compaction_id="c1",
            session_id="s1",
            turn_id="p1",
            at_ms=START_MS + 3000,
            trigger="auto",
            strategy="summary",
            context_before=167_094,
            context_after=33_960,
            calls_before=2,
            requests_before=1,
        )
    ]
    assert told.only_turn == ("main", "prompt", "ended", "final_text", 3, 3)


def test_a_boundary_between_the_prompt_and_its_first_request_is_of_the_new_turn(log):
    log.user("Fix it.", uuid="p1")
    log.answer("m1", use("t1"))
    log.result("t1")
    log.answer("m2", said())
    log.user("Next.", uuid="p2")
    log.compacted(uuid="c1")
    log.answer("m3", said(), usage=tokens(1, 30_000, 999))
    told = read(log)
    made = told.compactions["c1"]
    assert (made.turn_id, made.calls_before, made.requests_before) == ("p2", 0, 0)
    assert made.context_after == 31_000
    assert told.turns["p2"] == ("main", "prompt", "ended", "final_text", 1, 0)


def test_a_boundary_between_turns_is_of_none(log):
    log.user("Fix it.", uuid="p1")
    log.answer("m1", use("t1"))
    log.result("t1")
    log.answer("m2", said())
    log.compacted(uuid="c1", trigger="manual")
    log.user("<local-command-caveat>Caveat</local-command-caveat>", isMeta=True)
    log.user("<command-name>/compact</command-name>", uuid="k1")
    log.user("<local-command-stdout>Compacted</local-command-stdout>")
    waiting = read(log).compactions["c1"]
    assert (waiting.turn_id, waiting.context_after) == (None, None)
    log.user("Next.", uuid="p2")
    log.answer("m3", said(), usage=tokens(1, 30_000, 999))
    told = read(log)
    made = told.compactions["c1"]
    assert (made.turn_id, made.trigger, made.context_after) == (None, "manual", 31_000)
    assert (made.calls_before, made.requests_before) == (0, 0)
    assert list(told.turns) == ["p1", "p2"]


def test_messages_preserved_behind_a_boundary_do_not_tell_its_size(log):
    log.user("Fix it.", uuid="p1")
    kept = log.answer("m1", use("t1"), usage=tokens(1, 200_000, 4_665))
    log.compacted(uuid="c1")
    log.lines.append(kept | {"uuid": "copy"})
    log.answer("m2", said(), usage=tokens(1, 17_000, 999))
    told = read(log)
    made = told.compactions["c1"]
    assert (made.context_after, made.calls_before, made.requests_before) == (18_000, 1, 1)


def test_two_boundaries_in_one_turn(log):
    log.user("Fix it.", uuid="p1")
    log.answer("m1", use("t1"))
    log.compacted(uuid="c1")
    log.answer("m2", use("t2"), usage=tokens(1, 30_000, 0))
    log.compacted(uuid="c2")
    log.answer("m3", said(), usage=tokens(1, 32_000, 0))
    made = read(log).compactions
    assert {key: (c.turn_id, c.calls_before, c.context_after) for key, c in made.items()} == {
        "c1": ("p1", 1, 30_001),
        "c2": ("p1", 2, 32_001),
    }


def test_a_boundary_at_the_end_of_the_file_waits_for_its_size_after(log):
    log.user("Fix it.", uuid="p1")
    log.answer("m1", use("t1"))
    log.compacted(uuid="c1")
    first = read(log)
    assert first.compactions["c1"].context_after is None
    assert first.compactions["c1"].turn_id == "p1"
    more = Transcript(seconds=9)
    more.answer("m2", said(), usage=tokens(1, 30_000, 0))
    then = read(more, saved=first.states, continued=True)
    assert then.compactions["c1"].context_after == 30_001
    assert then.compactions["c1"].turn_id == "p1"


def test_a_microcompaction_clears_and_goes_on(log):
    log.user("Fix it.", uuid="p1")
    log.answer("m1", use("t1"))
    log.result("t1")
    log.system(
        "microcompact_boundary",
        uuid="c1",
        microcompactMetadata={"trigger": "auto", "preTokens": 90_000, "tokensSaved": 40_000},
    )
    log.answer("m2", said(), usage=tokens(1, 20_000, 30_000))
    told = read(log)
    made = told.compactions["c1"]
    assert (made.strategy, made.context_before, made.context_after) == ("clear", 90_000, 50_001)
    assert told.only_turn == ("main", "prompt", "ended", "final_text", 2, 1)


def test_the_summary_is_no_prompt(log):
    log.compacted(uuid="c1")
    log.user("Go on.", uuid="p1")
    log.answer("m1", said())
    assert list(read(log).turns) == ["p1"]


@pytest.mark.parametrize("before", [None, 0])
def test_a_boundary_that_does_not_tell_its_size(log, before):
    log.user("Fix it.", uuid="p1")
    log.answer("m1", use("t1"))
    log.compacted(uuid="c1", before=before)
    log.answer("m2", said())
    assert read(log).compactions["c1"].context_before == before

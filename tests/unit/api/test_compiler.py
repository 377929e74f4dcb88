"""The compiler, driven by hand: no thread, no clock."""

from datetime import UTC, datetime

import pytest

from api.compiler import Compiler
from api.estimates import Estimates
from compactuary.errors import UnknownPriceError
from policy.parameters import ASSUMED
from policy.prices import GenaiPriceBook
from policy.question import Question
from policy.quote import quote
from policy.threshold_book import key_of

AT = datetime(2026, 11, 30, 12, tzinfo=UTC)
PRICES = GenaiPriceBook()


def question(**fields):
    asked = {"role": "main", "calls": 3, "context_tokens": 150_000, "model": "claude-opus-4-8"}
    return Question(**(asked | fields))


def key(rule="reorder", **fields):
    asked = question(**fields)
    return key_of(rule, asked, quote(asked, PRICES, ASSUMED, at=AT))


@pytest.fixture
def snapshots():
    return [Estimates().snapshot(0)]


@pytest.fixture
def compiler(snapshots):
    return Compiler(lambda: snapshots[-1], PRICES)


@pytest.fixture
def later(snapshots):
    return lambda version: snapshots.append(Estimates(version=version).snapshot(0))


def test_the_first_question_finds_nothing_and_the_next_does(compiler):
    asked = question(turn_id="t", explain=True)
    assert compiler.find(key(), asked) is None
    compiler.refresh()
    found = compiler.find(key(), asked)
    assert found.version == 0
    # m = 28.1 at age 0 in the standard table and nothing learned: a multiple of g above X′.
    threshold = found.thresholds.at("call", 0)
    assert (threshold - 51_000) % 1_100 == 0
    assert compiler.state.keys == 1


def test_a_newer_snapshot_compiles_again_what_is_asked_for(compiler, later):
    compiler.find(key(), question())
    compiler.find(key(rule="eoq"), question())
    compiler.refresh()
    compiler.find(key(), question())
    later(9)
    compiler.refresh()
    assert compiler.find(key(), question()).version == 9
    assert compiler.find(key(rule="eoq"), question()).version == 0


def test_what_was_not_asked_for_is_compiled_once_it_is(compiler, later):
    compiler.find(key(), question())
    compiler.refresh()
    later(9)
    compiler.refresh()
    compiler.find(key(), question())
    later(10)
    compiler.refresh()
    assert compiler.find(key(), question()).version == 10


def test_a_fault_of_one_key_is_told_and_the_others_go_on(compiler):
    lost = question(model="no-such-model")
    compiler.find(key()._replace(model="no-such-model"), lost)
    compiler.find(key(), question())
    compiler.refresh()
    assert "no-such-model" in compiler.state.error
    assert compiler.find(key(), question()) is not None
    with pytest.raises(UnknownPriceError):
        compiler.compile(key()._replace(model="no-such-model"), lost)


def test_compile_answers_at_once(compiler):
    assert compiler.compile(key(), question()).version == 0
    assert compiler.find(key(), question()) is not None


def test_a_thread_compiles_what_is_missing(compiler):
    compiler.start()
    try:
        compiler.find(key(), question())
        deadline = 400
        while compiler.find(key(), question()) is None and deadline:
            deadline -= 1
            compiler._stopped.wait(0.02)
    finally:
        compiler.stop()
    assert compiler.find(key(), question()) is not None

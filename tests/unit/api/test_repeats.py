import weakref

from api.repeats import Repeats
from policy.question import Question

ASKED = Question("main", 3, turn_id="t", context_tokens=100_000, model="m")


def test_the_same_request_has_the_same_answer_within_one_version():
    repeats, answer = Repeats(), object()
    assert repeats.find(ASKED, 1) is None
    repeats.keep(ASKED, 1, answer)
    again = Question("main", 3, turn_id="t", context_tokens=101_000, model="m")
    assert repeats.find(again, 1) is answer
    assert repeats.find(again, 2) is None
    assert repeats.find(Question("main", 4, turn_id="t"), 1) is None
    assert repeats.find(Question("main", 3, turn_id="u"), 1) is None
    assert repeats.find(Question("main", 3, turn_id="t", at="turn_end"), 1) is None


def test_without_a_turn_and_while_idle_nothing_is_kept():
    repeats = Repeats()
    for asked in (Question("main", 3), Question("main", 3, turn_id="t", at="idle")):
        repeats.keep(asked, 1, object())
        assert repeats.find(asked, 1) is None


def test_the_oldest_goes_first():
    repeats = Repeats(capacity=2)
    for calls in (1, 2, 3):
        repeats.keep(Question("main", calls, turn_id="t"), 1, calls)
    assert [repeats.find(Question("main", n, turn_id="t"), 1) for n in (1, 2, 3)] == [None, 2, 3]


def test_answers_of_an_earlier_version_are_not_held():
    repeats = Repeats()

    class Answered:
        pass

    old = [Answered() for _ in range(3)]
    held = [weakref.ref(one) for one in old]
    for calls, one in enumerate(old):
        repeats.keep(Question("main", calls, turn_id="t"), 1, one)
    del old, one
    assert all(ref() is not None for ref in held)
    repeats.keep(ASKED, 2, "new")
    assert [ref() for ref in held] == [None] * 3
    assert repeats.find(ASKED, 2) == "new"

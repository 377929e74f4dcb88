import asyncio

import pytest

from compactuary.advice import Advice
from compactuary.turn import AsyncTurn, Turn


class Recorder:
    def __init__(self):
        self.said = []

    def start_turn(self, *words, **more):
        self.said.append(("start", words, more))

    def record_request(self, *words, **more):
        self.said.append(("request", words, more))

    def end_turn(self, *words, **more):
        self.said.append(("end", words, more))

    def record_compaction(self, *words, **more):
        self.said.append(("compaction", words, more))

    def should_compact(self, **asked):
        self.said.append(("ask", (), asked))
        return Advice("wait", "default", "")


class AsyncRecorder(Recorder):
    async def should_compact(self, **asked):
        return super().should_compact(**asked)


def turn_of(recorder, **question):
    started = {"model": "m", "entry_calls": None}
    kind = AsyncTurn if isinstance(recorder, AsyncRecorder) else Turn
    return kind(recorder, "main", "s", "t", started, question)


def test_a_turn_tells_its_story():
    recorder = Recorder()
    with turn_of(recorder, window_tokens=200_000) as turn:
        turn.should_compact(1000)
        turn.request("r1", {"output": 1}, [("c1", "Bash"), ("c2", "Read")])
        turn.request("r2", {"output": 2}, 3)
        turn.should_compact(2000, at="call")
    assert [kind for kind, _, _ in recorder.said] == [
        "start",
        "ask",
        "request",
        "request",
        "ask",
        "end",
    ]
    assert recorder.said[0] == ("start", ("t", "main", "s"), {"model": "m", "entry_calls": None})
    assert recorder.said[4][2] == {
        "role": "main",
        "calls": 5,
        "context_tokens": 2000,
        "model": "m",
        "turn_id": "t",
        "session_id": "s",
        "useless_compactions": 0,
        "window_tokens": 200_000,
        "at": "call",
    }
    assert recorder.said[5] == ("end", ("t", "ended"), {"reason": None, "tool_calls": 5})


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, asyncio.CancelledError])
def test_an_exception_cuts_it_and_goes_on(error):
    recorder = Recorder()
    with pytest.raises(error), turn_of(recorder):
        raise error
    assert recorder.said[-1] == (
        "end",
        ("t", "cut"),
        {"reason": error.__name__, "tool_calls": 0},
    )


def test_an_async_one_does_the_same():
    recorder = AsyncRecorder()

    async def run():
        async with turn_of(recorder) as turn:
            turn.request("r1", {}, 2)
            await turn.should_compact(1000)
            raise ValueError("a fault")

    with pytest.raises(ValueError, match="a fault"):
        asyncio.run(run())
    assert [kind for kind, _, _ in recorder.said] == ["start", "request", "ask", "end"]
    assert recorder.said[2][2]["calls"] == 2
    assert recorder.said[3][2]["reason"] == "ValueError"


def test_what_is_told_twice_counts_once():
    recorder = Recorder()
    turn = turn_of(recorder)
    turn.request("r1", {}, 2)
    turn.request("r1", {"output": 9}, 2)
    turn.request("r2", {}, 2, kind="compaction")
    assert (turn.calls, turn.requests) == (2, 1)
    assert len(recorder.said) == 3


def test_questions_in_requests_count_requests():
    recorder = Recorder()
    turn = turn_of(recorder, unit="requests")
    turn.request("r1", {}, 5)
    turn.should_compact(1)
    assert recorder.said[-1][2]["calls"] == 1


def test_calls_before_observation_count():
    turn = Turn(Recorder(), "main", "s", None, {"entry_calls": 7}, {})
    assert turn.calls == 7
    assert turn.turn_id


def test_a_turn_without_a_session_is_one():
    turn = Turn(Recorder(), "main", None, "t", {}, {})
    assert turn.session_id == "t"


def test_useless_compactions_are_counted_in_a_row():
    recorder = Recorder()
    turn = turn_of(recorder)
    turn.request("r1", {}, 4)
    counted = []
    for before, after in [(100, 96), (100, 95.0), (100, 96), (100, 96), (100, 95), (100, None)]:
        turn.compacted(before, after)
        counted.append(turn.useless_compactions)
    assert counted == [1, 1, 2, 3, 0, 0]
    assert recorder.said[1] == (
        "compaction",
        ("s", 100),
        {"turn_id": "t", "context_after": 96, "calls_before": 4, "requests_before": 1},
    )
    turn.should_compact(1)
    assert recorder.said[-1][2]["useless_compactions"] == 0


@pytest.mark.parametrize("tool_calls", ["x", object(), {"id": "c"}, -3, 1.5])
def test_wrong_calls_are_passed_on_and_not_counted(tool_calls):
    recorder = Recorder()
    turn = turn_of(recorder)
    turn.request(["no", "id"], object(), tool_calls)
    assert turn.calls == 0
    assert recorder.said[0][1][3] is tool_calls


def test_an_iterator_of_calls_is_counted_and_sent():
    recorder = Recorder()
    turn = turn_of(recorder)
    turn.request("r", {}, (pair for pair in [("c", "Bash")]))
    assert turn.calls == 1
    assert recorder.said[0][1][3] == [{"id": "c", "name": "Bash"}]

"""tau-bench: turns up to an answer without tools, and how episodes end."""

from pathlib import Path

import pytest

from ledger.readers.tau_bench import tau_bench_events
from tests.unit.ledger.told import Told


def user(content="SECRET"):
    return {"role": "user", "content": content}


def answer(*names):
    asked = [{"id": "c", "type": "function", "function": {"name": name}} for name in names]
    return {"role": "assistant", "content": None if asked else "SECRET"} | (
        {"tool_calls": asked} if asked else {}
    )


RESULT = {"role": "tool", "tool_call_id": "c", "content": "SECRET"}
SYSTEM = {"role": "system", "content": "SECRET"}
STOP = user("###STOP### SECRET")


def episode(*messages, task=0, trial=0):
    return {"task_id": task, "trial": trial, "reward": 0.0, "info": {}, "traj": list(messages)}


def read(*episodes, name="gpt-4o-airline.json", **options):
    return Told(list(tau_bench_events([list(episodes)], Path(name), **options)))


def test_turns_go_from_a_question_to_an_answer():
    told = read(
        episode(
            *(SYSTEM, user(), answer("find"), RESULT, answer("book"), RESULT, answer()),
            *(user(), answer(), STOP),
            task=3,
            trial=1,
        )
    )
    # The same call id in two answers is two calls.
    assert told.turns == {
        "gpt-4o-airline/3-1/0": ("airline-agent", "ended", "final_text", 3, 2),
        "gpt-4o-airline/3-1/1": ("airline-agent", "ended", "final_text", 1, 0),
    }
    started = told.started["gpt-4o-airline/3-1/0"]
    assert (started.model, started.session_id) == ("gpt-4o", "gpt-4o-airline/3-1")
    # No tokens are told: there are totals, and no requests of nothing.
    assert told.requests == {}


@pytest.mark.parametrize(
    ("behind", "expected"),
    [
        ([], ("cut", "episode_end")),
        ([answer("transfer_to_human_agents"), RESULT], ("cut", "transferred")),
        ([answer()], ("ended", "final_text")),
        ([answer(), STOP], ("ended", "final_text")),
        ([STOP], ("cut", "superseded")),
    ],
)
def test_how_the_last_turn_ends(behind, expected):
    assert read(episode(user(), answer("find"), RESULT, *behind)).only_turn[1:3] == expected


def test_a_question_without_an_answer_is_no_turn():
    assert read(episode(SYSTEM, user(), STOP), episode(user(), task=1)).events == []


def test_a_name_that_tells_neither_model_nor_domain():
    told = read(episode(user(), answer()), name="run.json.gz")
    assert told.only_turn[0] == "agent"
    assert told.started["run/0-0/0"].model is None
    told = read(episode(user(), answer()), role_by_project=True)
    assert told.only_turn[0] == "unknown-project/airline-agent"


def whole_results():
    return [
        episode(SYSTEM, user(), answer("find"), RESULT, answer(), user(), answer(), STOP),
        episode(SYSTEM, user(), answer("find", "book"), RESULT, task=1),
        episode(SYSTEM, user(), answer("transfer_to_human_agents"), RESULT, task=1, trial=1),
    ]

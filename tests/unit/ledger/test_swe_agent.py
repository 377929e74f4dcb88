"""SWE-agent: a step is a call, and only a submission by choice is an end."""

from pathlib import Path

import pytest

from ledger.readers.swe_agent import swe_agent_events
from tests.unit.ledger.told import Told

STEP = {"action": "SECRET", "observation": "SECRET", "response": "", "state": "", "thought": ""}


def trajectory(steps=3, exit_status="submitted", **stats):
    info = {"exit_status": exit_status} if exit_status else {}
    return {"trajectory": [STEP] * steps, "history": [], "info": info | {"model_stats": stats}}


def read(*documents, log="20240825_SWE-agent_m-1/task__repo-1.traj", **options):
    return Told(list(swe_agent_events(documents, Path(log), **options)))


@pytest.mark.parametrize(
    ("exit_status", "expected"),
    [
        ("submitted", ("ended", "submitted")),
        ("submitted (exit_cost)", ("cut", "submitted (exit_cost)")),
        ("submitted (exit_context)", ("cut", "submitted (exit_context)")),
        ("exit_cost", ("cut", "exit_cost")),
        ("exit_context", ("cut", "exit_context")),
        ("exit_format", ("cut", "exit_format")),
        ("early_exit", ("cut", "early_exit")),
        (None, ("cut", "no_exit_status")),
    ],
)
def test_how_a_trajectory_ends(exit_status, expected):
    assert read(trajectory(3, exit_status)).only_turn == ("swe-agent", *expected, 3, 3)


def test_answers_asked_for_again_are_requests_and_no_steps():
    assert read(trajectory(3, api_calls=5)).only_turn[3:] == (5, 3)
    assert read(trajectory(3, api_calls=0)).only_turn[3:] == (3, 3)


def test_a_trajectory_without_a_step_is_no_turn():
    assert read(trajectory(0, "exit_cost")).events == []


@pytest.mark.parametrize(
    ("log", "turn_id", "model"),
    [
        ("20240825_SWE-agent_m-1/t__r-1.traj", "20240825_SWE-agent_m-1/t__r-1", "m-1"),
        ("gpt4__bench__default/t__r-1.traj.gz", "gpt4__bench__default/t__r-1", "gpt4"),
        ("runs/t__r-1.traj", "runs/t__r-1", None),
    ],
)
def test_a_trajectory_is_named_after_its_run(log, turn_id, model):
    (started,) = read(trajectory(), log=log).started.values()
    assert (started.turn_id, started.model) == (turn_id, model)


def test_a_file_of_many_names_each():
    lines = [{"file": f"t__r-{number}.traj", "traj": trajectory(number)} for number in (1, 2)]
    told = read(*lines, log="logs/20240825_SWE-agent_m-1.trajs.jsonl.gz")
    run = "20240825_SWE-agent_m-1"
    assert {key: turn[-1] for key, turn in told.turns.items()} == {
        f"{run}/t__r-1": 1,
        f"{run}/t__r-2": 2,
    }
    assert {started.model for started in told.started.values()} == {"m-1"}


def test_roles_by_project():
    assert read(trajectory(), role_by_project=True).only_turn[0] == "unknown-project/swe-agent"


def whole_trajectory():
    return trajectory(4, "submitted (exit_cost)", api_calls=5, tokens_sent=9)


def whole_trajectories():
    return [{"file": f"t__r-{number}.traj", "traj": trajectory(number)} for number in (1, 2, 3)]

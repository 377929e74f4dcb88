import json

import pytest

from cli.app import run

HEAD = "turn_id,role,model,trigger,tool_calls"


@pytest.fixture(autouse=True)
def own_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.chdir(tmp_path)
    # 60 turns each, one kind with half the calls of the other; triggers tell them apart no more
    rows = [
        f"{model}{place},dev,{model},prompt,{calls * (1 + place % 10)}"
        for model, calls in (("large", 2), ("small", 1))
        for place in range(60)
    ]
    (tmp_path / "t.csv").write_text("\n".join([HEAD, *rows, ""]))


def printed(capsys, *words):
    assert run(["split", *words, "--from", "t.csv"]) == 0
    return capsys.readouterr().out


def test_a_planted_split_pays(capsys):
    told = json.loads(printed(capsys, "dev", "--by", "model", "--json"))
    large, small = told["parts"]
    # the mean of 1 … 10 is 5.5
    assert [(part["part"], part["turns"], part["ends"]) for part in (large, small)] == [
        ("large", 60, 60),
        ("small", 60, 60),
    ]
    assert (large["mean"], small["mean"]) == (pytest.approx(11), pytest.approx(5.5))
    assert told["pays"] is True
    assert small["pays"] is True
    assert small["hazard_ratio"] > 1.5
    assert told["degrees_of_freedom"] == 1
    assert (told["role"], told["by"], told["unknown_turns"]) == ("dev", "model", 0)


def test_the_part_that_pays_is_starred_in_a_pipe(capsys):
    text = printed(capsys, "dev")
    assert text.startswith("Turns of dev by model.\n")
    assert "│ *small │" in text
    assert "Bold (*): a table of its own pays.\n" in text
    assert "| **small** |" in printed(capsys, "dev", "--format", "markdown")
    assert printed(capsys, "dev", "--format", "csv").startswith("part,turns,ends,mean,lower,upper,")


def test_one_part_is_nothing_to_compare(capsys):
    told = json.loads(printed(capsys, "dev", "--by", "trigger", "--json"))
    assert [part["part"] for part in told["parts"]] == ["prompt"]
    assert (told["pays"], told["p"]) == (False, None)
    assert "nothing to compare" in told["reason"]

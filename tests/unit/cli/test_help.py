"""Help: uniform names of arguments, and whole sentences on the first page."""

import re

import pytest

from cli.app import COMMANDS, run

LEAVES = [
    *([name] for name in COMMANDS if name not in ("db", "keys", "prompt")),
    ["db", "upgrade"],
    *(["keys", name] for name in ("create", "list", "revoke")),
    ["prompt", "check"],
]


@pytest.fixture(autouse=True)
def a_usual_terminal(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")


@pytest.mark.parametrize("words", [[], ["keys"], ["prompt"], ["db"]])
def test_no_sentence_of_a_list_of_commands_is_cut_off(words, capsys):
    assert run([*words, "--help"]) == 0
    listed = capsys.readouterr().out.partition("Commands:\n")[2].splitlines()
    assert listed
    assert [line for line in listed if not line.endswith(".")] == []
    assert [line for line in listed if line.endswith("...")] == []


@pytest.mark.parametrize("words", LEAVES, ids=" ".join)
def test_arguments_are_capitals(words, capsys):
    assert run([*words, "--help"]) == 0
    usage = capsys.readouterr().out.partition("\n\n")[0]
    behind = usage.removeprefix(f"Usage: compactuary {' '.join(words)} [OPTIONS]")
    assert re.fullmatch(r"( [A-Z]+| \[[A-Z]+\](\.\.\.)?)*", behind)


def test_an_argument_is_listed_by_the_name_in_the_usage(capsys):
    for words, name in ((["split"], "ROLE"), (["prices"], "MODEL"), (["import"], "PATH")):
        assert run([*words, "--help"]) == 0
        assert f"\nArguments:\n  {name} " in capsys.readouterr().out

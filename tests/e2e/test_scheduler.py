"""The same numbers to the last digit, whoever reads and replays."""

import pytest

from examples.claude_code_tree import write_tree

pytest.importorskip("distributed")


@pytest.fixture
def tree(tmp_path):
    write_tree(tmp_path / "logs", sessions=24)
    return tmp_path / "logs"


@pytest.mark.parametrize(
    "words", [("backtest", "--by-role", "--sensitivity", "--json"), ("audit", "--json")]
)
def test_processes_say_what_one_process_says(compactuary, tree, words):
    alone = compactuary(*words, tree)
    assert alone.code == 0, alone.err
    together = compactuary(*words, tree, "--scheduler", "processes")
    assert together.code == 0, together.err
    assert together.out == alone.out


@pytest.mark.parametrize("command", ["backtest", "audit", "report"])
def test_a_wrong_address_is_told_in_one_line(compactuary, tree, command):
    done = compactuary(command, tree, "--scheduler", "nonsense")
    assert (done.code, done.out) == (2, "")
    assert "--scheduler: no scheduler answers here (got 'nonsense')" in done.err
    assert done.err.count("\n") == 1

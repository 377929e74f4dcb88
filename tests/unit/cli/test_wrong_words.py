"""Wrong words: one line with the value, and the help of the command that they were for."""

import pytest

from cli.app import run

VALUES = [
    (["table", "--break-even", "-1"], "'--break-even': it is at least 0 (got '-1'). "),
    (["table", "--break-even=-3"], "'--break-even': it is at least 0 (got '-3'). "),
    (["table", "--break-even", "2", "--break-even", "-3"], "it is at least 0 (got '-3'). "),
    (["table", "--break-even", "x"], "'--break-even': not a number (got 'x'). "),
    (["table", "--context", "1e5"], "'--context': not a whole number (got '1e5'). "),
    (["serve", "--port", "http"], "'--port': not a whole number (got 'http'). "),
    (["serve", "--port", "65536"], "'--port': it is at most 65535 (got '65536'). "),
    (["backtest", "--seed", "-1"], "'--seed': it is at least 0 (got '-1'). "),
    (["keys", "create", "a", "--scope", "read", "--days", "0"], "it is at least 1 (got '0'). "),
    (["decide", "--role", "m", "--calls", "1", "--context", "1e5"], "(got '1e5'). "),
    (["import", ".", "--role-by", "mood"], "(got 'mood'). "),
    (["audit", "--horizon", "week"], "--horizon: it is one of turn, session (got 'week'). "),
    (["report", "--horizon", "week"], "'week' is not one of 'turn', 'session'. "),
    (["split", "main", "--by", "mood"], "first_tool (got 'mood'). "),
    (["export", "agents"], "'KIND': 'agents' is not one of"),
]


@pytest.mark.parametrize(("words", "told"), VALUES)
def test_a_wrong_value_is_named(words, told, capsys):
    assert run(words) == 2
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert told in err


@pytest.mark.parametrize(
    ("words", "command"),
    [
        (["table", "--bogus"], "table"),
        (["table", "--break-even"], "table"),
        (["table", "more"], "table"),
        (["split"], "split"),
        (["keys", "create", "--bogus"], "keys create"),
        (["keys", "creat"], "keys"),
    ],
)
def test_the_help_named_is_the_commands_own(words, command, capsys):
    assert run(words) == 2
    assert capsys.readouterr().err.endswith(f" See: compactuary {command} --help\n")


def test_a_question_ends_with_its_own_mark(capsys):
    assert run(["impor"]) == 2
    assert capsys.readouterr().err == (
        "error: No such command 'impor'. Did you mean 'import'? See: compactuary --help\n"
    )


@pytest.mark.parametrize("command", ["table", "audit", "report", "backtest"])
@pytest.mark.parametrize("json", [(), ("--json",)])
def test_a_model_without_a_price_is_refused_at_once(command, json, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("COMPACTUARY_DB", str(tmp_path / "ledger.db"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.csv").write_text("turn_id,role,tool_calls,requests\na,main,1,1\n", "utf-8")
    assert run(["import", "t.csv"]) == 0
    capsys.readouterr()
    code = run([command, "--model", "no-such-model", *json])
    out, err = capsys.readouterr()
    assert (code, out) == (2, "")
    assert err.startswith("error: ")
    if command != "backtest":  # where these turns tell no tokens, that is told first
        assert err.startswith("error: model: no price is known for this model")
        assert "(got 'no-such-model')" in err

"""The command in this process: what it prints, and what it refuses."""

import json

import pytest

from cli.app import run

FEW = ["--documents", "0,25", "--arms", "naive,preserving", "--thresholds", ""]


@pytest.fixture(autouse=True)
def own_folder(monkeypatch, tmp_path):
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.chdir(tmp_path)


def test_text_says_first_that_it_is_simulated_and_fits_a_terminal(capsys):
    assert run(["sweep", *FEW, "--trace"]) == 0
    told = capsys.readouterr().out
    assert told.startswith("The model is simulated: what is meant is the shape of the curves")
    assert max(map(len, told.splitlines())) <= 80
    assert "\nquality\n" in told
    assert "\nbill, base tokens\n" in told
    assert "preserving: nothing read again, nothing contradicted" in told
    assert "\nnaive: read doc-" in told
    assert "\nNaive read doc-" in told
    assert "threshold  quality" not in told


def test_json_has_a_row_an_arm_and_count(capsys):
    assert run(["sweep", *FEW, "--thresholds", "6000,15000", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["provider"], told["simulated"], told["model"]) == (
        "simulated",
        True,
        "claude-opus-4-8",
    )
    assert [(one["arm"], one["documents"]) for one in told["arms"]] == [
        ("naive", 0),
        ("naive", 25),
        ("preserving", 0),
        ("preserving", 25),
    ]
    for one in told["arms"]:
        assert one["repeated_reads"] == len(one["read_again"])
        assert one["contradictions"] == len(one["contradicted"])
        # Opus 4.8 costs 5 dollars a million input tokens.
        assert one["dollars"] == pytest.approx(one["cost"] * 5e-6, rel=1e-4)
    assert [one["threshold_tokens"] for one in told["thresholds"]] == [6_000, 15_000]
    # The threshold that the arms have is not run twice.
    assert told["thresholds"][1] == {"threshold_tokens": 15_000, **told["arms"][3]}
    assert told["assumptions"][0].startswith("The model is simulated")


@pytest.mark.parametrize("name", ["curves.png", "curves.svg"])
def test_a_picture_is_drawn_besides(capsys, tmp_path, name):
    few = ["--documents", "0,3", "--arms", "baseline", "--thresholds", "9000"]
    assert run(["sweep", *few, "--plot", name]) == 0
    assert capsys.readouterr().err == f"drew {name}\n"
    head = (tmp_path / name).read_bytes()[:8]
    assert head == b"\x89PNG\r\n\x1a\n" or head.startswith(b"<?xml")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--arms", "naive,lossy"], "--arms: no such arm (got 'lossy'). Choose among baseline, "),
        (["--arms", ","], "--arms: is empty"),
        (["--documents", "10,-3"], "--documents: not a list of counts (got '-3')"),
        (["--documents", "ten"], "--documents: not a list of counts (got 'ten')"),
        (["--documents", ""], "--documents: is empty"),
        (["--documents", "0,501"], "--documents: is not from 0 to 500 (got 501)"),
        (["--threshold", "300"], "--threshold, --thresholds: leaves no room to work (got 300)"),
        (["--thresholds", "9k"], "--thresholds: not a list of counts (got '9k')"),
        (["--provider", "mistral"], "--provider: no such provider (got 'mistral')"),
        (["--provider", "openai"], "--model: is needed with --provider openai"),
        (["--provider", "anthropic"], "ANTHROPIC_API_KEY: is not set"),
        (["--provider", "openai", "--model", "gpt-5.4"], "OPENAI_API_KEY: is not set"),
        (["--model", "no-such-model"], "no-such-model"),
        (["--plot", "curves.bmp"], "--plot: not a type of picture (got 'curves.bmp')"),
        (["--plot", "nowhere/c.svg"], "--plot: there is no such folder (got 'nowhere')"),
        (["--seed", "-1"], "--seed"),
    ],
)
def test_wrong_words_are_refused_in_one_line(capsys, words, told):
    assert run(["sweep", *words]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert told in captured.err

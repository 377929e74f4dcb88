"""``compactuary lab`` without a terminal: scripts, JSON lines, exit codes, wrong words."""

import errno
import gzip
import io
import json
import os
import sys
from types import SimpleNamespace

import pytest

from cli.app import run
from cli.lab import command
from strategies import masking
from strategies.summary import Summarizer
from tests.conftest import SHARED, needs_shared_data

pytestmark = pytest.mark.disable_socket

TALK = [
    {"role": "user", "content": "q" * 40},
    {"role": "assistant", "content": "a" * 400},
    {"role": "user", "content": "more"},
]
WEIGHTS = [
    word
    for name in ("cache_read=0.1", "cache_write=1.25", "output=5")
    for word in ("--weight", name)
]


@pytest.fixture(autouse=True)
def own_folder(monkeypatch, tmp_path):
    monkeypatch.delenv("COMPACTUARY_DB", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    # Nothing here may need the prompt's library.
    monkeypatch.setitem(sys.modules, "prompt_toolkit", None)
    (tmp_path / "talk.json").write_text(json.dumps(TALK))
    return tmp_path


def commands(*lines):
    return [word for line in lines for word in ("--command", line)]


SESSION = """\
lab> /compact sliding_window keep_last=1
sliding_window: dropped what was older than message 2
3 → 1 messages, 111 → 1 tokens (-99%)
lab> /undo
undone: sliding_window keep_last=1; 3 messages, 111 tokens
"""
LINES = ["/compact sliding_window keep_last=1", "/undo"]


def test_commands_a_script_and_standard_input_read_alike(own_folder, monkeypatch, capsys):
    assert run(["lab", "talk.json", *commands(*LINES)]) == 0
    assert capsys.readouterr() == (SESSION, "")
    (own_folder / "try.txt").write_text("# try\n\n  " + "\n".join(LINES) + "\n")
    assert run(["lab", "talk.json", "--script", "try.txt"]) == 0
    assert capsys.readouterr() == (SESSION, "")
    monkeypatch.setattr(sys, "stdin", io.StringIO("\n".join(LINES)))
    assert run(["lab", "talk.json"]) == 0
    assert capsys.readouterr() == (SESSION, "")


def test_a_script_stops_at_what_fails_and_at_quit(capsys):
    assert run(["lab", "talk.json", *commands("/undo", "/compact none")]) == 1
    assert capsys.readouterr() == (
        "lab> /undo\n",
        "error: /undo: nothing was compacted yet. Compact first: /compact.\n",
    )
    assert run(["lab", "talk.json", *commands("/quit", "/undo")]) == 0
    assert capsys.readouterr() == ("lab> /quit\n", "")


def test_json_is_one_line_a_command(capsys):
    words = commands(LINES[0], "/verbose on", "/bogus")
    assert run(["lab", "talk.json", "--json", *words]) == 1
    out, err = capsys.readouterr()
    first, second, third = map(json.loads, out.splitlines())
    assert first == {
        "command": LINES[0],
        "ok": True,
        "strategy": "sliding_window keep_last=1",
        "changed": True,
        "reason": "dropped what was older than message 2",
        "messages": 3,
        "messages_after": 1,
        "context_tokens": 111,
        "context_after_tokens": 1,
        "dropped": [0, 1],
        "summarised": [],
        "rewritten": [],
    }
    assert second == {"command": "/verbose on", "ok": True, "verbose": True}
    assert third["ok"] is False
    assert err == f"error: {third['error']}\n"


def test_what_is_saved_is_unmasked_and_what_is_shown_is_not(own_folder, capsys):
    secret = "hunter2hunter2"
    talk = [{"role": "user", "content": f"password = '{secret}'"}, *TALK[1:]]
    (own_folder / "talk.json").write_text(json.dumps({"model": "m", "messages": talk}))
    words = commands("/show", "/save out.json", "/save out.json")
    assert run(["lab", "talk.json", *words]) == 1
    out, err = capsys.readouterr()
    assert secret not in out + err
    assert err == "error: /save: is there already (got 'out.json'). Name a new file.\n"
    assert json.loads((own_folder / "out.json").read_text()) == {"model": "m", "messages": talk}


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("no/such/x.json", "No such file or directory. Name a folder that exists."),
        ("talk.json/x.json", "Not a directory. Name a folder that exists."),
        ("x" * 300, "File name too long. Give a shorter name."),
    ],
)
def test_a_file_that_cannot_be_written_is_one_line(name, told, capsys):
    assert run(["lab", "talk.json", *commands(f"/save {name}")]) == 1
    assert capsys.readouterr().err == f"error: {name}: {told}\n"


def test_a_disk_that_refuses_is_what_is_to_be_looked_at(monkeypatch, capsys):
    def full(*arguments):
        raise OSError(errno.ENOSPC, "No space left on device", "x.json")

    monkeypatch.setattr(os, "open", full)
    assert run(["lab", "talk.json", *commands("/save x.json")]) == 1
    assert capsys.readouterr().err == (
        "error: x.json: No space left on device. Check the disk and the rights.\n"
    )


@pytest.mark.parametrize(
    ("name", "variable"), [("anthropic", "ANTHROPIC_API_KEY"), ("openai", "OPENAI_API_KEY")]
)
def test_a_provider_without_a_key_is_refused_at_the_start(name, variable, monkeypatch, capsys):
    pytest.importorskip(name)
    for each in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "OPENAI_API_KEY"):
        monkeypatch.delenv(each, raising=False)
    words = ["lab", "talk.json", "--summarizer", name, "--summary-model", "gpt-5.1"]
    assert run([*words, *commands("/show")]) == 2
    remedy = f"Set it to a key of {name}'s, or run without --summarizer"
    assert capsys.readouterr() == (
        "",
        f"error: {variable}: is not set. {remedy}\n",
    )


def test_a_provider_without_its_package_is_named(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "openai", None)
    words = ["lab", "talk.json", "--summarizer", "openai", "--summary-model", "gpt-5.1"]
    assert run([*words, *commands("/show")]) == 2
    err = capsys.readouterr().err
    assert err.startswith("error: --summarizer openai needs the package openai. ")
    assert 'pip install "compactuary[openai]"' in err


@pytest.mark.parametrize("as_json", [False, True])
def test_a_script_ends_where_the_summary_call_fails(own_folder, monkeypatch, capsys, as_json):
    def broken(request):
        raise TimeoutError("nobody answers")

    monkeypatch.setattr(command, "summarizer_named", lambda *a: Summarizer(broken))
    lines = commands("/compact summarize keep_recent=1", "/save out.json")
    assert run(["lab", "talk.json", *(["--json"] if as_json else []), *lines]) == 1
    out, err = capsys.readouterr()
    told = "summarize: the summary call failed: TimeoutError: nobody answers"
    assert err == f"error: {told}. The conversation is as it was.\n"
    assert not (own_folder / "out.json").exists()
    if as_json:
        (line,) = map(json.loads, out.splitlines())
        assert (line["ok"], line["error"]) == (False, f"{told}. The conversation is as it was.")


def test_what_masks_secrets_is_missed_by_the_labs_own_extra(monkeypatch, capsys):
    for part in ("detect_secrets.core.plugins.util", "detect_secrets.plugins.keyword"):
        monkeypatch.setitem(sys.modules, part, None)
    for kept in (masking._patterns, masking._rules):
        kept.cache_clear()
    assert run(["lab", "talk.json", *commands("/quote micro")]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert 'pip install "compactuary[lab]"' in err
    assert "strategies" not in err


def test_entries_that_are_no_messages_are_told_apart(own_folder, capsys):
    lines = [
        {"type": "file-history-snapshot", "uuid": "0"},
        {"type": "user", "uuid": "1", "message": {"role": "user", "content": "gone"}},
        {"type": "system", "subtype": "compact_boundary", "uuid": "2"},
        {"type": "user", "uuid": "3", "message": {"role": "user", "content": "here"}},
    ]
    (own_folder / "log.jsonl").write_text("".join(f"{json.dumps(each)}\n" for each in lines))
    assert run(["lab", "log.jsonl", *commands("/show", "/show 0", "/show 1", "/show 3")]) == 0
    assert capsys.readouterr().out == (
        "lab> /show\n"
        "1 messages in 4 entries (claude_code), 1 tokens\n"
        "#  tokens  message\n"
        "3       1  user       here\n"
        "lab> /show 0\n"
        "entry 0 (type file-history-snapshot) is no message of the context, 0 tokens\n"
        "lab> /show 1\n"
        "entry 1 (type user) is no message of the context, 0 tokens\n"
        "lab> /show 3\n"
        "message 3, user, 1 tokens\n"
        "user text:\n"
        "    here\n"
    )
    assert run(["lab", "log.jsonl", "--json", *commands("/show")]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["messages"], told["entries"]) == (1, 4)


def test_decide_rests_on_the_ledger_at_hand(capsys):
    assert run(["db", "upgrade", "--db", "l.db"]) == 0
    capsys.readouterr()
    # No quote has a dollar; weights do where no model is named.
    words = ["lab", "talk.json", *WEIGHTS, "--db", "l.db", "--json", "--role", "nobody"]
    assert run([*words, *commands("/decide sliding_window keep_last=1")]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["asked"]["role"] == "nobody"
    assert answer["asked"]["context_tokens"] == 111
    # All but the prompt is dropped: C = 1.15 · 1, s = 0.1 · 110.
    assert answer["cost"] == pytest.approx(1.15)
    assert answer["saving_per_call"] == pytest.approx(11)
    assert answer["decision"] == answer["would_decide"]
    assert answer["basis"]["source"] == "standard"


CASES = [
    (["nowhere.json"], "nowhere.json: No such file"),
    (["talk.json", "--command", "/undo", "--script", "x"], "--command, --script"),
    (["talk.json", "--script", "nothing.txt"], "nothing.txt: No such file"),
    (["talk.json", "--model", "m", *WEIGHTS], "--model, --weight"),
    (["talk.json", "--weight", "x"], "--weight"),
    (["talk.json", "--weight", "output=1"], "weights"),
    (["talk.json", "--format", "bogus"], "'bogus'"),
    (["talk.json", "--prefix-tokens", "-1"], "--prefix-tokens"),
    (["talk.json", "--summarizer", "nobody"], "--summarizer"),
    (["talk.json", "--summarizer", "openai"], "--summary-model"),
    (["talk.json", "--summary-model", "no-such-model", "--command", "/show"], "no-such-model"),
    (["talk.json", "--url", "ftp://x", "--command", "/show"], "ftp://x"),
]


@pytest.mark.parametrize(("words", "named"), CASES)
def test_wrong_words_are_told_in_one_line(words, named, capsys):
    assert run(["lab", *words]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    assert named in err


def test_an_unknown_model_is_told_where_it_is_needed(capsys):
    words = ["lab", "talk.json", "--model", "no-such-model"]
    assert run([*words, *commands("/show", "/quote")]) == 1
    assert "no-such-model" in capsys.readouterr().err


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_on_a_terminal_the_prompts_library_is_needed_and_json_a_script(monkeypatch, capsys):
    monkeypatch.setattr(sys, "stdin", Terminal())
    assert run(["lab", "talk.json"]) == 2
    assert 'pip install "compactuary[lab]"' in capsys.readouterr().err
    assert run(["lab", "talk.json", "--json"]) == 2
    assert "error: --json: needs a script. " in capsys.readouterr().err


def test_a_torn_last_line_is_noted(own_folder, capsys):
    lines = "\n".join(map(json.dumps, TALK))
    (own_folder / "talk.jsonl").write_text(lines + '\n{"role"')
    assert run(["lab", "talk.jsonl", *commands("/show 2")]) == 0
    assert capsys.readouterr().err == "note: line 4 is torn and was left out\n"


def _logs(kind, count):
    """Return a sample of real logs, from the smallest on."""
    found = sorted(
        (SHARED / "data" / "logs").glob(f"*/{kind}/*.jsonl.gz"), key=lambda p: p.stat().st_size
    )
    return found[:: max(len(found) // count, 1)][:count]


@needs_shared_data
@pytest.mark.parametrize(
    "path", [*_logs("claude-code", 4), *_logs("codex", 4)], ids=lambda p: p.stem
)
def test_real_logs_open(path, capsys):
    words = commands("/show", "/compact micro keep=0", "/verbose on", "/compact summarize")
    assert run(["lab", str(path), "--json", *words]) == 0
    shown, micro, *_ = map(json.loads, capsys.readouterr().out.splitlines())
    with gzip.open(path, "rt") as file:
        lines = [json.loads(line) for line in file if line.endswith("}\n")]
    if "payload" in lines[0]:
        items = [line for line in lines if line["type"] == "response_item"]
        if not any(line["type"] == "compacted" for line in lines):
            assert shown["messages"] == sum(
                item["payload"]["type"] != "agent_message" for item in items
            )
    assert micro["messages"] == micro["messages_after"] == shown["messages"]
    assert micro["context_after_tokens"] <= micro["context_tokens"]


@pytest.mark.parametrize("name", ["~nobody-of-this-name/x.json", "a\0b", "no/such/folder.json"])
def test_what_is_no_path_to_write_to_is_one_line(name, capsys):
    assert run(["lab", "talk.json", *commands(f"/save {name}", "/undo")]) == 1
    told = capsys.readouterr()
    assert told.err.startswith("error: ")
    assert told.err.count("\n") == 1


def test_arguments_nested_deeper_than_python_goes_are_one_line(own_folder, capsys):
    inner = {}
    for _ in range(900):
        inner = {"a": inner}
    call = {"type": "tool_use", "id": "c", "name": "bash", "input": inner}
    result = {"type": "tool_result", "tool_use_id": "c", "content": "x"}
    talk = [{"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}]
    (own_folder / "deep.json").write_text(json.dumps([TALK[0], *talk]))
    code = run(["lab", "deep.json", *commands("/show 1")])
    told = capsys.readouterr().err
    # Where Python goes deeper, it is shown.
    assert code == 0 or (told.count("\n") == 1 and "nested too deep" in told)


def test_an_interrupted_reply_leaves_the_conversation(own_folder, monkeypatch):
    written, lines = [], iter(["/compact sliding keep_last=1", "/show", "/quit"])

    class Screen(io.StringIO):
        def writelines(self, lines):
            written.append(list(lines))
            if len(written) == 1:
                raise KeyboardInterrupt

    monkeypatch.setattr(command, "prompt_session", lambda path: SimpleNamespace(prompt=None))
    monkeypatch.setattr(command, "lines_typed", lambda prompt: lines)
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(isatty=lambda: True))
    monkeypatch.setattr(sys, "stdout", Screen())
    assert run(["lab", "talk.json"]) == 0
    assert "interrupted" in sys.stdout.getvalue()
    assert any("111" in line for line in written[1])
    assert len(written[1]) > 3

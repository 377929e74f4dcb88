"""The lab's prompt on a terminal of its own: what completes, history, interrupts."""

import asyncio
import builtins
import stat

import pytest

from cli.lab.completion import completions
from cli.lab.prompt import history_file, lines_typed, prompt_session
from compactuary.errors import MissingExtraError

input_module = pytest.importorskip("prompt_toolkit.input")
output_module = pytest.importorskip("prompt_toolkit.output")


def words(line):
    return [word for word, _ in completions(line)]


def test_commands_complete():
    assert words("/un") == ["/undo"]
    assert words("/qu") == ["/quote", "/quit"]
    assert words("x") == []
    assert "/compact" in words("")


def test_strategies_short_names_and_settings_complete():
    assert words("/compact s") == ["sliding_window", "summarize", "server_side", "sliding"]
    assert words("/quote mi") == ["micro"]
    assert words("/strategy micro ") == ["keep=", "preserve="]
    assert words("/decide micro keep=2 ") == ["preserve="]
    assert words("/compact sliding ") == ["keep_last="]
    assert words("/age 10 k") == ["keep="]
    # A model is not set in a line.
    assert words("/compact summarize ") == ["threshold=", "keep_recent=", "within_turn="]
    assert words("/compact bogus ") == []
    assert words("/verbose o") == ["on", "off"]
    assert words("/verbose on ") == []
    assert dict(completions("/compact micro "))["preserve="] == "default read_file"
    assert dict(completions("/compact summarize w"))["within_turn="] == "default false"


def test_files_complete(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "inside").mkdir()
    (tmp_path / "inside" / "a.json").touch()
    (tmp_path / "talk.json").touch()
    assert words("/save ") == ["inside/", "talk.json"]
    assert words("/save inside/") == ["inside/a.json"]
    assert words(f"/save {tmp_path}/t") == [f"{tmp_path}/talk.json"]
    assert words("/save nowhere/") == []


@pytest.fixture
def typed():
    """Return what types keys into a prompt, and gives its lines up to the end of input."""

    def run(keys, history=None):
        with input_module.create_pipe_input() as keyboard:
            keyboard.send_text(keys)
            prompt = prompt_session(history, input=keyboard, output=output_module.DummyOutput())
            return list(lines_typed(prompt.prompt))

    return run


async def _until(holds):
    """Wait for what happens beside the typing."""
    async with asyncio.timeout(30):
        while not holds():
            await asyncio.sleep(0.01)


@pytest.mark.parametrize(
    ("begun", "line"),
    [
        ("/und", "/undo"),
        ("/compact mic", "/compact micro"),
        ("/quote micro pre", "/quote micro preserve="),
    ],
)
def test_a_tab_completes_a_line(begun, line):
    async def typing(keyboard, prompt):
        asked = asyncio.create_task(prompt.prompt_async())
        buffer = prompt.default_buffer
        keyboard.send_text(begun)
        # A tab is for the menu, which opens while one types.
        await _until(lambda: buffer.complete_state and buffer.complete_state.completions)
        keyboard.send_text("\t")
        await _until(lambda: buffer.text == line)
        keyboard.send_text("\r")
        return await asked

    with input_module.create_pipe_input() as keyboard:
        prompt = prompt_session(None, input=keyboard, output=output_module.DummyOutput())
        assert asyncio.run(typing(keyboard, prompt)) == line


def test_history_goes_back_over_sessions(typed, tmp_path):
    history = tmp_path / "history"
    assert typed("/quote\r/age\r\x04", history) == ["/quote", "/age"]
    assert typed("\x1b[A\x1b[A\r\x04", history) == ["/quote"]


def test_an_interrupt_drops_the_line_and_the_end_of_input_leaves(typed):
    assert typed("/compact\x03/undo\r\x04/never\r") == ["/undo"]


def test_the_history_is_its_owners_alone(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    path = history_file()
    assert path == tmp_path / "compactuary" / "lab_history"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    (tmp_path / "taken").touch()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "taken"))
    assert history_file() is None


def test_a_missing_extra_is_named(monkeypatch):
    known = builtins.__import__

    def without(name, *more, **named):
        if name.startswith("prompt_toolkit"):
            raise ModuleNotFoundError("no", name=name)
        return known(name, *more, **named)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MissingExtraError, match=r"compactuary\[lab\].*--command"):
        prompt_session(None)


@pytest.mark.parametrize("line", ["/save ~nobody-of-this-name/", "/save a\0b/", "/save /nowhere/x"])
def test_a_path_that_is_none_completes_to_nothing(line):
    assert words(line) == []

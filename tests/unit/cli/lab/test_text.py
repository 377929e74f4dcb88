"""What reaches the screen: no sequence that a terminal obeys, no secret, one message in a line."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cli.lab.text import first_line, headline, message_lines, on_screen, table
from strategies.formats.recognise import see

pytestmark = pytest.mark.disable_socket


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("naïve 日本 →", "naïve 日本 →"),
        ("a\tb\r\nc\rd", "a    b\ncd"),
        ("\x1b[31;1mred\x1b[0m", "red"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x07", "link"),
        ("\x1b]0;title\x07after", "after"),
        ("\x1b]52;c;never ended", ""),
        ("\x1bPq#0\x1b\\after", "after"),
        ("\x1b(0box\x1b7\x1bc", "box"),
        ("\x9b2Jclear\x9d0;t\x9c", "clear"),
        ("\x00\x07\x08\x7f\x85", ""),
        ("\u202eevil\u200b\ufeff\u2066", "evil"),
        ("\ud83d", ""),
    ],
)
def test_what_a_terminal_obeys_is_gone(text, shown):
    assert on_screen(text) == shown


@given(st.text(alphabet=st.characters(), max_size=60))
def test_nothing_unseen_is_left(text):
    shown = on_screen(f"\x1b{text}\x1b[")
    assert all(
        letter == "\n" or unicodedata.category(letter) not in ("Cc", "Cf", "Cs") for letter in shown
    )


def test_a_secret_that_is_cut_up_is_masked_all_the_same():
    secret = "ghp_abcdefghijklmnopqrstuvwxyz0123456789"
    assert on_screen(secret) == "[masked GitHub Token]"
    assert on_screen("\x1b[0m".join(secret)) == "[masked GitHub Token]"
    assert on_screen("\u200b".join(secret)) == "[masked GitHub Token]"


def test_the_first_line_is_masked_before_it_is_cut():
    assert first_line("\n\n  password = 'hunter2hunter2'  \nmore", 14) == "password = '[…"
    assert first_line("", 9) == ""
    assert first_line("abcdefghij", 10) == "abcdefghij"
    assert first_line("abcdefghijk", 10) == "abcdefghi…"


def test_every_kind_of_part_has_a_line():
    blocks = [
        {"type": "thinking", "thinking": "hm", "signature": "s"},
        {"type": "text", "text": "I look"},
        {"type": "tool_use", "id": "a", "name": "bash", "input": {"command": "ls"}},
        {"type": "compaction", "content": "brief"},
    ]
    image = {"type": "image", "source": {"type": "base64", "data": "aGk="}}
    results = [
        {"type": "tool_result", "tool_use_id": "a", "content": "no", "is_error": True},
        {"type": "tool_result", "tool_use_id": "b", "content": [image]},
        image,
    ]
    talk = [
        {"role": "assistant", "content": blocks},
        {"role": "user", "content": results},
        {"role": "user", "content": ""},
    ]
    conversation = see(talk)
    calls = conversation.calls()
    lines = [headline(message, calls, 200) for message in conversation.messages]
    assert lines == [
        'thinks: hm; I look; calls bash {"command": "ls"}; [compaction by the provider] brief',
        "result of bash failed: no; result of an unknown call:  [1 image(s)]; [image]",
        "(empty)",
    ]
    assert message_lines(conversation.messages[1], calls) == [
        "result of bash failed:",
        "    no",
        "result of an unknown call [1 image(s)]:",
        "user image [1 image(s)]:",
    ]


def test_long_parts_are_cut_where_that_is_asked():
    message = see([{"role": "user", "content": "a\nb\nc\nd\n"}]).messages[0]
    assert message_lines(message, {}, 2) == [
        "user text:",
        "    a",
        "    b",
        "    … 2 more lines",
    ]
    assert len(message_lines(message, {})) == 5


def test_columns_line_up():
    rows = [("a", "1", "x"), ("bcd", "1,000", "")]
    assert table(("name", "n", ""), rows) == ["name      n", "a         1  x", "bcd   1,000"]

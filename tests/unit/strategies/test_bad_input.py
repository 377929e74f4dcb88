"""What no provider would take: nothing is changed, and one clear error or reason says why."""

import copy
import json
from types import SimpleNamespace

import pytest

from compactuary.errors import CompactuaryError, InputError
from strategies.extract import extract
from strategies.formats.recognise import see
from strategies.registry import STRATEGIES, strategy
from strategies.situation import Situation
from strategies.summary import SummaryReply
from strategies.with_logging import with_logging
from tests.unit.strategies.conversations import FORMATS, LangChainLike, written
from tests.unit.strategies.provider_rules import problems

pytestmark = pytest.mark.disable_socket

FORCED = Situation(force=True)


def never(request):
    raise AssertionError("asked in vain")


@pytest.fixture(params=[name for name in STRATEGIES if name != "server_side"])
def chosen(request, tmp_path):
    """Return each strategy, with settings that make it act on nearly anything."""
    settings = {
        "sliding_window": {"keep_last": 1},
        "token_budget": {"budget_tokens": 1},
        "micro": {"keep": 0},
        "tail_digest": {"keep_recent": 0, "bulky_tokens": 1},
        "summarize": {"model": never, "keep_recent": 1},
        "auto": {"model": never, "transcripts": tmp_path},
        "compact_tool": {"model": never, "transcripts": tmp_path},
    }
    return strategy(request.param, **settings.get(request.param, {}))


def user(content):
    return {"role": "user", "content": content}


def result(call_id, text="r" * 900):
    return {"type": "tool_result", "tool_use_id": call_id, "content": text}


MALFORMED = [
    ([{"role": "robot", "content": "hi"}], "messages[0].role: unknown role (got 'robot')"),
    ([user("hi"), {"content": "hi"}], "messages[1].role: unknown role. Known: user"),
    ([user("hi"), None], "messages[1].role: unknown role. Known: user"),
    # A text among messages can only be a line of a transcript.
    ([user("hi"), "hi"], "line 2: not JSON (got 'hi')"),
    ([user(3)], "messages[0]: content is neither a text nor a list (got 3)"),
    ([user({"type": "text"})], "messages[0]: content is neither a text nor a list"),
    ("hi", "messages: not a list (got 'hi')"),
    ({"role": "user"}, "messages: not a list"),
    (3, "messages: not a list (got 3)"),
    (['{"type": "user", "message": {"role": "user", "content": "hi"}', "{}"], "line 1: not JSON"),
    (["[1]"], "line 1: not an object"),
    *(
        ([user("hi"), {**user("hi"), field: value}], f"messages[1]{told}")
        for field, told in (("type", ": type is no text (got "), ("role", ".role: unknown role"))
        for value in ([], ["user"], {}, {"a": 1}, 3, 1.5, True, [[]])
    ),
    ([{"role": "assistant", "tool_calls": 3}], "messages[0]: tool_calls is no list (got 3)"),
    ([{"type": "reasoning", "summary": "x"}], "messages[0]: summary is no list (got 'x')"),
]


@pytest.mark.parametrize(("messages", "told"), MALFORMED)
def test_malformed_messages_are_one_error_that_names_the_place(chosen, messages, told, prices):
    before = copy.deepcopy(messages)
    for act in (
        lambda: chosen.compact(messages, FORCED),
        lambda: chosen.quote(messages, prices, FORCED),
    ):
        with pytest.raises(CompactuaryError) as error:
            act()
        assert str(error.value).startswith(told)
        assert isinstance(error.value, InputError) or told.startswith("line")
        assert "\n" not in str(error.value)
    assert messages == before


ROUND = (True, True, [("bash", "a", "r"), ("search", "b", "s")])
PLAN = SimpleNamespace(
    system=True, turns=[("p", True, [ROUND], "an"), ("q", False, [], "z")], end="answer"
)


def inner(value):
    """Return what a value holds by name or place."""
    held = vars(value) if isinstance(value, LangChainLike) else value
    return held if isinstance(held, dict | list) else ()


def places(value, at=()):
    """Yield the way to everything within a value."""
    held = inner(value)
    for key in held if isinstance(held, dict) else range(len(held)):
        yield (*at, key)
        yield from places(held[key], (*at, key))


def replaced(messages, at, value):
    changed = copy.deepcopy(messages)
    within = changed
    for key in at[:-1]:
        within = inner(within)[key]
    inner(within)[at[-1]] = value
    return changed


@pytest.mark.parametrize("told", [True, False])
@pytest.mark.parametrize("name", FORMATS)
def test_whatever_stands_in_a_field_it_is_read_or_one_clear_error(name, told):
    chosen = (
        strategy("micro", keep=0),
        strategy("tail_digest", keep_recent=0, bulky_tokens=1, prefix_messages=0),
        strategy("summarize", model=extract, keep_recent=1),
    )
    messages = written(PLAN, name)
    read, errors = 0, []
    for at in places(messages):
        for value in ([], {}, 3, [[]], [3], {"a": []}, True, 1.5, None, "x"):
            try:
                view = see(replaced(messages, at, value), name if told else None)
                for each in chosen:
                    each.compact(view, FORCED)
                read += 1
            except CompactuaryError as error:
                errors.append(str(error))
    assert read
    assert errors
    assert all(error.startswith(("messages[", "line ")) for error in errors)


LEFT_ALONE = {
    "empty": [],
    "an orphaned result": [user("hi"), user([result("nowhere")]), user("and now?")],
    "a result before its prompt": [user([result("nowhere")])],
    "one giant message": [user("x" * 2_000_000)],
    "only a system prompt": [{"role": "system", "content": "x" * 9_000}],
    "only an answer": [{"role": "assistant", "content": "x" * 9_000}],
    "empty contents": [user(""), {"role": "assistant", "content": []}, user(None)],
}


@pytest.mark.parametrize("name", [each for each in LEFT_ALONE if each != "only an answer"])
def test_what_can_t_be_compacted_is_left_as_it_is(chosen, name):
    messages = LEFT_ALONE[name]
    before = copy.deepcopy(messages)
    done = chosen.compact(messages, FORCED)
    assert done.messages is messages
    assert not done.changed
    assert done.reason
    assert "\n" not in done.reason
    assert messages == before


def test_the_reason_names_an_orphan(chosen):
    reason = chosen.compact(LEFT_ALONE["an orphaned result"], FORCED).reason
    told = "messages[1]: a result names the call 'nowhere'"
    assert reason.startswith(told) or (chosen.name, reason) == ("none", "the strategy is none")


def test_odd_but_valid_messages_stay_valid(tmp_path):
    """Ids used again, arguments that are no JSON, blocks of unknown types, results without text."""
    talk = [
        user([{"type": "text", "text": "go"}, {"type": "from_the_future", "x": [1, {"y": None}]}]),
        {"role": "assistant", "content": [use("a", {}), use("b", "{torn")]},
        user([result("a", None), {"type": "tool_result", "tool_use_id": "b"}]),
        {"role": "assistant", "content": [use("a", {"path": "\ud800"})]},
        user([result("a", "é" * 5_000), {"type": "text", "text": "and?"}]),
        {"role": "assistant", "content": "so"},
        user("next"),
    ]
    assert problems("anthropic", talk) == []
    folder = tmp_path / "transcripts"
    for made in (
        strategy("sliding_window", keep_last=1),
        strategy("micro", keep=0, preserve=()),
        strategy("tail_digest", keep_recent=0, bulky_tokens=9, prefix_messages=0),
        strategy("summarize", model=lambda request: "brief", keep_recent=1),
        strategy("auto", model=lambda request: "brief", transcripts=folder),
    ):
        done = with_logging(made, tmp_path / "log.jsonl").compact(talk, FORCED)
        assert problems("anthropic", list(done.messages)) == [], made.name
        assert any(message is talk[-1] for message in done.messages)
        assert done.changed, made.name
        assert "not logged" not in done.reason
    written = (tmp_path / "log.jsonl").read_text().splitlines()
    paths = [json.loads(line)["before"]["messages"][3]["content"][0]["input"] for line in written]
    assert paths == [{"path": "\ud800"}] * 5


def use(call_id, arguments):
    return {"type": "tool_use", "id": call_id, "name": "bash", "input": arguments}


@pytest.mark.parametrize("answer", [None, 3, {"text": "x"}, "", "  ", b"x", json])
def test_an_answer_that_is_none_changes_nothing(answer):
    messages = [user("x" * 4_000), {"role": "assistant", "content": "y" * 4_000}, user("z")]
    chosen = strategy("summarize", model=lambda request: answer, keep_recent=1)
    done = chosen.compact(messages, FORCED)
    assert done.messages is messages
    assert done.reason.startswith("the summary call returned")


@pytest.mark.parametrize(
    "usage", [3, "many", {"input_tokens": -1}, {"input_tokens": 1.5}, {"tokens": 3}, [1]]
)
def test_a_usage_that_can_t_be_read_changes_nothing(usage):
    messages = [user("x" * 4_000), {"role": "assistant", "content": "y" * 4_000}, user("z")]
    chosen = strategy(
        "summarize", model=lambda request: SummaryReply("brief", usage), keep_recent=1
    )
    done = chosen.compact(messages, FORCED)
    assert done.messages is messages
    assert done.reason.startswith("the summary call's usage can't be read: usage")

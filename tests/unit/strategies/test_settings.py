"""Every setting of every strategy: what it takes, and that all else is refused where it is made."""

from dataclasses import fields
from pathlib import Path

import pytest

from compactuary.errors import InputError
from policy.prices import Prices
from strategies.registry import STRATEGIES, strategy
from strategies.summary import Summarizer

pytestmark = pytest.mark.disable_socket

PRICES = Prices("m", "caller", 0.1, 1.25, 2.0, 5.0, {}, None, "caller", None)
#: One value of each type that a line of configuration or a caller may give.
VALUES = {
    "number": 60_000,
    "truth": True,
    "fraction": 60_000.5,
    "text": "anthropic",
    "texts": ("a", "b"),
    "list": ["a", "b"],
    "numbers": (1, 2),
    "mapping": {"a": 1},
    "path": Path("x"),
    "function": print,
    "nothing": None,
    "prices": PRICES,
    "summarizer": Summarizer(print),
}
NUMBER, TRUTH = {"number"}, {"truth"}
MODEL, FUNCTION = {"function", "summarizer"}, {"function"}
TEXTS, PATH, TEXT = {"texts", "list"}, {"text", "path"}, {"text"}
TAKES = {
    "none": {},
    "sliding_window": {"keep_last": NUMBER},
    "summarize": {
        "model": MODEL, "threshold": NUMBER, "keep_recent": NUMBER, "within_turn": TRUTH,
    },
    "token_budget": {"budget_tokens": NUMBER},
    "micro": {"keep": NUMBER, "preserve": TEXTS},
    "auto": {"model": MODEL, "threshold_tokens": NUMBER, "transcripts": PATH, "now": FUNCTION},
    "compact_tool": {"model": MODEL, "transcripts": PATH, "now": FUNCTION},
    "tail_digest": {
        "prefix_messages": NUMBER, "keep_recent": NUMBER, "bulky_tokens": NUMBER,
        "notes": FUNCTION | {"nothing"},
    },
    "server_side": {
        "way": TEXT, "send": FUNCTION | {"nothing"}, "instructions": TEXT | {"nothing"},
        "threshold_tokens": NUMBER, "pause": TRUTH,
    },
}  # fmt: skip
SUMMARIZER = {
    "model": FUNCTION, "prompt": TEXT | {"nothing"}, "own_items": TEXTS, "behind_prefix": TRUTH,
    "summary_tokens": NUMBER, "prices": {"prices", "nothing"}, "model_name": TEXT | {"nothing"},
}  # fmt: skip


def test_the_table_is_whole():
    told = {name: [each.name for each in fields(kind)] for name, kind in STRATEGIES.items()}
    assert told == {name: list(takes) for name, takes in TAKES.items()}
    assert [each.name for each in fields(Summarizer)] == list(SUMMARIZER)


def refused(make, setting, value):
    with pytest.raises(InputError) as error:
        make(**{setting: value})
    told = error.value
    assert told.where == setting
    assert told.value is value
    assert told.remedy.startswith(("Give ", "Known: "))


@pytest.mark.parametrize("given", VALUES)
@pytest.mark.parametrize(
    ("name", "setting"), [(name, setting) for name, takes in TAKES.items() for setting in takes]
)
def test_a_setting_takes_its_type_and_refuses_every_other(name, setting, given):
    needed = {"model": print} if "model" in TAKES[name] else {}

    def by_name(**told):
        return strategy(name, **(needed | told))

    def by_class(**told):
        return STRATEGIES[name](**(needed | told))

    value = VALUES[given]
    for make in (by_name, by_class):
        if given in TAKES[name][setting]:
            assert getattr(make(**{setting: value}), setting) is value
        else:
            refused(make, setting, value)


@pytest.mark.parametrize("given", VALUES)
@pytest.mark.parametrize("setting", SUMMARIZER)
def test_so_does_a_summarizer_s(setting, given):
    def make(**told):
        return Summarizer(**({"model": print} | told))

    if given in SUMMARIZER[setting]:
        assert getattr(make(**{setting: VALUES[given]}), setting) is VALUES[given]
    else:
        refused(make, setting, VALUES[given])


@pytest.mark.parametrize(
    ("line", "told"),
    [
        (
            "micro preserve=3",
            "preserve: is no value of this setting (got 3). Give a list of texts.",
        ),
        (
            "micro preserve=[1]",
            "preserve: is no value of this setting (got [1]). Give a list of texts.",
        ),
        (
            "server_side pause=yes",
            "pause: is no value of this setting (got 'yes'). Give true or false.",
        ),
        (
            "server_side send=post",
            "send: is no value of this setting (got 'post'). Give a function or nothing.",
        ),
        (
            'server_side way=["openai"]',
            "way: is no value of this setting (got ['openai']). Give a text.",
        ),
        (
            "server_side instructions=a,b",
            "instructions: is no value of this setting (got ('a', 'b')). Give a text or nothing.",
        ),
    ],
)
def test_a_line_says_what_to_give(line, told):
    with pytest.raises(InputError) as error:
        strategy(line)
    assert str(error.value) == told


@pytest.mark.parametrize("name", [None, 3, [], {}, ("micro",), b"micro"])
def test_a_name_that_is_no_text_is_an_unknown_one(name):
    with pytest.raises(InputError, match="strategy: unknown strategy"):
        strategy(name)

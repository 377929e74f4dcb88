"""LangChain messages as the two providers take them; no request is made."""

import sys
from types import ModuleType

import pytest
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage

from compactuary.errors import InputError, MissingExtraError
from experiment.anthropic_model import anthropic_messages
from experiment.openai_model import chat_messages
from experiment.providers import model_name, model_of
from tests.unit.strategies.provider_rules import problems

CALLS = [
    {"name": "read", "args": {"doc_id": "doc-001"}, "id": "a"},
    {"name": "read", "args": {"doc_id": "doc-002"}, "id": "b"},
]
TALK = [
    SystemMessage("rules"),
    SystemMessage("summary"),
    HumanMessage("go"),
    AIMessage("both", tool_calls=CALLS),
    ToolMessage("one", tool_call_id="a"),
    ToolMessage("two", tool_call_id="b", status="error"),
]


def test_anthropic_gets_one_turn_a_role_and_two_breakpoints():
    system, turns = anthropic_messages(TALK)
    cached = {"cache_control": {"type": "ephemeral"}}
    assert system == [
        {"type": "text", "text": "rules"},
        {"type": "text", "text": "summary", **cached},
    ]
    assert [turn["role"] for turn in turns] == ["user", "assistant", "user"]
    assert turns[1]["content"] == [
        {"type": "text", "text": "both"},
        {"type": "tool_use", "id": "a", "name": "read", "input": {"doc_id": "doc-001"}},
        {"type": "tool_use", "id": "b", "name": "read", "input": {"doc_id": "doc-002"}},
    ]
    first, second = turns[2]["content"]
    assert first == {
        "type": "tool_result",
        "tool_use_id": "a",
        "content": "one",
        "is_error": False,
    }
    assert (second["is_error"], second["cache_control"]) == (True, cached["cache_control"])
    assert problems("anthropic", turns) == []


def test_where_a_compaction_took_the_prompt_a_user_begins_all_the_same():
    _, turns = anthropic_messages([TALK[0], *TALK[3:]])
    assert turns[0] == {"role": "user", "content": [{"type": "text", "text": "Go on."}]}
    assert problems("anthropic", turns) == []


def test_where_a_compaction_left_system_messages_alone_there_is_a_turn_still():
    _, turns = anthropic_messages(TALK[:2])
    assert [turn["role"] for turn in turns] == ["user"]
    assert turns[0]["content"][0]["text"] == "Go on."


def test_an_empty_answer_is_left_out():
    _, turns = anthropic_messages([HumanMessage("a"), AIMessage(""), HumanMessage("b")])
    assert [block["text"] for block in turns[0]["content"]] == ["a", "b"]


def test_chat_gets_arguments_as_text_and_results_by_id():
    chat = chat_messages(TALK)
    assert [one["role"] for one in chat] == [
        *("system", "system", "user", "assistant", "tool", "tool")
    ]
    assert chat[3]["tool_calls"][0] == {
        "id": "a",
        "type": "function",
        "function": {"name": "read", "arguments": '{"doc_id": "doc-001"}'},
    }
    assert chat[5] == {"role": "tool", "tool_call_id": "b", "content": "two"}
    assert problems("openai_chat", chat) == []


def test_models_and_providers_that_are_not_there(monkeypatch):
    assert model_name("simulated", None) == model_name("anthropic", None) == "claude-opus-4-8"
    assert model_name("openai", "gpt-5.5") == "gpt-5.5"
    with pytest.raises(InputError, match="simulated, anthropic, openai"):
        model_name("mistral", None)
    with pytest.raises(InputError, match="--model: is needed with --provider openai"):
        model_name("openai", None)
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    # Importing the SDKs takes longer than all else here.
    for package in ("anthropic", "openai"):
        monkeypatch.setitem(sys.modules, package, ModuleType(package))
    with pytest.raises(InputError, match="ANTHROPIC_API_KEY: is not set"):
        model_of("anthropic", "claude-opus-4-8", 0)
    with pytest.raises(InputError, match="OPENAI_API_KEY: is not set"):
        model_of("openai", "gpt-5.5", 0)
    for package in ("anthropic", "openai"):
        monkeypatch.setitem(sys.modules, package, None)
        with pytest.raises(MissingExtraError, match=rf'pip install "compactuary\[{package}\]"'):
            model_of(package, "any", 0)

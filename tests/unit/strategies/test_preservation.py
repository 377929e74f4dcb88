"""Preservation prompts: the source's three prompts judged, and ours."""

import json
from itertools import combinations

import pytest

from cli.app import run
from compactuary.errors import InputError
from strategies.preservation import (
    DEFAULT_ITEMS,
    NO_TOOL_CALLS,
    Item,
    check_prompt,
    preservation_prompt,
    with_no_tool_calls,
)

pytestmark = pytest.mark.disable_socket

#: The source's own prompt, and the two that its exercise asks to judge.
SOUND = """Resume la investigación. Conserva, de forma explícita:
1. DECISIONES TOMADAS: el ángulo del informe, los subtemas ya cerrados.
2. ESTADO DEL INFORME: qué secciones existen y qué afirma cada una.
3. SUBTEMAS PENDIENTES: lo que falta investigar.
4. DOC_IDS YA LEÍDOS: la lista completa de documentos ya incorporados.
No llames a ninguna tool mientras escribes este resumen; responde solo con texto."""
DRAKE = (
    "Resume todo lo que ha pasado, de forma exhaustiva y detallada, sin omitir nada importante de "
    "la conversación."
)
ELCANO = (
    "Conserva las decisiones tomadas, el estado de cada sección del informe y los subtemas "
    "pendientes. Sé breve."
)
ALL = ["decisions", "state", "pending", "ids already read"]


@pytest.mark.parametrize(
    ("prompt", "loses", "forbids"),
    [
        (SOUND, [], True),
        (DRAKE, ALL, False),
        (ELCANO, ["ids already read"], False),
        ("Resume la conversación hasta ahora.", ALL, False),
        ("Summarize everything important.", ALL, False),
        (
            "Сохрани принятые решения, состояние работы и что осталось сделать. Только текст.",
            ["ids already read"],
            True,
        ),
        (
            "Keep what was decided, progress, next steps, paths of files read. Never use tools.",
            [],
            True,
        ),
    ],
)
def test_what_a_prompt_will_lose(prompt, loses, forbids):
    checked = check_prompt(prompt)
    assert [item.name for item in checked.loses] == loses
    assert checked.forbids_tool_calls is forbids
    assert checked.is_sound is (not loses and forbids)


def test_our_own_prompt_loses_nothing():
    prompt = preservation_prompt(own=["names of reviewers"], focus="the API")
    assert check_prompt(prompt, own=["names of reviewers"]).is_sound
    assert prompt.endswith(NO_TOOL_CALLS)
    assert "5. NAMES OF REVIEWERS." in prompt
    assert "Keep in most detail: the API" in prompt


@pytest.mark.parametrize(
    "items", [some for size in range(1, 5) for some in combinations(DEFAULT_ITEMS, size)]
)
def test_our_own_prompt_keeps_what_it_was_made_for_and_nothing_else(items):
    checked = check_prompt(preservation_prompt(items))
    assert checked.keeps == items
    assert set(checked.loses) == set(DEFAULT_ITEMS) - set(items)


def test_a_prompt_without_any_of_the_items_keeps_none_of_them():
    checked = check_prompt(preservation_prompt([Item("budget", "what was spent")]))
    assert checked.keeps == ()


@pytest.mark.parametrize(
    ("prompt", "kept"),
    [
        ("Keep all ids.", True),
        ("List every doc_id.", True),
        ("Keep the DOCID of each.", True),
        ("Keep each document id.", True),
        ("Give the id of every file read.", True),
        ("What can be fetched again by its id may go.", False),
        ("Did the tests pass? Hide the rest.", False),
    ],
)
def test_ids_are_asked_for_and_not_only_spoken_of(prompt, kept):
    names = [item.name for item in check_prompt(prompt).keeps]
    assert ("ids already read" in names) is kept


def test_items_can_be_one_s_own():
    prompt = preservation_prompt([Item("budget", "what was spent")])
    assert "1. BUDGET: what was spent." in prompt
    assert "DECISIONS" not in prompt
    with pytest.raises(InputError, match="items: is empty"):
        preservation_prompt([])


def test_the_line_is_added_once():
    assert with_no_tool_calls(with_no_tool_calls(ELCANO)).count(NO_TOOL_CALLS) == 1
    assert with_no_tool_calls(SOUND) == SOUND


def test_the_command_names_what_is_lost(tmp_path, capsys):
    file = tmp_path / "prompt.txt"
    file.write_text(ELCANO, encoding="utf-8")
    assert run(["prompt", "check", str(file)]) == 1
    assert capsys.readouterr().out.splitlines() == [
        "keeps  decisions",
        "keeps  state",
        "keeps  pending",
        "loses  ids already read: the agent reads the same documents again",
        "lacks  the line that forbids tool calls. Add: " + NO_TOOL_CALLS,
    ]
    assert run(["prompt", "check", str(file), "--json", "--item", "informe"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert told["keeps"] == ["decisions", "state", "pending", "informe"]
    assert [item["name"] for item in told["loses"]] == ["ids already read"]
    assert told["forbids_tool_calls"] is False
    file.write_text(SOUND, encoding="utf-8")
    assert run(["prompt", "check", str(file)]) == 0


def test_a_file_that_is_no_prompt_is_refused(tmp_path, capsys):
    empty = tmp_path / "empty.txt"
    empty.write_text(" \n")
    assert run(["prompt", "check", str(empty)]) == 2
    assert "is empty" in capsys.readouterr().err
    empty.write_bytes(b"\xff\xfe\x00")
    assert run(["prompt", "check", str(empty)]) == 2
    assert "is not UTF-8" in capsys.readouterr().err
    assert run(["prompt", "check", str(tmp_path / "none.txt")]) == 2
    assert "none.txt" in capsys.readouterr().err

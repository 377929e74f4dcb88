"""The simulated model knows what its messages say, and nothing else."""

import math
import re

import pytest
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage

from experiment.arms import NAIVE_PROMPT, PRESERVING_PROMPT
from experiment.assignment import SECTIONS, SYSTEM_PROMPT, opening_prompt, section_prompt
from experiment.desk import Desk
from experiment.documents import documents
from experiment.recall import chance_of_recall, share_of
from experiment.simulated import SimulatedModel
from experiment.simulated_summary import OPEN_FINDINGS
from strategies.conversation import SUMMARY_MARK
from strategies.preservation import check_prompt, preservation_prompt


def work(model, messages, sections, desk=None):
    """Play the sections without a graph, and return all messages."""
    desk = desk or Desk(documents(0))
    for section in sections:
        first = section is SECTIONS[0]
        messages = [*messages, HumanMessage(opening_prompt() if first else section_prompt(section))]
        while True:
            answer = model.answer(messages).message
            messages = [*messages, answer]
            if not answer.tool_calls:
                break
            for call in answer.tool_calls:
                told = getattr(desk, call["name"])(**call["args"])
                messages.append(ToolMessage(told, tool_call_id=call["id"]))
    return messages


def called(answer):
    return [(call["name"], call["args"]) for call in answer.message.tool_calls]


@pytest.fixture(scope="module")
def two_sections():
    return work(SimulatedModel(0), [SystemMessage(SYSTEM_PROMPT)], SECTIONS[:2])


def test_it_searches_reads_writes_and_says_so():
    messages = work(SimulatedModel(0), [SystemMessage(SYSTEM_PROMPT)], SECTIONS[:1])
    names = [call["name"] for one in messages for call in getattr(one, "tool_calls", ())]
    assert names == ["search", "read", "read", "read", "write_section"]
    assert messages[-1].text == "Section 1 is written."


def test_it_states_again_what_it_has_before_it(two_sections):
    first, second = (
        call["args"]["figures"]
        for one in two_sections
        for call in getattr(one, "tool_calls", ())
        if call["name"] == "write_section"
    )
    assert set(second) == {"spring range", "surge height", "dredged depth"}
    assert second["dredged depth"] == first["dredged depth"]


def test_ids_that_a_graph_gives_change_nothing(two_sections):
    asked = [*two_sections, HumanMessage("Write section 3, ferries.")]
    renamed = [one.model_copy(update={"id": f"m{k}"}) for k, one in enumerate(asked)]
    model = SimulatedModel(0)
    assert model.answer(asked) == model.answer(renamed) == SimulatedModel(0).answer(asked)


def test_what_is_gone_is_looked_up_again(two_sections):
    prompt = HumanMessage("Write section 2, tides.")
    kept = [two_sections[0], prompt]
    assert called(SimulatedModel(0).answer(kept)) == [("search", {"query": "tides"})]
    claims = "Section 2 states: spring range = 1\nSection 2 states: surge height = 2"
    told = HumanMessage(f"{SUMMARY_MARK}\n{claims}")
    # The figure of section 1 is what is still missing.
    answer = SimulatedModel(0).answer([two_sections[0], told, prompt])
    assert called(answer) == [("search", {"query": "dredging"})]
    known = HumanMessage(f"{told.text}\nSection 1 states: dredged depth = 3\nAngle: jobs.")
    [(name, arguments)] = called(SimulatedModel(0).answer([two_sections[0], known, prompt]))
    assert (name, arguments["angle"]) == ("write_section", "jobs")
    assert arguments["figures"] == {"spring range": "1", "surge height": "2", "dredged depth": "3"}


def test_a_section_that_is_in_the_report_is_not_written_again():
    told = HumanMessage(f"{SUMMARY_MARK}\nIn the report: sections 1, 2.")
    prompt = HumanMessage("Write section 2, tides.")
    answer = SimulatedModel(0).answer([SystemMessage(SYSTEM_PROMPT), told, prompt]).message
    assert (answer.text, answer.tool_calls) == ("Section 2 is written.", [])


def test_without_anything_to_do_it_asks():
    answer = SimulatedModel(0).answer([SystemMessage(SYSTEM_PROMPT), HumanMessage("Hello")])
    assert answer.message.text == "Which section shall I write?"


def test_a_decision_that_is_lost_may_fall_otherwise():
    """With nothing of its first decision before it, it decides by what it knows then."""
    angles = set()
    for seed in range(30):
        for known in ("", "Section 1 states: dredged depth = 1"):
            summary = HumanMessage(f"{SUMMARY_MARK}\n{known}")
            asked = [SystemMessage(SYSTEM_PROMPT), summary, HumanMessage("Write section 9.")]
            [(_, arguments)] = called(SimulatedModel(seed).answer(asked))
            angles.add((seed, arguments["angle"]))
    assert len(angles) > 40


@pytest.mark.parametrize(
    ("named", "kept", "lost"),
    [
        ("decisions", ["Angle:"], ["states:", "Read:", "In the report:", "gives:"]),
        (
            "the state of each section",
            ["Section 1 states: dredged depth =", "In the report: sections 1, 2."],
            ["Read:", "Angle:"],
        ),
        (
            "the documents already read",
            ["Read: doc-001, doc-002, doc-003, doc-004"],
            ["states:", "Angle:"],
        ),
    ],
)
def test_a_summary_keeps_what_its_prompt_names(two_sections, named, kept, lost):
    prompt = HumanMessage(f"Summarize the talk. Keep {named}.")
    summary = SimulatedModel(0).answer([*two_sections, prompt]).message.text
    assert all(text in summary for text in kept)
    assert not any(text in summary for text in lost)


def test_a_naive_prompt_keeps_the_topic_alone(two_sections):
    summary = SimulatedModel(0).answer([*two_sections, HumanMessage(NAIVE_PROMPT)]).message
    assert not summary.tool_calls
    assert not re.search(r"\d{3}", summary.text)
    assert "harbour of Norrvik" in summary.text
    assert "section 2 is under way" in summary.text


def test_findings_that_no_section_uses_yet_survive_where_they_are_asked_for(two_sections):
    desk = Desk(documents(0))
    prompt = HumanMessage("Write section 3, ferries.")
    call = {"name": "read", "args": {"doc_id": "doc-009"}, "id": "x"}
    read = [AIMessage("", tool_calls=[call]), ToolMessage(desk.read("doc-009"), tool_call_id="x")]
    asked = [*two_sections, prompt, *read]
    value = documents(0)[8].value
    preserved = SimulatedModel(0).answer([*asked, HumanMessage(PRESERVING_PROMPT)]).message.text
    assert f"doc-009 gives: ferry crossings = {value}" in preserved
    assert "Pending: section 3." in preserved
    usual = SimulatedModel(0).answer([*asked, HumanMessage(preservation_prompt())]).message.text
    assert "gives:" not in usual


def test_a_summary_of_a_summary_loses_nothing_in_a_short_context(two_sections):
    model = SimulatedModel(0)
    once = model.answer([*two_sections, HumanMessage(PRESERVING_PROMPT)]).message.text
    kept = [two_sections[0], HumanMessage(f"{SUMMARY_MARK} note\n\n{once}")]
    assert model.answer([*kept, HumanMessage(PRESERVING_PROMPT)]).message.text == once


def test_the_prompts_of_the_arms_are_what_they_are_taken_for():
    assert not check_prompt(NAIVE_PROMPT).keeps
    assert check_prompt(PRESERVING_PROMPT).is_sound
    assert OPEN_FINDINGS.is_in(PRESERVING_PROMPT)
    assert not OPEN_FINDINGS.is_in(preservation_prompt())


def test_recall_falls_with_context_and_distance():
    assert chance_of_recall(15_000, 15_000) == 1.0
    # 10,000 too many are two folds, of which half the way back makes one, all of it two.
    assert chance_of_recall(25_000, 12_500) == pytest.approx(math.exp(-1))
    assert chance_of_recall(25_000, 25_000) == pytest.approx(math.exp(-2))
    assert chance_of_recall(60_000, 0) == 1.0


def test_shares_are_even_and_depend_on_their_parts_alone():
    drawn = [share_of(0, "angle", k) for k in range(20_000)]
    assert all(0 <= one < 1 for one in drawn)
    for start in range(10):
        share = sum(start / 10 <= one < (start + 1) / 10 for one in drawn) / len(drawn)
        assert abs(share - 0.1) < 0.01
    assert share_of(1, 2) != share_of(12)
    assert share_of(1, 2) == share_of("1", "2")


def test_a_long_context_hides_what_lies_far_back(two_sections):
    """Over many seeds, the angle is found as often as the formula says."""
    filler = HumanMessage("x" * 4 * 10_000)
    tail = [filler, HumanMessage("Write section 9, closing.")]
    asked = [two_sections[0], HumanMessage("Angle: jobs."), filler, *tail]
    found = sum(
        called(SimulatedModel(seed).answer(asked))[0][1]["angle"] == "jobs" for seed in range(600)
    )
    tokens = 20_000 + 800
    expected = math.exp(-(tokens - 15_000) / 5_000)
    # One of four angles is chosen by chance where it is not found.
    share = expected + (1 - expected) / 4
    assert abs(found / 600 - share) < 0.07

"""Documents on file, and the tools that work on them."""

import pytest

from experiment.assignment import CLOSING, SECTIONS, SYSTEM_PROMPT, section_of
from experiment.desk import Desk
from experiment.documents import documents, injected_documents
from experiment.tools import TOOL_SCHEMAS, tools_of


@pytest.mark.parametrize("seed", range(20))
def test_each_section_has_two_documents_that_differ_and_a_third(seed):
    on_file = documents(seed)
    assert [one.id for one in on_file] == [f"doc-{n:03}" for n in range(1, 25)]
    for section, start in zip(SECTIONS, range(0, 24, 3), strict=True):
        first, other, third = on_file[start : start + 3]
        assert {one.topic for one in (first, other, third)} == {section.topic}
        assert first.quantity == other.quantity == section.disputed
        assert first.value != other.value
        assert third.quantity == section.plain
        assert f"Finding: {third.quantity} = {third.value}" in third.text


def test_more_injected_documents_only_add_to_fewer():
    assert injected_documents(3, 10) == injected_documents(3, 50)[:10]
    assert injected_documents(3, 0) == ()
    spread = [one.topic for one in injected_documents(0, 50)]
    assert {spread.count(section.topic) for section in SECTIONS} == {6, 7}


def test_injected_documents_give_nothing_that_a_section_states():
    wanted = {name for section in SECTIONS for name in section.own}
    for one in injected_documents(0, 50):
        assert one.quantity not in wanted
        assert "Finding:" not in one.text


def test_a_section_agrees_with_earlier_ones_only():
    owner = {name: section.number for section in SECTIONS for name in section.own}
    for section in (*SECTIONS, CLOSING):
        assert all(owner[name] < section.number for name in section.agrees_with)
    assert section_of(0) is None
    assert section_of(9) is CLOSING


def test_a_search_brings_its_topic_and_what_was_injected_there():
    desk = Desk(documents(0), injected_documents(0, 9))
    told = desk.search("Tides of the harbour")
    assert told.startswith("Found for tides: doc-004, doc-005, doc-006\n")
    assert "Document web-002:" in told
    assert "Document web-001:" not in told
    assert desk.search("spring range") == told
    assert desk.search("weather") == (
        "Nothing found. Topics on file: dredging, tides, ferries, cargo, pilots, fishing, quays, "
        "storms"
    )


def test_what_is_read_and_written_is_remembered():
    desk = Desk(documents(0), injected_documents(0, 1))
    desk.asked_for = 4
    assert desk.read(" DOC-002 ").startswith("Document doc-002:")
    assert desk.read("web-001").startswith("Document web-001:")
    assert desk.read("doc-099") == "There is no document doc-099. Search for a topic."
    assert [(one.document, one.section) for one in desk.readings] == [
        ("doc-002", 4),
        ("web-001", 4),
    ]
    assert desk.write_section("2", "Costs ", {"Spring Range": 312}) == "Section 2 is in the report."
    assert desk.write_section(12, "costs", {}) == "There is no section 12 in the outline."
    assert [(one.section, one.quantity, one.value) for one in desk.statements] == [
        (2, "angle", "costs"),
        (2, "spring range", "312"),
    ]


def test_the_tools_are_those_that_providers_are_told_of():
    tools = {one.name: one for one in tools_of(Desk(documents(0)))}
    assert list(tools) == [each["name"] for each in TOOL_SCHEMAS]
    assert tools["read"].invoke({"doc_id": "doc-001"}).startswith("Document doc-001:")
    for each in TOOL_SCHEMAS:
        assert each["parameters"]["required"] == list(each["parameters"]["properties"])
        assert each["name"] in SYSTEM_PROMPT

"""What the simulated model writes when it is asked for a summary: what the request names."""

from collections.abc import Iterator

from experiment.assignment import SECTIONS
from experiment.knowledge import Knowledge, topic_of
from strategies.preservation import DEFAULT_ITEMS, Item

__all__ = ["OPEN_FINDINGS", "summary_of"]

#: What an agent that reads documents must keep besides a preservation prompt's usual items.
OPEN_FINDINGS = Item(
    "findings not used yet",
    "what each document gives that no section states yet, with the document's id",
    lost="the agent reads again what it has not written down",
)
_DECISIONS, _STATE, _PENDING, _IDS = DEFAULT_ITEMS


def summary_of(known: Knowledge, instructions: str) -> str:
    """Return a summary of what is known, as far as the instructions ask for it.

    Notes
    -----
    Topic and mood survive every summary; decisions, the state of the report, what is pending, ids
    already read and findings not used yet only where the instructions name them.
    """
    lines = [f"The talk is about a report on the harbour of Norrvik and goes well.{_topic(known)}"]
    for item, told in (
        (_DECISIONS, _decisions),
        (_STATE, _state),
        (_PENDING, _pending),
        (_IDS, _ids),
        (OPEN_FINDINGS, _open_findings),
    ):
        if item.is_in(instructions):
            lines += told(known)
    return "\n".join(lines)


def _topic(known: Knowledge) -> str:
    section = known.section
    if section is None:
        return ""
    return f" Of its parts, section {section.number} is under way, {section.topic or 'closing'}."


def _decisions(known: Knowledge) -> Iterator[str]:
    if known.angle:
        yield f"Angle: {known.angle}."


def _state(known: Knowledge) -> Iterator[str]:
    if known.written:
        yield f"In the report: sections {', '.join(map(str, sorted(known.written)))}."
    for section in SECTIONS:
        for quantity in section.own:
            if quantity in known.claims:
                yield f"Section {section.number} states: {quantity} = {known.claims[quantity]}"


def _pending(known: Knowledge) -> Iterator[str]:
    if known.section and known.section.number not in known.written:
        yield f"Pending: section {known.section.number}."
    for topic, found in known.found.items():
        if any(topic_of(each) == topic for each in _unclaimed(known)):
            yield f"Found for {topic}: {', '.join(found)}"


def _ids(known: Knowledge) -> Iterator[str]:
    if known.read:
        yield f"Read: {', '.join(known.read)}"


def _open_findings(known: Knowledge) -> Iterator[str]:
    for document, given in sorted(known.findings.items()):
        for quantity, value in given.items():
            if quantity not in known.claims:
                yield f"{document} gives: {quantity} = {value}"


def _unclaimed(known: Knowledge) -> list[str]:
    return [one for each in SECTIONS for one in each.own if one not in known.claims]

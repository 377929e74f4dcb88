"""The desk: what the tools do to it, and what is remembered of it for the judgement afterwards."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from experiment.assignment import SECTIONS, section_of
from experiment.documents import Document

__all__ = ["Desk", "Reading", "Statement"]


@dataclass(frozen=True, slots=True)
class Reading:
    """A document was read.

    Parameters
    ----------
    document : str
        Its id.
    section : int
        The section that the user had asked for.
    """

    document: str
    section: int


@dataclass(frozen=True, slots=True)
class Statement:
    """A section said something.

    Parameters
    ----------
    section : int
        Where it stands.
    quantity : str
        What it is about; 'angle' for the angle.
    value : str
    """

    section: int
    quantity: str
    value: str


@dataclass(slots=True)
class Desk:
    """Documents on file, and what was done with them so far.

    Parameters
    ----------
    on_file : sequence of Document
        What the sections need.
    injected : sequence of Document
        What a search brings besides, in full.
    """

    on_file: Sequence[Document]
    injected: Sequence[Document] = ()
    asked_for: int = 0
    readings: list[Reading] = field(default_factory=list)
    statements: list[Statement] = field(default_factory=list)

    def search(self, query: str) -> str:
        """Return ids and titles of the topic's documents, then what else comes up, in full."""
        topic = _topic_of(query)
        if topic is None:
            return f"Nothing found. Topics on file: {', '.join(one.topic for one in SECTIONS)}"
        hits = [one for one in self.on_file if one.topic == topic]
        more = [one.text for one in self.injected if one.topic == topic]
        lines = [
            f"Found for {topic}: {', '.join(one.id for one in hits)}",
            *(f"{one.id}, {one.title}" for one in hits),
        ]
        return "\n".join([*lines, *(["Also came up:", *more] if more else [])])

    def read(self, doc_id: str) -> str:
        """Return a document's text, and remember that it was read."""
        name = doc_id.strip().lower()
        found = next((one for one in (*self.on_file, *self.injected) if one.id == name), None)
        if found is None:
            return f"There is no document {doc_id}. Search for a topic."
        self.readings.append(Reading(found.id, self.asked_for))
        return found.text

    def write_section(self, number: int, angle: str, figures: Mapping[str, str]) -> str:
        """Put a section into the report, and remember what it says."""
        section = section_of(int(number))
        if section is None:
            return f"There is no section {number} in the outline."
        told = {"angle": angle, **figures}
        self.statements += [
            Statement(section.number, name.strip().lower(), str(value).strip().lower())
            for name, value in told.items()
        ]
        return f"Section {section.number} is in the report."


def _topic_of(query: str) -> str | None:
    """Return the topic that a query is about: by its name, else by one of its quantities."""
    asked = query.lower()
    by_name = (one.topic for one in SECTIONS if one.topic in asked)
    by_quantity = (one.topic for one in SECTIONS if any(each in asked for each in one.own))
    return next(by_name, None) or next(by_quantity, None)

"""The documents: those that a section needs, and injected ones that fit no section."""

import random
from collections.abc import Sequence
from dataclasses import dataclass

from experiment.assignment import SECTIONS, Section

__all__ = ["Document", "documents", "injected_documents"]

#: Sentences of a document: about 500 tokens, at characters ÷ 4.
_SENTENCES = 22
_WHO = ("The office", "The council", "A survey", "The port", "An engineer", "The archive")
_DID = ("measured", "compared", "described", "counted", "sketched", "revised")
_WHAT = ("the north basin", "the old quay", "the outer mole", "the lock", "the fairway", "the slip")
_WHEN = ("in spring", "over two winters", "at low water", "before the war", "after the repair")
_WHY = (
    "and left the method to an appendix",
    "as the earlier report had done",
    "without naming a reason for it",
    "and found it much as before",
    "which took longer than planned",
)
_ELSEWHERE = ("hotel beds", "museum visits", "tram stops", "park benches", "library loans")
_AUTHORS = ("Survey", "Yearbook", "Letter")


@dataclass(frozen=True, slots=True)
class Document:
    """A document on file.

    Parameters
    ----------
    id : str
    topic : str
        The topic it belongs to; for an injected one, the search that brings it.
    title : str
    quantity : str
    value : int
        What it gives for the quantity.
    text : str
        As `read` returns it.
    """

    id: str
    topic: str
    title: str
    quantity: str
    value: int
    text: str


def documents(seed: int) -> tuple[Document, ...]:
    """Return three documents for each section: two that differ on a quantity, one on another."""
    numbers = random.Random(f"values {seed}")  # noqa: S311 - figures to write about
    found: list[Document] = []
    for section in SECTIONS:
        first, other, plain = numbers.sample(range(100, 1_000), 3)
        stated = ((section.disputed, first), (section.disputed, other), (section.plain, plain))
        for place, (quantity, value) in enumerate(stated):
            found.append(_document(seed, len(found) + 1, section, quantity, value, place))
    return tuple(found)


def _document(
    seed: int, number: int, section: Section, quantity: str, value: int, place: int
) -> Document:
    name = f"doc-{number:03}"
    title = f"{_AUTHORS[place]} of {section.topic}"
    text = _text(seed, name, title, f"Finding: {quantity} = {value}")
    return Document(name, section.topic, title, quantity, value, text)


def injected_documents(seed: int, count: int) -> tuple[Document, ...]:
    """Return documents that no section needs, spread over the searches in turn.

    The first ones are the same whatever the count.
    """
    found = []
    for index in range(count):
        topic = SECTIONS[index % len(SECTIONS)].topic
        name, quantity = f"web-{index + 1:03}", _ELSEWHERE[index % len(_ELSEWHERE)]
        value = 100 + random.Random(f"elsewhere {seed} {index}").randrange(900)  # noqa: S311
        title = f"Notes from elsewhere, {index + 1}"
        text = _text(seed, name, title, f"Remark: {quantity} = {value}")
        found.append(Document(name, topic, title, quantity, value, text))
    return tuple(found)


def _text(seed: int, name: str, title: str, finding: str) -> str:
    chance = random.Random(f"text {seed} {name}")  # noqa: S311
    sentences = [_sentence(chance) for _ in range(_SENTENCES)]
    half = _SENTENCES // 2
    return "\n".join(
        [f"Document {name}: {title}", _prose(sentences[:half]), finding, _prose(sentences[half:])]
    )


def _sentence(chance: random.Random) -> str:
    parts: Sequence[str] = [chance.choice(some) for some in (_WHO, _DID, _WHAT, _WHEN, _WHY)]
    return f"{' '.join(parts)}."


def _prose(sentences: Sequence[str]) -> str:
    return " ".join(sentences)

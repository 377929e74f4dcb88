"""Quality of a finished report: facts that survived, contradictions, documents read again."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from experiment.assignment import CLOSING, SECTIONS
from experiment.desk import Desk, Reading, Statement

__all__ = [
    "FACTS",
    "STATED_AGAIN",
    "Contradiction",
    "Quality",
    "ReadAgain",
    "quality_of",
    "quality_score",
]

#: The angle, and two figures a section.
FACTS = 1 + sum(len(one.own) for one in SECTIONS)
#: What sections state that an earlier one has stated: the places where they can contradict.
STATED_AGAIN = sum(1 + len(one.agrees_with) for one in (*SECTIONS[1:], CLOSING))

_FACTS_WEIGHT, _AGREEMENT_WEIGHT, _READING_WEIGHT = 0.5, 0.25, 0.25


@dataclass(frozen=True, slots=True)
class ReadAgain:
    """A document that had been read before was read again.

    Parameters
    ----------
    document : str
    section, first_section : int
        The sections that were asked for when it was read again, and at first.
    """

    document: str
    section: int
    first_section: int


@dataclass(frozen=True, slots=True)
class Contradiction:
    """A section states something else than the first one that stated it.

    Parameters
    ----------
    quantity : str
        'angle' for the angle.
    section : int
    value : str
    first_section : int
    first_value : str
    """

    quantity: str
    section: int
    value: str
    first_section: int
    first_value: str


@dataclass(frozen=True, slots=True)
class Quality:
    """What became of a report.

    Parameters
    ----------
    score : float
        From 0 to 1, as `quality_score` has it.
    facts_survived : int
        Of `FACTS`, those that the closing section states as the first section that stated them
        did, with a value that a document on file gives.
    reads : int
        Of documents, again or not.
    read_again : tuple of ReadAgain
    contradictions : tuple of Contradiction
    """

    score: float
    facts_survived: int
    reads: int
    read_again: tuple[ReadAgain, ...]
    contradictions: tuple[Contradiction, ...]


def quality_score(
    facts_survived: int, contradictions: int, repeated_reads: int, reads: int
) -> float:
    """Return ½ of the facts' share, ¼ of the agreement's, ¼ of the share of reads that were new.

    Parameters
    ----------
    facts_survived : int
        Of `FACTS`.
    contradictions : int
        More than `STATED_AGAIN`, where sections were written twice, count as all of them.
    repeated_reads, reads : int
        Reads of a document that had been read before, and all reads. Without any read this part
        is 0: the report rests on nothing.

    Examples
    --------
    15 of 17 facts, 5 contradictions in 35 places, 6 of 30 reads repeated:
    0.5·15/17 + 0.25·30/35 + 0.25·24/30 = 0.4412 + 0.2143 + 0.2.

    >>> round(quality_score(15, 5, 6, 30), 4)
    0.8555
    """
    agreement = 1.0 - min(contradictions / STATED_AGAIN, 1.0)
    fresh = 1.0 - repeated_reads / reads if reads else 0.0
    return (
        _FACTS_WEIGHT * facts_survived / FACTS
        + _AGREEMENT_WEIGHT * agreement
        + _READING_WEIGHT * fresh
    )


def quality_of(desk: Desk) -> Quality:
    """Judge what was done at a desk."""
    again = tuple(_read_again(desk.readings))
    contradictions = tuple(_contradictions(desk.statements))
    survived = _facts_survived(desk)
    score = quality_score(survived, len(contradictions), len(again), len(desk.readings))
    return Quality(score, survived, len(desk.readings), again, contradictions)


def _read_again(readings: Sequence[Reading]) -> Iterable[ReadAgain]:
    first: dict[str, int] = {}
    for one in readings:
        if one.document in first:
            yield ReadAgain(one.document, one.section, first[one.document])
        first.setdefault(one.document, one.section)


def _contradictions(statements: Sequence[Statement]) -> Iterable[Contradiction]:
    first = _first_statements(statements)
    for one in statements:
        before = first[one.quantity]
        if one.value != before.value:
            yield Contradiction(one.quantity, one.section, one.value, before.section, before.value)


def _first_statements(statements: Sequence[Statement]) -> dict[str, Statement]:
    first: dict[str, Statement] = {}
    for one in statements:
        first.setdefault(one.quantity, one)
    return first


def _facts_survived(desk: Desk) -> int:
    first = _first_statements(desk.statements)
    given = {(one.quantity, str(one.value)) for one in desk.on_file}
    closing = {one.quantity: one.value for one in desk.statements if one.section == CLOSING.number}
    return sum(
        first[name].value == value and (name == "angle" or (name, value) in given)
        for name, value in closing.items()
        if first[name].section != CLOSING.number
    )

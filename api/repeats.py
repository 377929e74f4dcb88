"""Repeats: a caller that asks twice about the same request gets the same answer."""

from typing import NamedTuple

from policy.answer import Answer
from policy.question import Question

__all__ = ["Repeats"]


class _Request(NamedTuple):
    """The request that a question is about, under one snapshot."""

    turn_id: str
    calls: int
    unit: str
    at: str
    role: str
    rule: str | None
    kind: str
    explain: bool
    quotes: bool
    version: int


class Repeats:
    """The latest answers of one worker, by the request that they were about.

    A question without a turn's name is about nothing that could be recognized again.

    Parameters
    ----------
    capacity : int
        Answers kept; the oldest goes first.
    """

    def __init__(self, capacity: int = 10_000) -> None:
        self._capacity = capacity
        self._answers: dict[_Request, Answer] = {}

    def find(self, question: Question, version: int) -> Answer | None:
        """Return the answer given before within this version of the snapshot, if there is one."""
        if question.turn_id is None or question.at == "idle":
            return None
        return self._answers.get(_request(question, version))

    def keep(self, question: Question, version: int, answer: Answer) -> None:
        """Remember an answer."""
        if question.turn_id is None or question.at == "idle":
            return
        if len(self._answers) >= self._capacity:
            del self._answers[next(iter(self._answers))]
        self._answers[_request(question, version)] = answer


def _request(question: Question, version: int) -> _Request:
    return _Request(
        question.turn_id or "",
        question.calls,
        question.unit,
        question.at,
        question.role,
        question.rule,
        question.kind,
        question.explain,
        question.quotes,
        version,
    )

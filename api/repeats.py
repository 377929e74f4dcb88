"""Repeats: a caller that asks twice about the same request gets the same answer."""

from typing import NamedTuple

from policy.answer import Answer
from policy.question import Question

__all__ = ["Repeats"]


class _Request(NamedTuple):
    """The request that a question is about, as it was asked."""

    turn_id: str
    calls: int
    unit: str
    at: str
    role: str
    rule: str | None
    kind: str
    explain: bool
    quotes: bool


class Repeats:
    """The latest answers of one worker from its snapshot, by the request that they were about.

    Those of an earlier version are never given again, and go with the first of the next one. A
    question without a turn's name is about nothing that could be recognized again.

    Parameters
    ----------
    capacity : int
        Answers kept; the oldest goes first.
    """

    def __init__(self, capacity: int = 10_000) -> None:
        self._capacity = capacity
        self._version: int | None = None
        self._answers: dict[_Request, Answer] = {}

    def find(self, question: Question, version: int) -> Answer | None:
        """Return the answer given before within this version of the snapshot, if there is one."""
        if version != self._version or question.turn_id is None or question.at == "idle":
            return None
        return self._answers.get(_request(question))

    def keep(self, question: Question, version: int, answer: Answer) -> None:
        """Remember an answer."""
        if question.turn_id is None or question.at == "idle":
            return
        if version != self._version:
            self._answers.clear()
            self._version = version
        elif len(self._answers) >= self._capacity:
            del self._answers[next(iter(self._answers))]
        self._answers[_request(question)] = answer


def _request(question: Question) -> _Request:
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
    )

"""Whom the lab's ``/decide`` asks: the policy with the ledger at hand, or the service."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import cache
from typing import Any
from uuid import uuid4

from cli.lab.session import Asking
from cli.ledger import open_ledger
from cli.snapshot import current_snapshot
from compactuary.advice import Advice
from compactuary.client import Client
from policy.decision import decide
from policy.prices import GenaiPriceBook
from policy.question import Question
from policy.snapshot import Snapshot

__all__ = ["asking"]

#: A person waits; an agent's loop would not.
_BUDGET_SECONDS = 5.0


@contextmanager
def asking(url: str | None, db: str | None, given: Mapping[str, Any]) -> Iterator[Asking]:
    """Give what answers questions: the service at a URL, else the policy with a ledger.

    The ledger is opened by the first question, and read once.

    Parameters
    ----------
    url : str or None
    db : str or None
        What ``--db`` gave.
    given : mapping
        Fields of every question, such as the model; those that are None are left out.

    Raises
    ------
    InputError
        The URL is none.
    """
    told = {name: value for name, value in given.items() if value is not None}
    if url is None:
        yield _local(db, told)
        return
    with Client(url, budget_seconds=_BUDGET_SECONDS, cache=False) as client:

        def ask(fields: Mapping[str, Any]) -> Mapping[str, Any]:
            return _payload(client.should_compact(**_completed(told, fields)))

        yield ask


def _local(db: str | None, told: Mapping[str, Any]) -> Asking:
    @cache
    def snapshot() -> Snapshot:
        with open_ledger(db) as engine:
            return current_snapshot(engine)

    def ask(fields: Mapping[str, Any]) -> Mapping[str, Any]:
        question = Question(**_completed(told, fields))
        now, name = datetime.now(UTC), uuid4().hex
        answer = decide(question, snapshot(), GenaiPriceBook(), at=now, decision_id=name)
        return answer.as_payload()

    return ask


def _completed(told: Mapping[str, Any], fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return a question; a summary that nobody else writes is the agent's own model's."""
    question = {**told, **fields}
    if question["kind"] == "separate" and "model" in question:
        question.setdefault("summary_model", question["model"])
    return question


def _payload(advice: Advice) -> Mapping[str, Any]:
    own = {"source": advice.source, "decision": advice.decision, "reason": advice.reason}
    return {**(advice.answer or {}), **own, "fallback": advice.fallback}

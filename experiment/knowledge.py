"""Knowledge: what the simulated model finds in the messages that it is handed, and nothing else."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage

from experiment.assignment import SECTIONS, Section, section_of
from experiment.mentions import Mention, mentions_of
from experiment.recall import chance_of_recall, share_of
from experiment.sizes import message_tokens
from strategies.conversation import SUMMARY_MARK

__all__ = ["Knowledge", "knowledge_of", "topic_of"]


@dataclass(frozen=True, slots=True)
class Knowledge:
    """What was found.

    Parameters
    ----------
    section : Section or None
        The one under way.
    angle : str
        Empty where none is known.
    claims : dict of str to str
        Value of each quantity that a section states.
    findings : dict of str to dict
        What each document gives: quantity to value.
    found : dict of str to tuple of str
        Documents of each topic that was searched for.
    read : tuple of str
        Documents that were read.
    written : frozenset of int
        Sections in the report.
    """

    section: Section | None = None
    angle: str = ""
    claims: dict[str, str] = field(default_factory=dict)
    findings: dict[str, dict[str, str]] = field(default_factory=dict)
    found: dict[str, tuple[str, ...]] = field(default_factory=dict)
    read: tuple[str, ...] = ()
    written: frozenset[int] = frozenset()


def topic_of(quantity: str) -> str:
    """Return the topic that a quantity belongs to."""
    return next(one.topic for one in SECTIONS if quantity in one.own)


def knowledge_of(
    messages: Sequence[BaseMessage], seed: int, *, prefix_tokens: int = 0, summing_up: bool = False
) -> Knowledge:
    """Return what a model finds that is asked with these messages.

    Parameters
    ----------
    messages : sequence of BaseMessage
    seed : int
        Of what is overlooked.
    prefix_tokens : int
        Tokens in front of the messages: the tools.
    summing_up : bool
        Whether the last message asks for a summary, so that no turn is under way.
    """
    if summing_up:
        # What the request for a summary quotes of an earlier one is older than the messages.
        messages = [messages[-1], *messages[:-1]]
    sizes = [message_tokens(one) for one in messages]
    total = prefix_tokens + sum(sizes)
    section = _section_under_way(messages)
    occasion = (section.number if section else 0, summing_up)
    turn = len(messages) if summing_up else _turn_start(messages)
    found: list[Mention] = []
    back = total - prefix_tokens
    for index, message in enumerate(messages):
        back -= sizes[index]
        chance = 1.0 if index >= turn else chance_of_recall(total, back)
        found += [one for one in mentions_of(message) if share_of(seed, *one, *occasion) < chance]
    return _put_together(found, section)


def _section_under_way(messages: Sequence[BaseMessage]) -> Section | None:
    """Return the section that was asked for last: what an agent is at, it does not overlook."""
    asked = (one.key for each in reversed(messages) for one in reversed(mentions_of(each))
             if one.kind == "asked")  # fmt: skip
    number = next(asked, None)
    return None if number is None else section_of(int(number))


def _turn_start(messages: Sequence[BaseMessage]) -> int:
    """Return where the turn begins; where its prompt is gone, behind all system messages."""
    prompts = [
        index
        for index, one in enumerate(messages)
        if isinstance(one, HumanMessage) and not one.text.startswith(SUMMARY_MARK)
    ]
    if prompts:
        return prompts[-1]
    heads = [index for index, one in enumerate(messages) if isinstance(one, SystemMessage)]
    return heads[-1] + 1 if heads else 0


def _put_together(mentions: Sequence[Mention], section: Section | None) -> Knowledge:
    """Return what mentions say together; of two that differ, the later one counts."""
    findings: dict[str, dict[str, str]] = {}
    for one in mentions:
        if one.kind == "finding":
            document, _, quantity = one.key.partition(" ")
            findings.setdefault(document, {})[quantity] = one.value
    of_kind = {
        kind: [one for one in mentions if one.kind == kind]
        for kind in ("angle", "claim", "found", "read", "written")
    }
    angles = of_kind["angle"]
    return Knowledge(
        section,
        angles[-1].value if angles else "",
        {one.key: one.value for one in of_kind["claim"]},
        findings,
        {one.key: tuple(one.value.split()) for one in of_kind["found"]},
        tuple(sorted({one.key for one in of_kind["read"]})),
        frozenset(int(one.key) for one in of_kind["written"]),
    )

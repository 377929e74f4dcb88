"""The simulated model: its answer depends on nothing but the messages it is handed, and a seed.

It works as an agent does that has only its context: what it finds there it relies on; what it does
not find it looks up, or decides, again, and never knows that it did so before. What it writes as a
summary is what the request for the summary names, and otherwise the topic. It is no language model:
the shape of what it shows is meant, never a figure.
"""

import re
from collections.abc import Sequence
from hashlib import blake2b
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from experiment.assignment import ANGLES, CLOSING, Section
from experiment.knowledge import Knowledge, knowledge_of, topic_of
from experiment.model import Reply
from experiment.recall import share_of
from experiment.simulated_summary import summary_of
from experiment.sizes import block_of, tools_block
from experiment.tools import TOOL_SCHEMAS
from strategies.conversation import SUMMARY_MARK

__all__ = ["SimulatedModel"]

_ASKS_FOR_SUMMARY = re.compile(r"\bsummar(y|ies|ize|ise)\b", re.IGNORECASE)


class SimulatedModel:
    """A deterministic model of an agent.

    Parameters
    ----------
    seed : int
        Of what it overlooks, and of what it decides.
    """

    def __init__(self, seed: int = 0) -> None:
        self._seed = seed

    def answer(self, messages: Sequence[BaseMessage], *, with_tools: bool = True) -> Reply:
        """Answer one request; same messages, same answer."""
        prefix = tools_block(TOOL_SCHEMAS).tokens if with_tools else 0
        instructions = _summary_instructions(messages)
        known = knowledge_of(
            messages, self._seed, prefix_tokens=prefix, summing_up=bool(instructions)
        )
        if instructions:
            return Reply(AIMessage(summary_of(known, instructions)))
        return Reply(self._next_step(known, messages))

    def _next_step(self, known: Knowledge, messages: Sequence[BaseMessage]) -> AIMessage:
        section = known.section
        if section is None:
            return AIMessage("Which section shall I write?")
        if section.number in known.written:
            return AIMessage(f"Section {section.number} is written.")
        wanted = self._look_up(section, known)
        said = ""
        if not wanted:
            arguments = self._section(section, known)
            wanted, said = [("write_section", arguments)], f"Angle: {arguments['angle']}."
        digest = _digest(messages)
        calls = [
            {"name": name, "args": arguments, "id": f"call_{digest}_{place}"}
            for place, (name, arguments) in enumerate(wanted)
        ]
        return AIMessage(said, tool_calls=calls)

    def _look_up(self, section: Section, known: Knowledge) -> list[tuple[str, dict[str, Any]]]:
        """Return the search or the readings that a section needs, as far as the model knows."""
        if section is CLOSING:
            return []
        for quantity in (*section.own, *section.agrees_with):
            if quantity in known.claims:
                continue
            topic = topic_of(quantity)
            if topic not in known.found:
                return [("search", {"query": topic})]
            new = [one for one in known.found[topic] if one not in known.findings]
            if new:
                return [("read", {"doc_id": one}) for one in new]
        return []

    def _section(self, section: Section, known: Knowledge) -> dict[str, Any]:
        """Return what a section says: of what is not known, nothing."""
        values = {name: self._value(name, known) for name in (*section.own, *section.agrees_with)}
        figures = {name: value for name, value in values.items() if value}
        angle = known.angle or self._choice(ANGLES, "angle", known)
        return {"number": section.number, "angle": angle, "figures": figures}

    def _value(self, quantity: str, known: Knowledge) -> str:
        """Return what a section says, else what a document gives that is decided to count."""
        if quantity in known.claims:
            return known.claims[quantity]
        given = [each[quantity] for _, each in sorted(known.findings.items()) if quantity in each]
        return self._choice(given, quantity, known) if given else ""

    def _choice(self, among: Sequence[str], about: str, known: Knowledge) -> str:
        """Decide, by all that is known: with other knowledge it may fall otherwise."""
        known_now = repr((known.claims, sorted(known.findings.items())))
        return among[int(share_of(self._seed, about, known_now) * len(among))]


def _summary_instructions(messages: Sequence[BaseMessage]) -> str:
    """Return the request for a summary; empty where the messages end otherwise."""
    last = messages[-1]
    asks = (
        isinstance(last, HumanMessage)
        and not last.text.startswith(SUMMARY_MARK)
        and _ASKS_FOR_SUMMARY.search(last.text)
    )
    return last.text if asks else ""


def _digest(messages: Sequence[BaseMessage]) -> str:
    told = blake2b(digest_size=8)
    for one in messages:
        told.update(block_of(one).content)
    return told.hexdigest()

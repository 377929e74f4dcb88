"""The assignment: a report in sections, each with topics to look up and earlier ones to agree with.

Places and figures are made up. What must hold over the whole report is decided early: the angle,
and which of two documents counts where they differ.
"""

from dataclasses import dataclass

__all__ = [
    "ANGLES",
    "CLOSING",
    "SECTIONS",
    "SYSTEM_PROMPT",
    "Section",
    "opening_prompt",
    "section_of",
    "section_prompt",
]

#: One of them is chosen in the first section and holds for the whole report.
ANGLES = ("costs", "safety", "nature", "jobs")


@dataclass(frozen=True, slots=True)
class Section:
    """One section of the report.

    Parameters
    ----------
    number : int
        From 1 on.
    topic : str
        What to search for; empty for the closing section, which looks nothing up.
    disputed : str
        A quantity for which two documents give different values.
    plain : str
        A quantity that one document gives.
    agrees_with : tuple of str
        Disputed quantities of earlier sections that this one states again.
    """

    number: int
    topic: str
    disputed: str
    plain: str
    agrees_with: tuple[str, ...] = ()

    @property
    def own(self) -> tuple[str, ...]:
        """The quantities of this section's own topic."""
        return (self.disputed, self.plain) if self.topic else ()


_TOPICS = (
    ("dredging", "dredged depth", "dredging bill"),
    ("tides", "spring range", "surge height"),
    ("ferries", "ferry passengers", "ferry crossings"),
    ("cargo", "container moves", "crane hours"),
    ("pilots", "pilot boardings", "pilot waiting"),
    ("fishing", "landed catch", "licensed boats"),
    ("quays", "quay length", "bollard load"),
    ("storms", "closed days", "wind limit"),
)
#: How many sections back a section's references lie: a near and a far one.
_BACK = (1, 4)


def _sections() -> tuple[Section, ...]:
    disputed = [one[1] for one in _TOPICS]
    return tuple(
        Section(
            number,
            *topic,
            tuple(disputed[number - 1 - back] for back in _BACK if number > back),
        )
        for number, topic in enumerate(_TOPICS, 1)
    )


#: The sections that look something up, in order.
SECTIONS = _sections()
#: The last section: it states every figure again, and nothing may be looked up for it.
CLOSING = Section(
    len(SECTIONS) + 1, "", "", "", tuple(name for each in SECTIONS for name in each.own)
)


def section_of(number: int) -> Section | None:
    """Return a section by its number; None where there is none."""
    return next((one for one in (*SECTIONS, CLOSING) if one.number == number), None)


def _outline() -> str:
    lines = []
    for one in SECTIONS:
        again = f"; again: {', '.join(one.agrees_with)}" if one.agrees_with else ""
        lines.append(f"Section {one.number}, {one.topic}: {', '.join(one.own)}{again}")
    lines.append(f"Section {CLOSING.number}, closing: every figure of all sections")
    return "\n".join(lines)


SYSTEM_PROMPT = f"""\
You write a report on the harbour of Norrvik, section by section, as the user asks for them.

Tools: search finds documents on a topic; read returns one of them; write_section puts a section \
into the report.

Outline, with the quantities that each section states, and those of earlier sections that it \
states again:
{_outline()}

Rules:
- Choose the report's angle once, for the first section, among {", ".join(ANGLES)}; every section \
has the same one.
- Look up every document on a section's topic before writing it. Read a document once.
- Where two documents differ on a quantity, decide which one counts, and keep to it in all sections.
- A quantity that is stated again has the value that its own section stated.
- The closing section is written from what is known; nothing is looked up for it.
- When a section is written, say so in a word and wait."""


def opening_prompt() -> str:
    """Return what the user says first."""
    return f"Let's begin the report on the harbour of Norrvik. {section_prompt(SECTIONS[0])}"


def section_prompt(section: Section) -> str:
    """Return what the user says to have a section written."""
    return f"Write section {section.number}, {section.topic or 'closing'}."

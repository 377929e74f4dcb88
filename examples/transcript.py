"""A transcript file while it is written: its clock, its ids and its chain of parent lines."""

import json
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from types import TracebackType
from typing import TextIO

__all__ = ["Clock", "Line", "Prose", "Transcript", "provider_id", "uuid"]

Line = dict[str, object]

_BASE58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
_WORDS = (
    "cart price total stock order refund invoice customer session token branch commit merge build "
    "test assert return import class def async await index column table query cache miss retry "
    "deploy release señal último naïve → ✓ {} [] () => != ; # // null true"
)
_LONGEST_BODY = 60_000  # characters


@dataclass(slots=True)
class Clock:
    """The time that the transcripts of one session share, in epoch milliseconds."""

    now_ms: int

    def tick(self, seconds: float) -> None:
        """Let time pass."""
        self.now_ms += round(seconds * 1000)

    def iso(self) -> str:
        """Return the time as the log writes it: ISO 8601, milliseconds, Z."""
        moment = datetime.fromtimestamp(self.now_ms / 1000, UTC)
        return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


class Prose:
    """Meaningless text of realistic length, sliced from one prepared string.

    Parameters
    ----------
    seed : int
        Decides the string.
    """

    def __init__(self, seed: int) -> None:
        rng = Random(seed)
        words = _WORDS.split()
        lines = (" ".join(rng.choices(words, k=rng.randint(3, 14))) for _ in range(6000))
        # U+2028 is an ordinary character of JSON, but some ways of splitting lines break at it.
        self._text = "\n".join(lines).replace("null true", "null\u2028true")

    def text(self, rng: Random, mean_chars: int) -> str:
        """Return a text of random length (lognormal, σ = 1, at most 60,000 characters)."""
        length = min(_LONGEST_BODY, 1 + int(rng.lognormvariate(math.log(mean_chars) - 0.5, 1.0)))
        start = rng.randrange(len(self._text) - _LONGEST_BODY)
        return self._text[start : start + length]


def uuid(rng: Random) -> str:
    """Return a version 4 UUID from a seeded generator."""
    digits = f"{rng.getrandbits(128):032x}"
    variant = "89ab"[int(digits[16], 16) % 4]
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-{variant}{digits[17:20]}-{digits[20:]}"


def provider_id(prefix: str, rng: Random) -> str:
    """Return an id in the provider's style, such as ``msg_01…`` or ``toolu_01…``."""
    return f"{prefix}_01{''.join(rng.choices(_BASE58, k=22))}"


@dataclass(slots=True)
class Transcript:
    """One JSONL file.

    Parameters
    ----------
    path : Path
        The file to write.
    rng : Random
        Source of line ids.
    clock : Clock
        Source of timestamps.
    envelope : Line
        Fields that every chained line repeats.
    parent : str or None, default None
        Id of the line that the first chained line continues.
    mirror : callable or None, default None
        Called with each chained line after it was written.
    """

    path: Path
    rng: Random
    clock: Clock
    envelope: Line
    parent: str | None = None
    mirror: Callable[[Line], None] | None = None
    lines: int = 0
    size_bytes: int = 0
    _file: TextIO = field(init=False)
    _late: Line | None = None

    def __enter__(self) -> "Transcript":
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._file = self.path.open("w", encoding="utf-8", newline="\n")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._file.close()

    def add(self, body: Line, *, parent: str | None = None, late: bool = False) -> str:
        """Write a line of the chain and return its id.

        Parameters
        ----------
        body : Line
            The line without envelope, id and time.
        parent : str or None, default None
            The line that it continues; None continues the last one.
        late : bool, default False
            Write the line after the next one, as two writers in a race do.
        """
        own = uuid(self.rng)
        line = {
            "parentUuid": parent or self.parent,
            **self.envelope,
            **body,
            "uuid": own,
            "timestamp": self.clock.iso(),
        }
        self.parent = own
        if late:
            self._late = line
        else:
            self.add_loose(line)
        if self.mirror:
            self.mirror(line)
        return own

    def add_root(self, body: Line) -> str:
        """Write a line that begins a new chain."""
        self.parent = None
        return self.add(body)

    def add_loose(self, line: Line) -> None:
        """Write a line outside the chain, as it is."""
        text = json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n"
        self._file.write(text)
        self.lines += 1
        self.size_bytes += len(text.encode())
        if self._late is not None:
            late, self._late = self._late, None
            self.add_loose(late)

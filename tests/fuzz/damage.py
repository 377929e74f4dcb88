"""Claude Code lines as real logs hold them, and damage of two kinds: to values and to bytes."""

import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import orjson
from hypothesis import strategies as st

from examples.claude_code_tree import write_tree
from tests.integration.ledger.test_fuzz import DELETED, ODD, places, shaped_like_real

MOST_LINES = 10
#: Where the same damage is done: so many logs, so many lines apart.
PLACES = 10
_STRIDE = 7919


@cache
def lines():
    """Lines of the example's sessions, one file behind the other, and one of every known shape."""
    found = [orjson.dumps(line) for line in shaped_like_real(0)]
    with tempfile.TemporaryDirectory() as folder:
        write_tree(Path(folder), sessions=6, body_chars=20)
        for path in sorted(Path(folder).rglob("*.jsonl")):
            found += path.read_bytes().splitlines()
    return found


@cache
def places_of(number):
    """The paths of all values inside a line, or none where it is no JSON."""
    try:
        value = orjson.loads(lines()[number])
    except orjson.JSONDecodeError:
        return []
    return list(places(value)) if isinstance(value, dict | list) else []


@dataclass(frozen=True)
class Value:
    """A value in a line becomes an odd one, or goes."""

    line: int
    place: int
    value: object

    def apply(self, picked, texts):
        if picked:
            index = self.line % len(picked)
            path = _one(places_of(picked[index]), self.place)
            if path:
                texts[index] = _set(texts[index], path, self.value)


@dataclass(frozen=True)
class Graft:
    """A value in a line becomes one that stands in another line of the logs."""

    line: int
    place: int
    giver: int
    given: int

    def apply(self, picked, texts):
        giver = self.giver % len(lines())
        path = _one(places_of(giver), self.given)
        if path:
            value = orjson.loads(lines()[giver])
            for key in path:
                value = value[key]
            Value(self.line, self.place, value).apply(picked, texts)


@dataclass(frozen=True)
class Moved:
    """A line stands elsewhere, or twice."""

    line: int
    to: int
    twice: bool

    def apply(self, picked, texts):
        if texts:
            taken = texts[self.line % len(texts)]
            if not self.twice:
                texts.remove(taken)
            texts.insert(self.to % (len(texts) + 1), taken)
            picked.clear()  # places are told by line


@dataclass(frozen=True)
class Bytes:
    """Bytes of a line are replaced by others, more or fewer."""

    line: int
    at: int
    length: int
    by: bytes

    def apply(self, picked, texts):
        if texts:
            index = self.line % len(texts)
            text = texts[index]
            at = self.at % (len(text) + 1)
            texts[index] = text[:at] + self.by + text[at + self.length :]


def _one(some, number):
    return some[number % len(some)] if some else None


def _set(text, path, value):
    """Return a line with a value put at a path; the line, where damage took the path away."""
    try:
        line = holder = orjson.loads(text)
        for key in path[:-1]:
            holder = holder[key]
        if value is DELETED:
            del holder[path[-1]]
        else:
            holder[path[-1]] = value
        return orjson.dumps(line)
    except (orjson.JSONDecodeError, orjson.JSONEncodeError, LookupError, TypeError):
        return text


_ANY = st.integers(0, 2**20)
#: What JSON writes in more ways than one, or not at all, and what ends or nests lines.
_TOKENS = st.sampled_from(
    [
        *(b"\\ud800", b"\\u0000", b"\\", b'"', b"\n", b"\r", b"\0", b"\xff", b"\xef\xbb\xbf"),
        *(b"1e999", b"NaN", b"-1", b"9" * 25, b"null", b"{", b"}", b"[" * 2000, b'{"a":' * 300),
        *(b",", b":"),
    ]
)
DAMAGE = st.one_of(
    st.builds(Value, _ANY, _ANY, ODD | st.just(DELETED)),
    st.builds(Graft, _ANY, _ANY, _ANY, _ANY),
    st.builds(Moved, _ANY, _ANY, st.booleans()),
    st.builds(Bytes, _ANY, _ANY, st.integers(0, 6), _TOKENS | st.binary(max_size=4)),
    st.builds(Bytes, _ANY, _ANY, st.just(2**30), st.just(b"")),
)


@st.composite
def damaged_logs(draw):
    """Draw the bytes of several logs: lines that follow each other somewhere, and some damage.

    The same damage is done in `PLACES` places, since drawing it costs as much as reading ten logs.
    """
    start, count = draw(_ANY), draw(st.integers(1, MOST_LINES))
    damages = draw(st.lists(DAMAGE, min_size=1, max_size=3))
    ending = draw(st.sampled_from([b"", b"\n"]))
    return [_log(start + number * _STRIDE, count, damages, ending) for number in range(PLACES)]


def _log(start, count, damages, ending):
    start %= len(lines())
    picked = list(range(start, min(start + count, len(lines()))))
    texts = [lines()[number] for number in picked]
    for damage in damages:
        damage.apply(picked, texts)
    return b"\n".join(texts) + ending

"""A provider's prompt cache: which tokens of each request are read, written, or neither."""

from collections.abc import Sequence
from hashlib import blake2b
from itertools import accumulate
from typing import NamedTuple

from ledger.token_classes import Usage

__all__ = ["LOOKBACK_BLOCKS", "Block", "PrefixCache"]

#: How many blocks before a mark are looked through for an earlier entry.
LOOKBACK_BLOCKS = 20


class Block(NamedTuple):
    """The least part of a request that a cache tells apart.

    Parameters
    ----------
    content : bytes
        What is sent; two blocks are the same where these bytes are.
    tokens : int
        What the provider counts for it.
    """

    content: bytes
    tokens: int


class PrefixCache:
    """Remembers the prefixes it was sent, and bills each request against them.

    Nothing expires: time is no part of it.

    Parameters
    ----------
    least_tokens : int
        The smallest prefix that is cached at all; default 0.
    """

    def __init__(self, least_tokens: int = 0) -> None:
        self._least_tokens = least_tokens
        self._known: set[bytes] = set()

    def billed(
        self, blocks: Sequence[Block], output_tokens: int, marks: Sequence[int] | None = None
    ) -> Usage:
        """Return the usage of one request, and remember its prefixes.

        Parameters
        ----------
        blocks : sequence of Block
            The whole request, tools and system prompt first.
        output_tokens : int
        marks : sequence of int, optional
            Cache breakpoints, as numbers of blocks before each: prefixes are stored there only,
            looked for there and up to `LOOKBACK_BLOCKS` before, and what is written is billed.
            Without it the cache is automatic: every prefix is stored and writing is free.

        Returns
        -------
        Usage
        """
        digests = _running_digests(blocks)
        sizes = [0, *accumulate(block.tokens for block in blocks)]
        stored = range(1, len(blocks) + 1) if marks is None else marks
        back = 0 if marks is None else LOOKBACK_BLOCKS
        looked = {k for mark in stored for k in range(max(mark - back, 1), mark + 1)}
        read = max((k for k in looked if digests[k] in self._known), default=0)
        kept = [k for k in stored if sizes[k] >= self._least_tokens]
        self._known.update(digests[k] for k in kept)
        written = 0 if marks is None else max(sizes[max(kept, default=0)] - sizes[read], 0)
        return Usage(
            uncached=sizes[-1] - sizes[read] - written,
            cache_read=sizes[read],
            cache_write_5m=written,
            output=output_tokens,
        )


def _running_digests(blocks: Sequence[Block]) -> list[bytes]:
    """Return a digest of every prefix, the empty one first."""
    running = blake2b(digest_size=16)
    digests = [running.digest()]
    for block in blocks:
        running.update(len(block.content).to_bytes(8, "big") + block.content)
        digests.append(running.copy().digest())
    return digests

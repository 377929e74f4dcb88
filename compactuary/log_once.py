"""Log lines, one a kind: a server that is away for an hour is one line, not a million."""

import logging

__all__ = ["LOGGER", "LogOnce"]

LOGGER = logging.getLogger("compactuary")
#: Kinds remembered; hostile servers could invent any number.
_MOST_KINDS = 200


class LogOnce:
    """Warns of each kind of trouble once, under the logger ``compactuary``."""

    def __init__(self) -> None:
        self._kinds: set[object] = set()

    def tell(self, kind: object, text: str) -> None:
        """Log a text unless its kind was logged before. It never holds a key or a prompt."""
        if kind in self._kinds or len(self._kinds) >= _MOST_KINDS:
            return
        self._kinds.add(kind)
        LOGGER.warning("%s (more of this kind are only counted)", text)

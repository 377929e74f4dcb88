"""Names that may leave the house: ids as hashes, projects as numbers, roles without paths."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from hashlib import blake2b
from secrets import token_bytes

from backtest.compaction_cases import CompactionCase
from backtest.sequences import Sequences

__all__ = ["OTHER_ROLE", "Aliases", "plain_role"]

OTHER_ROLE = "another role"
"""Stands for roles whose names could tell something."""

#: What a role's name may look like: words as agents name their kinds, without spaces or paths.
_ROLE = re.compile(r"[A-Za-z0-9_.:-]{1,60}")
_HASH_BYTES = 5


class Aliases:
    """Other names for what a log calls by name, the same one for the same name.

    Ids keep their order, so that whatever draws sessions draws the same ones.

    Parameters
    ----------
    projects : iterable of str
        Every project there is, once for each of its units: they are numbered, the most frequent
        first.
    key : bytes, optional
        Of the hashes. By default drawn anew, so that nobody can try ids that they know.
    """

    def __init__(self, projects: Iterable[str], key: bytes | None = None) -> None:
        self._key = token_bytes(16) if key is None else key
        counts = Counter(projects)
        ordered = sorted(counts, key=lambda name: (-counts[name], name))
        self._projects = {name: f"project {number}" for number, name in enumerate(ordered, start=1)}

    def project(self, name: str) -> str:
        """Return a project's number."""
        return self._projects.get(name, "another project")

    def sequences(self, told: Sequences) -> Sequences:
        """Return the same under other names."""
        sessions = self._ids(told.session)
        return replace(
            told,
            project=tuple(map(self.project, told.project)),
            session=tuple(sessions[name] for name in told.session),
            role=tuple(map(plain_role, told.role)),
        )

    def cases(self, told: Sequence[CompactionCase]) -> list[CompactionCase]:
        """Return the same compactions under other names."""
        sessions = self._ids(case.session_id for case in told)
        turns = self._ids(case.turn_id for case in told if case.turn_id)
        own = self._ids(case.compaction_id for case in told)
        return [
            replace(
                case,
                compaction_id=own[case.compaction_id],
                session_id=sessions[case.session_id],
                turn_id=turns.get(case.turn_id or ""),
                project=None if case.project is None else self.project(case.project),
                role=plain_role(case.role),
            )
            for case in told
        ]

    def _ids(self, names: Iterable[str]) -> dict[str, str]:
        ordered = sorted(set(names))
        digits = len(str(len(ordered)))
        return {
            name: f"{place:0{digits}}-{self._hashed(name)}" for place, name in enumerate(ordered)
        }

    def _hashed(self, name: str) -> str:
        return blake2b(name.encode(), key=self._key, digest_size=_HASH_BYTES).hexdigest()


def plain_role(name: str) -> str:
    """Return a role's name, or 'another role' where it could hold a path or a sentence."""
    return name if _ROLE.fullmatch(name) else OTHER_ROLE

"""What the ledger teaches, kept up to date: only what is new is read again."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from sqlalchemy import Connection

from api.learned_parameters import Group, blended, fallback
from api.role_samples import SessionSamples, TokenSamples, compaction_samples
from estimator.standard_table import kind_of_role
from ledger.compaction_observations import (
    CompactionRow,
    CompactionSeen,
    compactions_seen,
    latest_compactions,
    summary_calls,
)
from ledger.observations import TurnSeen, turns_seen
from ledger.recent import RecentTurn
from policy.parameters import Parameters
from policy.sizes import GROWTH_TOKENS
from policy.snapshot import TableKey

__all__ = ["LEARNED_COMPACTIONS", "LEARNED_TURNS", "Learning"]

#: Turns of a role that parameters are learned from: its latest.
LEARNED_TURNS = 200
#: Compactions of all roles that parameters are learned from: the latest.
LEARNED_COMPACTIONS = 500

_NEVER: tuple[None] = (None,)
#: By the name that a fallback goes under, as the tables': main roles, and all others.
_KINDS = {"main": "main", "": "subagent"}


@dataclass(slots=True)
class Learning:
    """What was seen of turns and compactions, and the parameters that follow from it."""

    parameters: dict[TableKey, Parameters] = field(default_factory=dict)
    _turns: dict[str, dict[str, tuple[RecentTurn, TurnSeen]]] = field(default_factory=dict)
    _rows: dict[str, CompactionRow] = field(default_factory=dict)
    _seen: dict[str, CompactionSeen] = field(default_factory=dict)
    _calls: int = 0
    _groups: dict[str, dict[str, Group]] = field(default_factory=dict)

    def follow(
        self, connection: Connection, latest: Mapping[str, Sequence[RecentTurn]]
    ) -> dict[TableKey, Parameters]:
        """Read what is new, and return all parameters.

        Parameters
        ----------
        latest : mapping of str to sequence of RecentTurn
            Latest turns of the roles that changed, oldest first.
        """
        rows = {
            row.compaction_id: row for row in latest_compactions(connection, LEARNED_COMPACTIONS)
        }
        news = [row for key, row in rows.items() if self._rows.get(key) != row]
        # What a request adds to the context is no growth where a compaction lies before it.
        before = [self._rows[row.compaction_id] for row in news if row.compaction_id in self._rows]
        compacted = {row.turn_id for row in (*news, *before) if row.turn_id}
        touched = {
            role: [turn for turn, _ in known.values()]
            for role, known in self._turns.items()
            if not compacted.isdisjoint(known)
        } | dict(latest)
        sessions: set[str] = set()
        for role, turns in touched.items():
            sessions |= self._take(connection, role, turns, compacted)
        moved = self._take_compactions(connection, rows, news, sessions)
        for role in touched.keys() | moved:
            self._groups[role] = self._sampled(role)
            if not self._groups[role]:
                # A sub-agent's turns move to the role that its parent's log names.
                del self._groups[role]
        if touched or moved:
            self.parameters = self._blended()
        return self.parameters

    def _take(
        self,
        connection: Connection,
        role: str,
        latest: Sequence[RecentTurn],
        compacted: Collection[str],
    ) -> set[str]:
        """Keep the latest turns of a role, and return the sessions of those that changed.

        Parameters
        ----------
        compacted : collection of str
            Turns that something new is known of although they may not have changed themselves.
        """
        latest = latest[-LEARNED_TURNS:]
        known = self._turns.get(role, {})
        changed = [
            turn.turn_id
            for turn in latest
            if known.get(turn.turn_id, _NEVER)[0] != turn or turn.turn_id in compacted
        ]
        seen = turns_seen(connection, changed)
        sessions = {one.session_id for one in seen.values()}
        # What begins a session may turn out to be older than what seemed to.
        openings = [
            key
            for key, (_, one) in known.items()
            if one.opens_session and one.session_id in sessions and key not in seen
        ]
        seen |= turns_seen(connection, openings)
        self._turns[role] = {
            turn.turn_id: (turn, seen.get(turn.turn_id) or known[turn.turn_id][1])
            for turn in latest
        }
        return sessions

    def _take_compactions(
        self,
        connection: Connection,
        rows: dict[str, CompactionRow],
        news: Sequence[CompactionRow],
        sessions: Collection[str],
    ) -> set[str]:
        """Keep the latest compactions, and return the roles of those that changed.

        Parameters
        ----------
        rows : dict of str to CompactionRow
            All that are kept, newest first.
        news : sequence of CompactionRow
            Those of them that are new, or told anew.
        sessions : collection of str
            Those that may have gone on after a compaction.
        """
        again = {row.compaction_id: row for row in news}
        again |= {key: row for key, row in rows.items() if row.session_id in sessions}
        calls = summary_calls(connection)
        if calls != self._calls:
            again = rows
        self._calls, self._rows = calls, rows
        read = compactions_seen(connection, again.values())
        stale = (self._seen.keys() - rows.keys()) | again.keys()
        gone = {key: self._seen.pop(key) for key in stale if key in self._seen}
        self._seen |= read
        return {
            one.role
            for key in gone.keys() | read.keys()
            if gone.get(key) != read.get(key)
            for one in (gone.get(key), read.get(key))
            if one is not None
        }

    def _sampled(self, role: str) -> dict[str, Group]:
        """Return the samples of a role: all under "", and by model where there are several.

        Empty for a role without turns and compactions.
        """
        pairs = list(self._turns.get(role, {}).values())
        turns = [seen for _, seen in pairs]
        standing = [seen for turn, seen in pairs if turn.status == "open"]
        newest = [self._seen[key] for key in self._rows if key in self._seen]
        compacted = [one for one in newest if one.role == role]
        if not turns and not compacted:
            return {}
        # A turn that only its parent's log tells of has a model, and teaches nothing of it.
        models = {turn.model for turn in turns if turn.first_model}
        models |= {one.model for one in compacted}
        models.discard("")
        groups = {"": self._group(turns, compacted, SessionSamples.of(turns, standing))}
        if len(models) > 1:
            for model in sorted(models):
                groups[model] = self._group(
                    [turn for turn in turns if turn.model == model],
                    [one for one in compacted if one.model == model],
                    SessionSamples(),
                )
        return groups

    def _group(
        self,
        turns: Sequence[TurnSeen],
        compacted: Sequence[CompactionSeen],
        sessions: SessionSamples,
    ) -> Group:
        tokens = TokenSamples.of(turns)
        usual = tokens.growth.value if tokens.growth else GROWTH_TOKENS
        strategies = {one.strategy for one in compacted}
        return Group(
            tokens,
            sessions,
            {
                strategy: compaction_samples(
                    [one for one in compacted if one.strategy == strategy], usual
                )
                for strategy in strategies
            },
        )

    def _blended(self) -> dict[TableKey, Parameters]:
        """Return every role's parameters: they all borrow from what all roles say together."""
        whole = {role: groups[""] for role, groups in self._groups.items()}
        made: dict[TableKey, Parameters] = {}
        for name, kind in _KINDS.items():
            kin = {role: own for role, own in whole.items() if kind_of_role(role) == kind}
            wider = fallback(kin, whole)
            made[TableKey("parameters_fallback", "", name)] = wider
            for role, own in kin.items():
                known = blended(role, "", "role", own, wider)
                made[TableKey("parameters", "", role)] = known
                for model, on_model in self._groups[role].items():
                    if model:
                        made[TableKey("parameters", "", role, model)] = blended(
                            role, model, "model", on_model, known
                        )
        return made

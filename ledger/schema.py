"""The tables of the ledger.

Times are milliseconds since 1970-01-01 UTC (``*_ms``), so that both databases keep and sort them
alike. Token columns count tokens of one class; they never overlap, so a request's context is
``uncached + cache_read`` plus every ``cache_write_*``.
"""

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Double,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    false,
    text,
)

__all__ = [
    "CACHE_WRITE_COLUMNS",
    "TOKEN_COLUMNS",
    "compactions",
    "decisions",
    "drift_states",
    "histogram",
    "keys",
    "ledger_version",
    "metadata",
    "request_pace",
    "requests",
    "snapshot_tables",
    "snapshots",
    "sources",
    "threads",
    "tool_calls",
    "turns",
]

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_name)s",
        "uq": "uq_%(table_name)s_%(column_0_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "pk": "pk_%(table_name)s",
    }
)

#: Cache writes by time to live; ``other`` is a write whose time to live the log does not tell.
CACHE_WRITE_COLUMNS = (
    "cache_write_5m",
    "cache_write_30m",
    "cache_write_1h",
    "cache_write_12h",
    "cache_write_other",
)
TOKEN_COLUMNS = ("uncached", "cache_read", *CACHE_WRITE_COLUMNS, "output", "reasoning")


def _count(name: str) -> Column[int]:
    return Column(name, BigInteger, nullable=False, server_default=text("0"))


turns = Table(
    "turns",
    metadata,
    Column("turn_id", Text, primary_key=True),
    Column("session_id", Text, nullable=False),
    Column("thread_id", Text, nullable=False, index=True),
    Column("source", Text, nullable=False),
    Column("role", Text, nullable=False),
    Column("model", Text),
    Column("provider", Text),
    Column("parent_turn_id", Text),
    Column("trigger", Text),
    Column("started_ms", BigInteger),
    Column("last_ms", BigInteger),
    Column("status", Text, nullable=False, server_default="open"),
    Column("reason", Text),
    # Calls made before observation began (left truncation); null where nobody knows how many.
    Column("entry_calls", Integer, server_default=text("0")),
    Column("entry_requests", Integer, server_default=text("0")),
    # Totals somebody stated without the rows that make them up (a finished row, a parent's count).
    Column("declared_tool_calls", Integer),
    Column("declared_requests", Integer),
    # Totals: the larger of stated and recorded.
    Column("tool_calls", Integer, nullable=False, server_default=text("0")),
    Column("requests", Integer),
    Column("asked_for_tools", Boolean, nullable=False, server_default=false()),
    CheckConstraint("status IN ('open', 'ended', 'cut')", name="status"),
    CheckConstraint("entry_calls >= 0 AND tool_calls >= 0", name="calls"),
)
#: The latest turns of a role, for estimates that forget.
Index("ix_turns_recent", turns.c.role, turns.c.last_ms, turns.c.turn_id)
Index(
    "ix_turns_open",
    turns.c.role,
    sqlite_where=turns.c.status == "open",
    postgresql_where=turns.c.status == "open",
)

requests = Table(
    "requests",
    metadata,
    Column("request_id", Text, primary_key=True),
    Column("session_id", Text, nullable=False),
    # Null for the summarising call of a compaction, which belongs to no turn.
    Column("turn_id", Text, ForeignKey("turns.turn_id")),
    # Place among the turn's requests, from 0; the highest is the latest.
    Column("position", Integer, nullable=False),
    Column("at_ms", BigInteger),
    Column("kind", Text, nullable=False, server_default="agent"),
    Column("model", Text),
    *(_count(name) for name in TOKEN_COLUMNS),
    # Calls reported as a number, without an id of their own.
    _count("unnamed_tool_calls"),
    CheckConstraint("kind IN ('agent', 'compaction')", name="kind"),
    CheckConstraint(" AND ".join(f"{name} >= 0" for name in TOKEN_COLUMNS), name="tokens"),
)

Index("ix_requests_turn_id", requests.c.turn_id, requests.c.position)
#: Summary calls by session and time, for what compactions teach.
Index(
    "ix_requests_compacting",
    requests.c.session_id,
    requests.c.at_ms,
    sqlite_where=requests.c.kind == "compaction",
    postgresql_where=requests.c.kind == "compaction",
)

tool_calls = Table(
    "tool_calls",
    metadata,
    Column("request_id", Text, ForeignKey("requests.request_id"), primary_key=True),
    Column("tool_call_id", Text, primary_key=True),
    Column("turn_id", Text, ForeignKey("turns.turn_id"), nullable=False, index=True),
    Column("name", Text, nullable=False),
    Column("at_ms", BigInteger),
)

compactions = Table(
    "compactions",
    metadata,
    Column("compaction_id", Text, primary_key=True),
    Column("session_id", Text, nullable=False),
    # Null for a compaction between turns.
    Column("turn_id", Text, index=True),
    Column("at_ms", BigInteger, index=True),
    Column("trigger", Text),
    Column("strategy", Text, nullable=False, server_default="summary"),
    Column("context_before", BigInteger),
    Column("context_after", BigInteger),
    Column("calls_before", Integer, nullable=False, server_default=text("0")),
    Column("requests_before", Integer, nullable=False, server_default=text("0")),
)

#: The sufficient statistic: how many turns entered at ``entry``, were last known at risk at
#: ``exit``, and ended there or not. Kept in the transaction that closes a turn.
histogram = Table(
    "histogram",
    metadata,
    Column("unit", Text, primary_key=True),
    Column("role", Text, primary_key=True),
    Column("model", Text, primary_key=True),
    Column("entry", Integer, primary_key=True, autoincrement=False),
    Column("exit", Integer, primary_key=True, autoincrement=False),
    Column("ended", Boolean, primary_key=True),
    Column("count", BigInteger, nullable=False),
    Column("version", BigInteger, nullable=False, index=True),
    CheckConstraint("unit IN ('tool_calls', 'requests')", name="unit"),
)

#: Tool calls and requests of the ended turns that tell both: the role's requests per tool call.
request_pace = Table(
    "request_pace",
    metadata,
    Column("role", Text, primary_key=True),
    Column("model", Text, primary_key=True),
    _count("turns"),
    _count("tool_calls"),
    _count("requests"),
    Column("version", BigInteger, nullable=False, index=True),
)

#: One row an agent's line of work in a session: where its reader stands, and what its parent said.
threads = Table(
    "threads",
    metadata,
    Column("thread_id", Text, primary_key=True),
    Column("session_id", Text, nullable=False),
    Column("role", Text),
    Column("parent_turn_id", Text),
    Column("done_status", Text),
    Column("done_ms", BigInteger),
    Column("state", Text),
)

#: One row a file read: how far, and how it looked then.
sources = Table(
    "sources",
    metadata,
    Column("path", Text, primary_key=True),
    Column("size", BigInteger, nullable=False),
    Column("mtime_ns", BigInteger, nullable=False),
    # Bytes and lines consumed, after decompression, up to the last whole line.
    Column("offset", BigInteger, nullable=False),
    Column("lines", BigInteger, nullable=False),
    Column("fingerprint", Text, nullable=False),
)

#: One row: the version moves with every change that an estimate can see. Turns that began before
#: ``pruned_before_ms`` and are not there were pruned.
ledger_version = Table(
    "ledger_version",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("version", BigInteger, nullable=False),
    Column("pruned_before_ms", BigInteger),
    CheckConstraint("id = 1", name="single"),
)

snapshots = Table(
    "snapshots",
    metadata,
    Column("version", BigInteger, primary_key=True, autoincrement=False),
    Column("built_ms", BigInteger, nullable=False),
    Column("content_hash", Text, nullable=False),
)

#: The stored snapshot's life tables; the digest tells a worker which ones to load again. The shelf
#: tells printed tables from those that decide; role and model are empty where they do not apply.
snapshot_tables = Table(
    "snapshot_tables",
    metadata,
    Column("shelf", Text, primary_key=True),
    Column("unit", Text, primary_key=True),
    Column("role", Text, primary_key=True),
    Column("model", Text, primary_key=True),
    Column("digest", Text, nullable=False),
    Column("payload", LargeBinary, nullable=False),
)

#: What the drift detector of a role knows, as JSON.
drift_states = Table(
    "drift_states",
    metadata,
    Column("role", Text, primary_key=True),
    Column("state", Text, nullable=False),
)

#: One row an answer of the service: what was asked, what was said and from what. Numbers and names
#: only; no column holds a text of a prompt. Turns may be recorded after they were asked about, or
#: never, so nothing is referred to.
decisions = Table(
    "decisions",
    metadata,
    Column("decision_id", Text, primary_key=True),
    Column("at_ms", BigInteger, nullable=False, index=True),
    Column("session_id", Text),
    Column("turn_id", Text, index=True),
    Column("role", Text, nullable=False),
    Column("model", Text),
    Column("unit", Text, nullable=False),
    # Made so far in the turn: calls in the unit, requests where those were counted.
    Column("calls", BigInteger, nullable=False),
    Column("requests", BigInteger),
    Column("context_tokens", BigInteger),
    # Answered, and what guards and rule said, whatever the mode.
    Column("decision", Text, nullable=False),
    Column("would_decide", Text, nullable=False),
    Column("rule", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("moment", Text, nullable=False, server_default="call"),
    Column("mode", Text, nullable=False, server_default="enforce"),
    Column("threshold_tokens", Double),
    Column("expected_remaining_calls", Double),
    Column("expected_remaining_requests", Double),
    Column("continue_probability", Double),
    Column("probability_pays", Double),
    Column("break_even_calls", Double),
    Column("cost", Double, nullable=False),
    Column("saving_per_call", Double, nullable=False),
    Column("expected_net", Double),
    Column("source", Text, nullable=False),
    Column("snapshot_version", BigInteger, nullable=False),
    Column("policy_version", Text, nullable=False),
    Column("prices_source", Text),
    CheckConstraint("decision IN ('compact', 'wait')", name="decision"),
    CheckConstraint("would_decide IN ('compact', 'wait')", name="would_decide"),
    CheckConstraint("unit IN ('tool_calls', 'requests')", name="unit"),
    CheckConstraint("moment IN ('call', 'turn_end', 'idle', 'resume')", name="moment"),
    CheckConstraint("mode IN ('enforce', 'shadow', 'off')", name="mode"),
)

#: Bearer keys of the service. Revoked and expired ones stay: a service that has ever had a key
#: must not stand open once the last one is gone.
keys = Table(
    "keys",
    metadata,
    # The public part of the key, by which it is looked up.
    Column("key_id", Text, primary_key=True),
    Column("name", Text, nullable=False),
    # SHA-256 of the whole key, in hexadecimal.
    Column("digest", Text, nullable=False),
    # Names, with blanks between them.
    Column("scopes", Text, nullable=False),
    Column("created_ms", BigInteger, nullable=False),
    Column("expires_ms", BigInteger),
    Column("revoked_ms", BigInteger),
)
#: A revoked key's name may be given again.
Index(
    "ix_keys_name",
    keys.c.name,
    unique=True,
    sqlite_where=keys.c.revoked_ms.is_(None),
    postgresql_where=keys.c.revoked_ms.is_(None),
)

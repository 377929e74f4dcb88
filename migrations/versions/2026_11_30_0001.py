"""The ledger: turns, requests, tool calls, compactions, histogram, snapshots."""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "2026_11_30_0001"
down_revision: str | None = None
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    op.create_table(
        "compactions",
        sa.Column("compaction_id", sa.Text(), nullable=False),
        sa.Column("session_id", sa.Text(), nullable=False),
        sa.Column("turn_id", sa.Text(), nullable=True),
        sa.Column("at_ms", sa.BigInteger(), nullable=True),
        sa.Column("trigger", sa.Text(), nullable=True),
        sa.Column("strategy", sa.Text(), server_default="summary", nullable=False),
        sa.Column("context_before", sa.BigInteger(), nullable=True),
        sa.Column("context_after", sa.BigInteger(), nullable=True),
        sa.Column("calls_before", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("requests_before", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.PrimaryKeyConstraint("compaction_id", name=op.f("pk_compactions")),
    )
    with op.batch_alter_table("compactions", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_compactions_turn_id"), ["turn_id"], unique=False)

    op.create_table(
        "histogram",
        sa.Column("unit", sa.Text(), nullable=False),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("model", sa.Text(), nullable=False),
        sa.Column("entry", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("exit", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("ended", sa.Boolean(), nullable=False),
        sa.Column("count", sa.BigInteger(), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.CheckConstraint("unit IN ('tool_calls', 'requests')", name=op.f("ck_histogram_unit")),
        sa.PrimaryKeyConstraint(
            "unit", "role", "model", "entry", "exit", "ended", name=op.f("pk_histogram")
        ),
    )
    with op.batch_alter_table("histogram", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_histogram_version"), ["version"], unique=False)

    op.create_table(
        "ledger_version",
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.CheckConstraint("id = 1", name=op.f("ck_ledger_version_single")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_ledger_version")),
    )
    op.execute("INSERT INTO ledger_version (id, version) VALUES (1, 0)")
    op.create_table(
        "request_pace",
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("model", sa.Text(), nullable=False),
        sa.Column("turns", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("tool_calls", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("requests", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("role", "model", name=op.f("pk_request_pace")),
    )
    with op.batch_alter_table("request_pace", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_request_pace_version"), ["version"], unique=False)

    op.create_table(
        "snapshots",
        sa.Column("version", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("built_ms", sa.BigInteger(), nullable=False),
        sa.Column("content_hash", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("version", name=op.f("pk_snapshots")),
    )
    op.create_table(
        "snapshot_tables",
        sa.Column("unit", sa.Text(), nullable=False),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("payload", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("unit", "role", name=op.f("pk_snapshot_tables")),
    )
    op.create_table(
        "sources",
        sa.Column("path", sa.Text(), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("mtime_ns", sa.BigInteger(), nullable=False),
        sa.Column("offset", sa.BigInteger(), nullable=False),
        sa.Column("lines", sa.BigInteger(), nullable=False),
        sa.Column("fingerprint", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("path", name=op.f("pk_sources")),
    )
    op.create_table(
        "threads",
        sa.Column("thread_id", sa.Text(), nullable=False),
        sa.Column("session_id", sa.Text(), nullable=False),
        sa.Column("role", sa.Text(), nullable=True),
        sa.Column("parent_turn_id", sa.Text(), nullable=True),
        sa.Column("done_status", sa.Text(), nullable=True),
        sa.Column("done_ms", sa.BigInteger(), nullable=True),
        sa.Column("state", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("thread_id", name=op.f("pk_threads")),
    )
    op.create_table(
        "turns",
        sa.Column("turn_id", sa.Text(), nullable=False),
        sa.Column("session_id", sa.Text(), nullable=False),
        sa.Column("thread_id", sa.Text(), nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("model", sa.Text(), nullable=True),
        sa.Column("provider", sa.Text(), nullable=True),
        sa.Column("parent_turn_id", sa.Text(), nullable=True),
        sa.Column("trigger", sa.Text(), nullable=True),
        sa.Column("started_ms", sa.BigInteger(), nullable=True),
        sa.Column("last_ms", sa.BigInteger(), nullable=True),
        sa.Column("status", sa.Text(), server_default="open", nullable=False),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("entry_calls", sa.Integer(), server_default=sa.text("0"), nullable=True),
        sa.Column("entry_requests", sa.Integer(), server_default=sa.text("0"), nullable=True),
        sa.Column("declared_tool_calls", sa.Integer(), nullable=True),
        sa.Column("declared_requests", sa.Integer(), nullable=True),
        sa.Column("tool_calls", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("requests", sa.Integer(), nullable=True),
        sa.Column("asked_for_tools", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.CheckConstraint("status IN ('open', 'ended', 'cut')", name=op.f("ck_turns_status")),
        sa.CheckConstraint("entry_calls >= 0 AND tool_calls >= 0", name=op.f("ck_turns_calls")),
        sa.PrimaryKeyConstraint("turn_id", name=op.f("pk_turns")),
    )
    with op.batch_alter_table("turns", schema=None) as batch_op:
        batch_op.create_index(
            "ix_turns_open",
            ["role"],
            unique=False,
            sqlite_where=sa.text("status = 'open'"),
            postgresql_where=sa.text("status = 'open'"),
        )
        batch_op.create_index(batch_op.f("ix_turns_thread_id"), ["thread_id"], unique=False)

    op.create_table(
        "requests",
        sa.Column("request_id", sa.Text(), nullable=False),
        sa.Column("session_id", sa.Text(), nullable=False),
        sa.Column("turn_id", sa.Text(), nullable=True),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("at_ms", sa.BigInteger(), nullable=True),
        sa.Column("kind", sa.Text(), server_default="agent", nullable=False),
        sa.Column("model", sa.Text(), nullable=True),
        sa.Column("uncached", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("cache_read", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("cache_write_5m", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("cache_write_30m", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("cache_write_1h", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("cache_write_12h", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column(
            "cache_write_other", sa.BigInteger(), server_default=sa.text("0"), nullable=False
        ),
        sa.Column("output", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("reasoning", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column(
            "unnamed_tool_calls", sa.BigInteger(), server_default=sa.text("0"), nullable=False
        ),
        sa.CheckConstraint("kind IN ('agent', 'compaction')", name=op.f("ck_requests_kind")),
        sa.CheckConstraint(
            " AND ".join(
                f"{name} >= 0"
                for name in (
                    "uncached",
                    "cache_read",
                    "cache_write_5m",
                    "cache_write_30m",
                    "cache_write_1h",
                    "cache_write_12h",
                    "cache_write_other",
                    "output",
                    "reasoning",
                )
            ),
            name=op.f("ck_requests_tokens"),
        ),
        sa.ForeignKeyConstraint(["turn_id"], ["turns.turn_id"], name=op.f("fk_requests_turn_id")),
        sa.PrimaryKeyConstraint("request_id", name=op.f("pk_requests")),
    )
    with op.batch_alter_table("requests", schema=None) as batch_op:
        batch_op.create_index("ix_requests_turn_id", ["turn_id", "position"], unique=False)

    op.create_table(
        "tool_calls",
        sa.Column("request_id", sa.Text(), nullable=False),
        sa.Column("tool_call_id", sa.Text(), nullable=False),
        sa.Column("turn_id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("at_ms", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(
            ["request_id"], ["requests.request_id"], name=op.f("fk_tool_calls_request_id")
        ),
        sa.ForeignKeyConstraint(["turn_id"], ["turns.turn_id"], name=op.f("fk_tool_calls_turn_id")),
        sa.PrimaryKeyConstraint("request_id", "tool_call_id", name=op.f("pk_tool_calls")),
    )
    with op.batch_alter_table("tool_calls", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_tool_calls_turn_id"), ["turn_id"], unique=False)


def downgrade() -> None:
    with op.batch_alter_table("tool_calls", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_tool_calls_turn_id"))

    op.drop_table("tool_calls")
    with op.batch_alter_table("requests", schema=None) as batch_op:
        batch_op.drop_index("ix_requests_turn_id")

    op.drop_table("requests")
    with op.batch_alter_table("turns", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_turns_thread_id"))
        batch_op.drop_index(
            "ix_turns_open",
            sqlite_where=sa.text("status = 'open'"),
            postgresql_where=sa.text("status = 'open'"),
        )

    op.drop_table("turns")
    op.drop_table("threads")
    op.drop_table("sources")
    op.drop_table("snapshot_tables")
    op.drop_table("snapshots")
    with op.batch_alter_table("request_pace", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_request_pace_version"))

    op.drop_table("request_pace")
    op.drop_table("ledger_version")
    with op.batch_alter_table("histogram", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_histogram_version"))

    op.drop_table("histogram")
    with op.batch_alter_table("compactions", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_compactions_turn_id"))

    op.drop_table("compactions")

"""The decision log; compactions by time, and summary calls by session and time."""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "2026_11_30_0003"
down_revision: str | None = "2026_11_30_0002"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    op.create_table(
        "decisions",
        sa.Column("decision_id", sa.Text(), nullable=False),
        sa.Column("at_ms", sa.BigInteger(), nullable=False),
        sa.Column("session_id", sa.Text(), nullable=True),
        sa.Column("turn_id", sa.Text(), nullable=True),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("model", sa.Text(), nullable=True),
        sa.Column("unit", sa.Text(), nullable=False),
        sa.Column("calls", sa.BigInteger(), nullable=False),
        sa.Column("requests", sa.BigInteger(), nullable=True),
        sa.Column("context_tokens", sa.BigInteger(), nullable=True),
        sa.Column("decision", sa.Text(), nullable=False),
        sa.Column("would_decide", sa.Text(), nullable=False),
        sa.Column("rule", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("moment", sa.Text(), server_default="call", nullable=False),
        sa.Column("mode", sa.Text(), server_default="enforce", nullable=False),
        sa.Column("threshold_tokens", sa.Double(), nullable=True),
        sa.Column("expected_remaining_calls", sa.Double(), nullable=True),
        sa.Column("expected_remaining_requests", sa.Double(), nullable=True),
        sa.Column("continue_probability", sa.Double(), nullable=True),
        sa.Column("probability_pays", sa.Double(), nullable=True),
        sa.Column("break_even_calls", sa.Double(), nullable=True),
        sa.Column("cost", sa.Double(), nullable=False),
        sa.Column("saving_per_call", sa.Double(), nullable=False),
        sa.Column("expected_net", sa.Double(), nullable=True),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("snapshot_version", sa.BigInteger(), nullable=False),
        sa.Column("policy_version", sa.Text(), nullable=False),
        sa.Column("prices_source", sa.Text(), nullable=True),
        sa.CheckConstraint("decision IN ('compact', 'wait')", name=op.f("ck_decisions_decision")),
        sa.CheckConstraint(
            "would_decide IN ('compact', 'wait')", name=op.f("ck_decisions_would_decide")
        ),
        sa.CheckConstraint("unit IN ('tool_calls', 'requests')", name=op.f("ck_decisions_unit")),
        sa.CheckConstraint(
            "moment IN ('call', 'turn_end', 'idle', 'resume')", name=op.f("ck_decisions_moment")
        ),
        sa.CheckConstraint("mode IN ('enforce', 'shadow', 'off')", name=op.f("ck_decisions_mode")),
        sa.PrimaryKeyConstraint("decision_id", name=op.f("pk_decisions")),
    )
    op.create_index(op.f("ix_decisions_at_ms"), "decisions", ["at_ms"], unique=False)
    op.create_index(op.f("ix_decisions_turn_id"), "decisions", ["turn_id"], unique=False)
    op.create_index(op.f("ix_compactions_at_ms"), "compactions", ["at_ms"], unique=False)
    op.create_index(
        "ix_requests_compacting",
        "requests",
        ["session_id", "at_ms"],
        unique=False,
        sqlite_where=sa.text("kind = 'compaction'"),
        postgresql_where=sa.text("kind = 'compaction'"),
    )


def downgrade() -> None:
    op.drop_index("ix_requests_compacting", table_name="requests")
    op.drop_index(op.f("ix_compactions_at_ms"), table_name="compactions")
    op.drop_table("decisions")

"""Decayed and credible tables: recent turns by role, tables by shelf and model, drift states."""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "2026_11_30_0002"
down_revision: str | None = "2026_11_30_0001"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    op.create_index("ix_turns_recent", "turns", ["role", "last_ms", "turn_id"], unique=False)
    op.create_table(
        "drift_states",
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("role", name=op.f("pk_drift_states")),
    )
    # Stored snapshots are made again from the histogram, so their table is made anew, too.
    op.execute("DELETE FROM snapshots")
    op.drop_table("snapshot_tables")
    op.create_table(
        "snapshot_tables",
        sa.Column("shelf", sa.Text(), nullable=False),
        sa.Column("unit", sa.Text(), nullable=False),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("model", sa.Text(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("payload", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("shelf", "unit", "role", "model", name=op.f("pk_snapshot_tables")),
    )


def downgrade() -> None:
    op.execute("DELETE FROM snapshots")
    op.drop_table("snapshot_tables")
    op.create_table(
        "snapshot_tables",
        sa.Column("unit", sa.Text(), nullable=False),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("payload", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("unit", "role", name=op.f("pk_snapshot_tables")),
    )
    op.drop_table("drift_states")
    op.drop_index("ix_turns_recent", table_name="turns")

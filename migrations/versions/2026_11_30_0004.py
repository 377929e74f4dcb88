"""Bearer keys of the service."""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "2026_11_30_0004"
down_revision: str | None = "2026_11_30_0003"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    op.create_table(
        "keys",
        sa.Column("key_id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("scopes", sa.Text(), nullable=False),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.Column("expires_ms", sa.BigInteger(), nullable=True),
        sa.Column("revoked_ms", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("key_id", name=op.f("pk_keys")),
    )
    op.create_index(
        "ix_keys_name",
        "keys",
        ["name"],
        unique=True,
        sqlite_where=sa.text("revoked_ms IS NULL"),
        postgresql_where=sa.text("revoked_ms IS NULL"),
    )


def downgrade() -> None:
    op.drop_index("ix_keys_name", table_name="keys")
    op.drop_table("keys")

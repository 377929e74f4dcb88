"""When the ledger was pruned: a column of the version row."""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "2026_12_01_0005"
down_revision: str | None = "2026_11_30_0004"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

_SOURCES = sa.table(
    "sources",
    *(sa.column(name) for name in ("path", "size", "mtime_ns", "offset", "lines", "fingerprint")),
)
_VERSION = sa.table("ledger_version", sa.column("pruned_before_ms"))
#: Where workers of the versions before look for it.
_OLD = _SOURCES.c.path == "pruned:"


def upgrade() -> None:
    op.add_column("ledger_version", sa.Column("pruned_before_ms", sa.BigInteger(), nullable=True))
    before_ms = sa.select(_SOURCES.c.offset).where(_OLD).scalar_subquery()
    op.execute(_VERSION.update().values(pruned_before_ms=before_ms))


def downgrade() -> None:
    connection = op.get_bind()
    told = connection.scalar(sa.select(_VERSION.c.pruned_before_ms))
    known = connection.scalar(sa.select(_SOURCES.c.offset).where(_OLD))
    if told is not None and known is None:
        row = {"path": "pruned:", "size": 0, "mtime_ns": 0, "lines": 0, "fingerprint": ""}
        op.execute(_SOURCES.insert().values(**row, offset=told))
    elif told is not None:
        op.execute(_SOURCES.update().where(_OLD).values(offset=max(told, known)))
    op.drop_column("ledger_version", "pruned_before_ms")

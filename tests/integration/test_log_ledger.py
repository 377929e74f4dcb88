"""A ledger that is gone afterwards has the tables that the migrations make."""

from sqlalchemy import inspect

from compactuary.log_ledger import make_tables
from ledger.database import open_engine
from migrations.upgrade import ensure_current, upgrade


def shape(engine):
    """Columns, keys, indexes, checks and rows of every table."""
    told = inspect(engine)
    found = {}
    for table in told.get_table_names():
        indexes = [
            (one["name"], one["column_names"], one["unique"]) for one in told.get_indexes(table)
        ]
        with engine.connect() as connection:
            rows = connection.exec_driver_sql(f'SELECT * FROM "{table}"').all()
            partial = connection.exec_driver_sql(
                "SELECT name, substr(sql, instr(sql, ' WHERE ')) FROM sqlite_master "
                "WHERE type = 'index' AND tbl_name = ? AND sql LIKE '% WHERE %' ORDER BY name",
                (table,),
            ).all()
        found[table] = {
            "columns": [
                {name: str(value) for name, value in column.items()}
                for column in told.get_columns(table)
            ],
            "key": told.get_pk_constraint(table)["constrained_columns"],
            "references": sorted(map(str, told.get_foreign_keys(table))),
            "indexes": sorted(indexes),
            "where": [tuple(one) for one in partial],
            "unique": sorted(map(str, told.get_unique_constraints(table))),
            "checks": sorted(one["sqltext"] for one in told.get_check_constraints(table)),
            "rows": [tuple(row) for row in rows],
        }
    return found


def test_tables_made_at_once_are_those_of_the_migrations(tmp_path):
    migrated, made = (open_engine(str(tmp_path / name)) for name in ("migrated.db", "made.db"))
    upgrade(migrated)
    make_tables(made)
    told = shape(made)
    assert told == shape(migrated)
    assert [row[:2] for row in told["ledger_version"]["rows"]] == [(1, 0)]
    assert any(table["where"] for table in told.values())
    ensure_current(made)
    for engine in (migrated, made):
        engine.dispose()

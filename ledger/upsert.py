"""INSERT … ON CONFLICT for both databases, so that every write can be sent twice."""

from collections.abc import Sequence
from functools import lru_cache
from importlib import import_module
from operator import itemgetter
from typing import Any

from sqlalchemy import Connection, Dialect, Table, case, func, or_

__all__ = ["upsert"]


def upsert(  # noqa: PLR0913 - a keyword for each way to merge
    connection: Connection,
    table: Table,
    rows: Sequence[dict[str, Any]],
    *,
    add: Sequence[str] = (),
    replace: Sequence[str] = (),
    largest: Sequence[str] = (),
    smallest: Sequence[str] = (),
    fill: Sequence[str] = (),
    same: str | None = None,
) -> None:
    """Insert rows; where the primary key is there already, merge the named columns.

    Parameters
    ----------
    rows : sequence of dict
        Column name to value, the same columns in every row.
    add, replace, largest, smallest, fill : sequence of str
        Columns to add to, to overwrite, to keep the larger or the smaller of, or to set only where
        null. Null is larger than everything.
        With none named, a row that is there stays as it is.
    same : str, optional
        Merge only where this column already holds the same value.
    """
    if not rows:
        return
    merges = (tuple(add), tuple(replace), tuple(largest), tuple(smallest), tuple(fill), same)
    sql, names = _prepared(connection.dialect, table, tuple(rows[0]), merges)
    if names is None:
        connection.exec_driver_sql(sql, list(rows))
    else:
        connection.exec_driver_sql(sql, list(map(itemgetter(*names), rows)))


def _insert(dialect: str) -> Any:
    """Return the dialect's own insert; one that is not asked for costs every start 20 ms."""
    module = "postgresql" if dialect == "postgresql" else "sqlite"
    return import_module(f"sqlalchemy.dialects.{module}").insert


_Names = tuple[str, ...]
_Merges = tuple[_Names, _Names, _Names, _Names, _Names, str | None]


@lru_cache(maxsize=128)
def _prepared(
    dialect: Dialect, table: Table, columns: tuple[str, ...], merges: _Merges
) -> tuple[str, tuple[str, ...] | None]:
    """Return the statement's text, and the order of its values where they go by position.

    Compiled once: SQLAlchemy's own way prepares every row of every call anew, which costs more
    than the database's part.
    """
    add, replace, largest, smallest, fill, same = merges
    statement = _insert(dialect.name)(table)
    new = statement.excluded
    merged: dict[str, Any] = {name: table.c[name] + new[name] for name in add}
    merged |= {name: new[name] for name in replace}
    merged |= {name: func.coalesce(table.c[name], new[name]) for name in fill}
    merged |= {
        name: case((new[name] > table.c[name], new[name]), else_=table.c[name]) for name in largest
    }
    merged |= {
        name: case(
            (or_(table.c[name].is_(None), new[name] < table.c[name]), new[name]),
            else_=table.c[name],
        )
        for name in smallest
    }
    keys = list(table.primary_key.columns)
    if merged:
        where = table.c[same] == new[same] if same else None
        statement = statement.on_conflict_do_update(index_elements=keys, set_=merged, where=where)
    else:
        statement = statement.on_conflict_do_nothing(index_elements=keys)
    compiled = statement.compile(dialect=dialect, column_keys=list(columns))
    order = getattr(compiled, "positiontup", None)
    return str(compiled), tuple(order) if order else None

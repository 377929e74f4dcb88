"""``column IN (many values)`` as one parameter, so that its length changes no statement."""

from collections.abc import Iterable
from typing import Any

import orjson
from sqlalchemy import ARRAY, ColumnElement, Connection, Text, any_, bindparam, func, select

__all__ = ["among"]


def among(
    connection: Connection, column: ColumnElement[Any], texts: Iterable[str]
) -> ColumnElement[bool]:
    """Return the condition that a text column holds one of many texts.

    A plain ``IN`` binds every text, which costs SQLAlchemy more than the look-up costs the
    database, and has a limit.
    """
    values = list(texts)
    if connection.dialect.name == "postgresql":
        return column == any_(bindparam(None, values, type_=ARRAY(Text)))
    each = func.json_each(orjson.dumps(values).decode()).table_valued("value")
    return column.in_(select(each.c.value))

"""Life tables whose intervals take turns of one session as alike."""

from dataclasses import replace

import numpy as np
from sqlalchemy import Connection, select

from api.estimates import ALL_ROLES, within_horizon
from compactuary.errors import InputError
from compactuary.role_lives import Lives
from estimator.clustering import SessionTurns, clustered_life_table
from estimator.life_table import LifeTable
from estimator.note_table import RoleLife
from ledger.histogram import TOOL_CALLS, calls_place, requests_place
from ledger.schema import turns

__all__ = ["clustered"]


def clustered(
    connection: Connection, lives: Lives, unit: str, half_life_turns: float | None = None
) -> Lives:
    """Give the same estimates with intervals for turns that come in sessions.

    Turns of one session are not independent, so that their number says too much. This reads every
    turn of the roles, which a histogram no longer tells apart.

    Parameters
    ----------
    lives : Lives
        As `role_lives` gave them, raw.
    unit : {'tool_calls', 'requests'}
    half_life_turns : float, optional
        Of the tables given; has to be None.

    Raises
    ------
    InputError
        If the tables are decayed.
    """
    if half_life_turns is not None:
        raise InputError(
            "sessions are known of raw tables only",
            where="--by-session",
            value=half_life_turns,
            remedy="Leave out --decay, or --by-session",
        )
    rows = [_with_sessions(connection, row, unit) for row in lives.roles]
    whole = lives.whole and _with_sessions(connection, lives.whole, unit)
    return lives._replace(roles=rows, whole=whole)


def _with_sessions(connection: Connection, row: RoleLife, unit: str) -> RoleLife:
    if row.life is None:
        return row
    return replace(row, life=_life(connection, row, unit))


def _life(connection: Connection, row: RoleLife, unit: str) -> LifeTable:
    wanted = select(
        turns.c.session_id,
        turns.c.status,
        turns.c.entry_calls,
        turns.c.tool_calls,
        turns.c.entry_requests,
        turns.c.requests,
        turns.c.asked_for_tools,
    )
    if row.role != ALL_ROLES:
        wanted = wanted.where(turns.c.role == row.role)
    if row.model is not None:
        wanted = wanted.where(turns.c.model == row.model)
    placed = []
    for session, status, entry_calls, calls, entry_requests, made, asked in connection.execute(
        wanted
    ):
        ended = status == "ended"
        if unit == TOOL_CALLS:
            place = calls_place(ended, entry_calls, calls)
        else:
            place = requests_place(ended, entry_requests, made, asked)
        if place is not None:
            placed.append((*within_horizon(place), session))
    entry, exit_, ends, sessions = (np.array(column) for column in zip(*placed, strict=True))
    return clustered_life_table(SessionTurns(entry, exit_, ends, sessions))

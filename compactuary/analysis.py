"""The notebook's door: tables, tests and pictures as pandas frames and matplotlib figures.

``import compactuary.analysis`` needs the extra ``analysis``. Every function reads a ledger (`db`:
an SQLAlchemy URL or an SQLite file; by default ``COMPACTUARY_DB``, else the platform's data
folder), or log files directly (`from_`: files or folders), without a server and leaving nothing
behind. Many questions to the same logs are answered faster inside `log_ledger`.

Estimates are raw: every turn counts alike, and no role borrows from another.
"""

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from compactuary.errors import InputError, MissingExtraError

try:
    from compactuary.log_ledger import Database, LogPaths, log_ledger, open_ledger
    from compactuary.role_lives import (
        MOST_PANELS,
        TABLE_CONTEXT_TOKENS,
        BreakEven,
        model_break_even,
        role_lives,
    )
    from compactuary.role_parts import SPLITS, role_parts
    from estimator.actuarial_table import RADIX, actuarial_table
    from estimator.note_table import NOTE_AGES, UNITS, note_table
    from estimator.report_table import as_frame
    from ledger.exports import export_columns, export_rows
except ModuleNotFoundError as error:
    if not error.name or find_spec(error.name.partition(".")[0]):
        raise  # a part of an installed package is missing: no extra brings that
    raise MissingExtraError(
        f"compactuary.analysis needs packages that the extra 'analysis' brings "
        f"({error.name} is missing)",
        remedy='Install them with: pip install "compactuary[analysis]"',
    ) from error

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame

__all__ = [
    "SPLITS",
    "life_table",
    "log_ledger",
    "model_break_even",
    "plot_remaining",
    "requests",
    "split",
    "table",
    "turns",
]

_TIMES = ("started_at", "ended_at", "at")


def turns(*, db: Database = None, from_: LogPaths | None = None) -> "DataFrame":
    """Give one row a turn.

    Returns
    -------
    DataFrame
        The columns of ``compactuary export turns``; times are UTC.

    Raises
    ------
    InputError, LedgerError
        If the ledger or a log can't be read.
    """
    return _exported("turns", db, from_)


def requests(*, db: Database = None, from_: LogPaths | None = None) -> "DataFrame":
    """Give one row a request, with its tokens.

    Returns
    -------
    DataFrame
        The columns of ``compactuary export requests``; times are UTC.

    Raises
    ------
    InputError, LedgerError
        If the ledger or a log can't be read.
    """
    return _exported("requests", db, from_)


def table(
    roles: str | Sequence[str] | None = None,
    *,
    at: Sequence[int] = NOTE_AGES,
    unit: str = "tool_calls",
    by_model: bool = False,
    break_even: BreakEven = None,
    context_tokens: int = TABLE_CONTEXT_TOKENS,
    db: Database = None,
    from_: LogPaths | None = None,
) -> "DataFrame":
    """Give the note's table: mean, median and m(i) by role.

    Parameters
    ----------
    roles : str or sequence of str, optional
        By default all, and a last row for all of them together.
    at : sequence of int, default 0, 5, 10, 20, 40
        Calls made so far, i.
    unit : {'tool_calls', 'requests'}
    by_model : bool, default False
        One row for each model of a role.
    break_even : float, mapping of model to float, or None
        C/s in requests; by default from the prices of the row's (commonest) model at
        `context_tokens`. An empty mapping for none.
    context_tokens : int, default 150,000
        Context before a compaction.
    db, from_
        As for the module.

    Returns
    -------
    DataFrame
        One row a role, most turns first: role, turns with a call, mean, p50 and, for each age,
        ``m_i``, ``lower_i``, ``upper_i``, ``at_risk_i``, ``extrapolated_i`` and ``pays_i``
        (above the break-even). The caption is in ``attrs["caption"]``.

    Raises
    ------
    InputError, LedgerError
        If a parameter is wrong, or the ledger or a log can't be read.
    """
    with open_ledger(db, from_) as connection:
        lives = role_lives(
            connection,
            _names(roles),
            unit=unit,
            by_model=by_model,
            break_even=break_even,
            context_tokens=context_tokens,
        )
    return as_frame(note_table(lives.roles, whole=lives.whole, ages=at, unit=unit))


def life_table(
    role: str,
    *,
    unit: str = "tool_calls",
    radix: float = RADIX,
    db: Database = None,
    from_: LogPaths | None = None,
) -> "DataFrame":
    """Give a role's life table in the actuary's columns.

    Parameters
    ----------
    role : str
    unit : {'tool_calls', 'requests'}
    radix : float, default 100,000
        l(0).
    db, from_
        As for the module.

    Returns
    -------
    DataFrame
        One row an age: age, l, d, q, p, e, m, lower, upper, median, at_risk, ended, open. The
        caption is in ``attrs["caption"]``.

    Raises
    ------
    InputError, LedgerError
        If no turn of the role has ended, a parameter is wrong, or the ledger or a log can't be
        read.
    """
    with open_ledger(db, from_) as connection:
        row = role_lives(connection, [role], unit=unit, break_even={}).roles[0]
    if row.life is None:
        raise InputError(
            "no turn of this role has ended",
            where="role",
            value=role,
            remedy="See table() for those of which one has",
        )
    return as_frame(actuarial_table(row.life, role=role, unit=UNITS[unit], radix=radix))


def plot_remaining(
    roles: str | Sequence[str] | None = None,
    *,
    unit: str = "tool_calls",
    until_age: int | None = None,
    break_even: BreakEven = None,
    context_tokens: int = TABLE_CONTEXT_TOKENS,
    save: str | Path | None = None,
    db: Database = None,
    from_: LogPaths | None = None,
) -> "Figure":
    """Draw m(i) with its interval by role, the break-even and the turns at risk.

    Parameters
    ----------
    roles : str or sequence of str, optional
        By default the 16 with the most turns.
    unit : {'tool_calls', 'requests'}
    until_age : int, optional
        Last age drawn; by default somewhat past the last one that data reach.
    break_even, context_tokens, db, from_
        As for `table`.
    save : str or Path, optional
        A file that ends in .png, .svg or .pdf.

    Returns
    -------
    Figure
        Of matplotlib; a notebook shows it.

    Raises
    ------
    InputError, LedgerError
        If a parameter is wrong, the file can't be written, or the ledger or a log can't be read.
    """
    from estimator.plots import plot_remaining as drawn  # noqa: PLC0415 - matplotlib is slow
    from estimator.plots import save_figure  # noqa: PLC0415

    with open_ledger(db, from_) as connection:
        lives = role_lives(
            connection,
            _names(roles),
            unit=unit,
            break_even=break_even,
            context_tokens=context_tokens,
        ).roles
    chosen = lives if roles is not None else lives[:MOST_PANELS]
    figure = drawn(chosen, unit=unit, until_age=until_age)
    if save is not None:
        save_figure(figure, save)
    return figure


def split(
    role: str, by: str = "model", *, db: Database = None, from_: LogPaths | None = None
) -> "DataFrame":
    """Test whether a role should be split, by log-rank and Cox.

    Parameters
    ----------
    role : str
        Without its project, where `by` is 'project'.
    by : {'model', 'project', 'trigger', 'first_tool'}
        By 'project' needs roles that were imported by project; logs named in `from_` are.
    db, from_
        As for the module.

    Returns
    -------
    DataFrame
        One row a part, largest first: turns, ends, mean with its interval, hazard ratio against
        the first part with its interval, log-rank p, and whether a table of its own pays. The
        verdict is in ``attrs["pays"]`` and ``attrs["reason"]``, the caption in
        ``attrs["caption"]``.

    Raises
    ------
    InputError, LedgerError
        If a parameter is wrong, or the ledger or a log can't be read.
    """
    from estimator.splits import split as tested  # noqa: PLC0415 - beside lifelines, seldom used
    from estimator.splits import split_table  # noqa: PLC0415

    with open_ledger(db, from_, role_by_project=by == "project") as connection:
        parts = role_parts(connection, role, by)
    found = tested(parts.histograms, by=by)
    frame = as_frame(split_table(found, role=role, unknown_turns=parts.unknown_turns))
    frame.attrs |= {"pays": found.pays, "reason": found.reason}
    return frame


def _names(roles: str | Sequence[str] | None) -> list[str] | None:
    if roles is None:
        return None
    return [roles] if isinstance(roles, str) else list(roles)


def _exported(kind: str, db: Database, from_: LogPaths | None) -> "DataFrame":
    from pandas import DataFrame, to_datetime  # noqa: PLC0415 - slow to import

    with open_ledger(db, from_) as connection:
        frame = DataFrame(list(export_rows(connection, kind)), columns=export_columns(kind))
    for name in _TIMES:
        if name in frame:
            frame[name] = to_datetime(frame[name], utc=True, format="ISO8601")
    return frame

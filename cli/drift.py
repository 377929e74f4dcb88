"""``compactuary drift``: which roles have changed."""

import sys
from typing import Annotated, Any

import typer
from sqlalchemy import Engine, select

from api.drift_watch import drift_report, watch_drift
from cli.ledger import open_ledger
from cli.options import AsJson, Db
from cli.output import print_json
from ledger.database import reading, writing
from ledger.drift_states import forget_drift_states
from ledger.schema import turns

__all__ = ["drift_command"]


def drift_command(
    db: Db = None,
    as_json: AsJson = False,
    again: Annotated[
        bool, typer.Option("--again", help="Start over from the first turn of every role.")
    ] = False,
) -> None:
    """Show which roles have changed, before and after.

    A role is watched once 300 turns make a reference; after an alarm the next 300 make a new one.
    """
    with open_ledger(db) as engine:
        report = _up_to_date(engine, again=again)
    if as_json:
        print_json(report)
    elif not report:
        sys.stdout.write("No role has turns with a time yet.\n")
    else:
        sys.stdout.write("".join(_told(row) for row in report))


def _up_to_date(engine: Engine, *, again: bool) -> list[dict[str, Any]]:
    if again:
        with writing(engine) as connection:
            forget_drift_states(connection)
    with reading(engine) as connection:
        roles = connection.scalars(select(turns.c.role).distinct()).all()
    watch_drift(engine, roles)
    with reading(engine) as connection:
        return drift_report(connection)


def _told(row: dict[str, Any]) -> str:
    """Return one role's lines: its detector's state, then each alarm with both tables."""
    if row["status"] == "watching":
        turns = row["turns_watched"]
        state = (
            f"watching, {turns:,} turn{'' if turns == 1 else 's'} since the reference; "
            f"evidence {row['statistic']:,.1f}, an alarm at {row['threshold']:,.0f}"
        )
    else:
        again = "a new" if row["alarms"] else "a"
        state = (
            f"gathering {again} reference, {row['reference_turns']:,} of "
            f"{row['reference_needed']:,} turns"
        )
    lines = [f"{row['role']}: {state}"]
    for alarm in row["alarms"]:
        after = alarm["turns_since_reference"]
        lines.append(
            f"  {alarm['at']}: turns became {alarm['direction']}, seen after {after:,} turns"
        )
        lines += [f"    before  {_means(alarm['before'])}", f"    after   {_means(alarm['after'])}"]
    if row["alarms"] and row["reference_turns"]:
        lines.append(f"  since then {_means(row['reference'])}")
    return "\n".join(lines) + "\n"


def _means(part: dict[str, Any]) -> str:
    means = (
        f"m({age}) = {'–' if mean is None else f'{mean:.1f}'}" for age, mean in part["m"].items()
    )
    return f"{part['turns']:,} turns: {', '.join(means)}"

"""``compactuary prune``: old turns go, estimates stay."""

import re
import sys
import time
from typing import Annotated

import typer
from sqlalchemy import Engine, select, text

from api.drift_watch import watch_drift
from api.estimates import RECENT_TURNS
from api.learning import LEARNED_COMPACTIONS
from cli.ledger import open_ledger
from cli.options import AsJson, Db
from cli.output import print_json, say
from compactuary.errors import InputError
from ledger.clock import iso, milliseconds
from ledger.database import reading
from ledger.pruning import Kept, Pruned, prune
from ledger.schema import turns

__all__ = ["prune_command"]

_MS_PER_DAY = 86_400_000
_DAYS = re.compile(r"(\d{1,6})d")
#: What decisions are made from, however old it is.
_KEPT = Kept(RECENT_TURNS, LEARNED_COMPACTIONS)


def prune_command(
    older_than: Annotated[
        str, typer.Option("--older-than", help="An age in days, like 90d, or a date or time.")
    ],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only count what would go.")] = False,
    db: Db = None,
    as_json: AsJson = False,
) -> None:
    """Delete turns that closed before a time, and all that hangs on them.

    Estimates stay as they are: the histogram keeps counting these turns, and the latest 1,400 turns
    of each role stay, however old. The service may run meanwhile.
    """
    before_ms = _before_ms(older_than, time.time_ns() // 1_000_000)
    with open_ledger(db) as engine:
        if not dry_run:
            _show_detectors(engine)
        done = prune(engine, before_ms, _KEPT, dry_run=dry_run)
        free = _free_bytes(engine)
    if as_json:
        names = Pruned.__slots__
        print_json(
            {"before": iso(before_ms), "dry_run": dry_run}
            | {name: getattr(done, name) for name in names}
            | {"free_bytes": free}
        )
        return
    sys.stdout.write(_sentence(done, before_ms, dry_run=dry_run) + "\n")
    if free and not dry_run:
        say(
            f"The file keeps its size: {free / 1e6:,.1f} MB in it are free for new turns. "
            "To give them back to the disk, stop the service and run VACUUM on it."
        )


def _show_detectors(engine: Engine) -> None:
    """Let the drift detectors see what they have not, before it goes."""
    with reading(engine) as connection:
        roles = connection.scalars(select(turns.c.role).distinct()).all()
    watch_drift(engine, roles)


def _free_bytes(engine: Engine) -> int | None:
    """Return what is free inside an SQLite file; PostgreSQL looks after that by itself."""
    if engine.dialect.name != "sqlite":
        return None
    with reading(engine) as connection:
        pages = connection.execute(text("PRAGMA freelist_count")).scalar_one()
        return int(pages * connection.execute(text("PRAGMA page_size")).scalar_one())


def _sentence(done: Pruned, before_ms: int, *, dry_run: bool) -> str:
    counted = ", ".join(
        f"{getattr(done, name):,} {name.replace('_', ' ')}" for name in Pruned.__slots__
    )
    return f"{counted} from before {iso(before_ms)} {'would go' if dry_run else 'are gone'}."


def _before_ms(given: str, now_ms: int) -> int:
    days = _DAYS.fullmatch(given)
    try:
        before_ms = now_ms - int(days[1]) * _MS_PER_DAY if days else milliseconds(given)
        if before_ms is not None and before_ms <= now_ms and iso(before_ms):
            return before_ms
    except (InputError, OverflowError):
        pass
    raise InputError(
        "neither an age in days nor a time that has passed",
        where="--older-than",
        value=given,
        remedy="Write it like 90d, or like 2026-02-11.",
    )

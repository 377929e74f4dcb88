"""``compactuary keys``: who may ask the service what."""

import sys
import time
from typing import Annotated, Any

import typer

from cli.ledger import open_ledger
from cli.options import AsJson, Db
from cli.output import print_json, say
from compactuary.errors import InputError
from ledger.clock import iso, milliseconds
from ledger.database import reading, writing
from ledger.keys import SCOPES, Key, create_key, read_keys, revoke_key

__all__ = ["keys_app"]

_MS_PER_DAY = 86_400_000
_MOST_DAYS = 36_500

Name = Annotated[str, typer.Argument(metavar="NAME", help="Whose key it is.")]

keys_app = typer.Typer(help="Say who may ask the service what.", no_args_is_help=True)


@keys_app.callback()
def keys_command() -> None:
    """Say who may ask the service what.

    Once a ledger has a key, the service asks every caller for one.
    """


@keys_app.command("create")
def create_command(
    name: Name,
    scope: Annotated[
        list[str],
        typer.Option("--scope", help=f"{', '.join(SCOPES)} (all of them); may be repeated."),
    ],
    expires: Annotated[
        str | None,
        typer.Option("--expires", help="Date or time from which it opens nothing any more."),
    ] = None,
    days: Annotated[
        int | None, typer.Option("--days", min=1, max=_MOST_DAYS, help="Days until it expires.")
    ] = None,
    db: Db = None,
    as_json: AsJson = False,
) -> None:
    """Make a key and print it, once: the ledger keeps only its hash."""
    now_ms = _now_ms()
    expires_ms = _expires_ms(expires, days, now_ms)
    with open_ledger(db, make=True) as engine, writing(engine) as connection:
        first = not read_keys(connection)
        key, token = create_key(connection, name, scope, now_ms=now_ms, expires_ms=expires_ms)
    if as_json:
        print_json({"key": token, **_row(key, now_ms)})
        return
    sys.stdout.write(f"{token}\n")
    until = iso(key.expires_ms)
    say(
        f"{key.name} may {', '.join(_scopes(key))}{f', until {until}' if until else ''}. "
        "The key is shown this once."
    )
    if first:
        say("From now on the service asks every caller for a key.")


@keys_app.command("list")
def list_command(db: Db = None, as_json: AsJson = False) -> None:
    """List the keys, those that expired or were revoked too."""
    now_ms = _now_ms()
    with open_ledger(db) as engine, reading(engine) as connection:
        rows = [_row(key, now_ms) for key in read_keys(connection)]
    if as_json:
        print_json(rows)
        return
    if not rows:
        sys.stdout.write("There are no keys: the service asks for none, and listens locally.\n")
        return
    width = max(4, *(len(row["name"]) for row in rows))
    sys.stdout.write(f"{'name':{width}}  {'id':12}  {'state':8}  {'expires':10}  scopes\n")
    for row in rows:
        sys.stdout.write(
            f"{row['name']:{width}}  {row['key_id']}  {row['state']:8}  "
            f"{(row['expires_at'] or 'never')[:10]:10}  {' '.join(row['scopes'])}\n"
        )


@keys_app.command("revoke")
def revoke_command(name: Name, db: Db = None, as_json: AsJson = False) -> None:
    """Take a key out of force for good."""
    now_ms = _now_ms()
    with open_ledger(db) as engine, writing(engine) as connection:
        revoke_key(connection, name, now_ms=now_ms)
    if as_json:
        print_json({"name": name, "revoked_at": iso(now_ms)})
    else:
        sys.stdout.write(f"{name} is revoked. Running services follow within seconds.\n")


def _row(key: Key, now_ms: int) -> dict[str, Any]:
    return {
        "name": key.name,
        "key_id": key.key_id,
        "state": key.state(now_ms),
        "scopes": _scopes(key),
        "created_at": iso(key.created_ms),
        "expires_at": iso(key.expires_ms),
        "revoked_at": iso(key.revoked_ms),
    }


def _scopes(key: Key) -> list[str]:
    return [scope for scope in SCOPES if scope in key.scopes]


def _expires_ms(expires: str | None, days: int | None, now_ms: int) -> int | None:
    if expires is None:
        return None if days is None else now_ms + days * _MS_PER_DAY
    if days is not None:
        raise InputError(
            "says when the key expires, and --days too",
            where="--expires",
            value=expires,
            remedy="Give one of them.",
        )
    try:
        at_ms = milliseconds(expires)
    except InputError as error:
        raise InputError(
            error.problem, where="--expires", value=error.value, remedy=error.remedy
        ) from error
    if at_ms is None or at_ms <= now_ms:
        raise InputError(
            "is not in the future",
            where="--expires",
            value=expires,
            remedy="Name a date to come, such as 2027-06-30.",
        )
    return at_ms


def _now_ms() -> int:
    return time.time_ns() // 1_000_000

"""Bearer keys: made, read and revoked. The ledger holds a key's digest, never the key."""

import hashlib
import hmac
import secrets
from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal, get_args

from sqlalchemy import Connection, inspect, select, update

from compactuary.errors import InputError
from ledger.schema import keys
from ledger.upsert import upsert

__all__ = [
    "SCOPES",
    "Key",
    "KeyState",
    "Scope",
    "create_key",
    "is_of",
    "key_id_of",
    "read_keys",
    "revoke_key",
]

Scope = Literal["decide", "write", "read", "admin"]
SCOPES: tuple[Scope, ...] = get_args(Scope)
KeyState = Literal["in force", "expired", "revoked"]

#: What every key begins with, so that scanners of logs and repositories know one when they see it.
PREFIX = "compactuary"
_ID_BYTES = 6
_SECRET_BYTES = 32
_LONGEST_NAME = 100


@dataclass(frozen=True, slots=True)
class Key:
    """A key as the ledger knows it.

    Parameters
    ----------
    key_id : str
        The public part of the key, by which it is looked up.
    name : str
    digest : str
        SHA-256 of the whole key, in hexadecimal. A slow hash would add nothing: 256 random bits
        can't be guessed, as a password can.
    scopes : frozenset of {'decide', 'write', 'read', 'admin'}
    created_ms : int
    expires_ms, revoked_ms : int or None
        None is never.
    """

    key_id: str
    name: str
    digest: str
    scopes: frozenset[str]
    created_ms: int
    expires_ms: int | None = None
    revoked_ms: int | None = None

    def state(self, now_ms: int) -> KeyState:
        """Say whether the key opens anything now."""
        if self.revoked_ms is not None:
            return "revoked"
        if self.expires_ms is not None and self.expires_ms <= now_ms:
            return "expired"
        return "in force"

    def allows(self, scope: str) -> bool:
        """Say whether the key's scopes hold one; `admin` holds them all."""
        return scope in self.scopes or "admin" in self.scopes


def create_key(
    connection: Connection,
    name: str,
    scopes: Collection[str],
    *,
    now_ms: int,
    expires_ms: int | None = None,
) -> tuple[Key, str]:
    """Make a key and keep its digest; the key itself is returned here and never again.

    Parameters
    ----------
    name : str
        Whose key it is; no other key in force has the name. A revoked key's name is free again.
    scopes : collection of {'decide', 'write', 'read', 'admin'}
    now_ms, expires_ms : int
        Milliseconds since 1970-01-01 UTC. Without ``expires_ms`` it never expires.

    Raises
    ------
    InputError
        If the name is taken, empty, longer than 100 characters or not printable, a scope is
        missing or unknown, or the key would have expired already.
    """
    _check(name, scopes, now_ms, expires_ms)
    taken = select(keys.c.key_id).where(keys.c.name == name, keys.c.revoked_ms.is_(None))
    if connection.scalar(taken) is not None:
        raise InputError(
            "a key of this name is there already",
            where="name",
            value=name,
            remedy=f"Choose another name, or revoke it first: compactuary keys revoke {name}",
        )
    key_id = secrets.token_hex(_ID_BYTES)
    token = f"{PREFIX}_{key_id}_{secrets.token_urlsafe(_SECRET_BYTES)}"
    made = Key(key_id, name, _digest(token), frozenset(scopes), now_ms, expires_ms)
    row = {
        "key_id": key_id,
        "name": name,
        "digest": made.digest,
        "scopes": " ".join(scope for scope in SCOPES if scope in made.scopes),
        "created_ms": now_ms,
        "expires_ms": expires_ms,
    }
    upsert(connection, keys, [row])
    return made, token


def read_keys(connection: Connection) -> list[Key]:
    """Return every key there ever was, by name; none where the ledger has no tables yet."""
    if not inspect(connection).has_table(keys.name):
        return []
    rows = connection.execute(select(keys).order_by(keys.c.name, keys.c.created_ms)).mappings()
    return [Key(**{**row, "scopes": frozenset(row["scopes"].split())}) for row in rows]


def revoke_key(connection: Connection, name: str, *, now_ms: int) -> None:
    """Take a key out of force for good. Its row stays, as a record and as a lock.

    Raises
    ------
    InputError
        If no key of this name is in force, or waits to be revoked though it has expired.
    """
    named = update(keys).where(keys.c.name == name, keys.c.revoked_ms.is_(None))
    if not connection.execute(named.values(revoked_ms=now_ms)).rowcount:
        raise InputError(
            "no such key",
            where="name",
            value=name,
            remedy="See the names with: compactuary keys list",
        )


def key_id_of(token: str) -> str | None:
    """Return the public part of a key, or None where it can't be one of ours."""
    parts = token.split("_", 2)
    return parts[1] if len(parts) == 3 and parts[0] == PREFIX else None


def is_of(token: str, key: Key) -> bool:
    """Say whether a token is this key, in a time that tells nothing of where it differs."""
    return hmac.compare_digest(_digest(token), key.digest)


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


def _check(name: str, scopes: Collection[str], now_ms: int, expires_ms: int | None) -> None:
    if not (0 < len(name) <= _LONGEST_NAME and name.isprintable()):
        raise InputError(
            f"not a name of 1 to {_LONGEST_NAME} printable characters",
            where="name",
            value=name,
            remedy="Name who will use the key, such as ci-agents.",
        )
    wrong = next((scope for scope in scopes if scope not in SCOPES), None)
    if wrong is not None or not scopes:
        raise InputError(
            "not a scope",
            where="scope",
            value=wrong or "none",
            remedy=f"Give one or more of: {', '.join(SCOPES)}.",
        )
    if expires_ms is not None and expires_ms <= now_ms:
        raise InputError(
            "the key would have expired already",
            where="expires",
            value=expires_ms,
            remedy="Name a date to come.",
        )

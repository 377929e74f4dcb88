"""Who may ask what: the scope of each endpoint, and what a caller's key is worth."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import ip_address
from typing import Any, Literal

from starlette.types import Scope as Connection

from api.keyring import KeyringState
from ledger.keys import Key, Scope, is_of, key_id_of

__all__ = [
    "Denial",
    "Denied",
    "admit",
    "bearer_token",
    "describe_access",
    "is_public",
    "is_remote",
    "path_of",
    "scope_needed",
]

#: Answered without a key: they tell a load balancer that the process lives, and nothing else.
_PUBLIC = frozenset({"/healthz", "/readyz"})
_DECIDE = "/should-compact"
_DECIDE_LOCALLY = "/thresholds/"
_REALM = 'Bearer realm="compactuary"'

Denied = Literal["missing", "unknown", "expired", "revoked", "scope", "remote", "unreadable"]


@dataclass(frozen=True, slots=True)
class Denial:
    """Why a request goes no further.

    Parameters
    ----------
    denied : str
        The reason, as metrics count it.
    status : int
    title, problem, remedy : str
    challenge : str or None
        The WWW-Authenticate header.
    """

    denied: Denied
    status: int
    title: str
    problem: str
    remedy: str
    challenge: str | None = None


_ASK = "Send a key: Authorization: Bearer …; compactuary keys create makes one."
_INVALID = f'{_REALM}, error="invalid_token"'
_MISSING = Denial("missing", 401, "A key is needed", "the request has no key", _ASK, _REALM)
_UNKNOWN = Denial("unknown", 401, "The key is wrong", "no such key", _ASK, _INVALID)
_EXPIRED = Denial("expired", 401, "The key has expired", "the key has expired", _ASK, _INVALID)
_REVOKED = Denial("revoked", 401, "The key is revoked", "the key is revoked", _ASK, _INVALID)
_REMOTE = Denial(
    "remote",
    401,
    "A key is needed",
    "the service has no keys, so it answers this machine only",
    "Make one: compactuary keys create NAME --scope SCOPE.",
    _REALM,
)
_UNREADABLE = Denial(
    "unreadable",
    503,
    "The keys can't be read",
    "the ledger could not be read yet, so nobody can be let in",
    "Check that the database runs; the service tries on.",
)
_STATES = {"expired": _EXPIRED, "revoked": _REVOKED}


def path_of(scope: Connection) -> str:
    """Return the path as routes see it: without the prefix that a proxy mounted the service at."""
    path: str = scope["path"]
    root: str = scope.get("root_path", "")
    return path.removeprefix(root) if root and path.startswith(f"{root}/") else path


def is_public(path: str) -> bool:
    """Say whether a path is answered without a key."""
    return path in _PUBLIC


def scope_needed(method: str, path: str) -> Scope:
    """Return the scope that a request needs; `admin` for whatever nobody thought of.

    Parameters
    ----------
    method, path : str
        As routes see them.
    """
    if path == _DECIDE or path.startswith(_DECIDE_LOCALLY):
        return "decide"
    if method in {"GET", "HEAD", "OPTIONS"}:
        return "read"
    return "write" if method in {"POST", "PUT"} else "admin"


def admit(
    state: KeyringState, token: str | None, method: str, path: str, now_ms: int, *, remote: bool
) -> Key | Denial | None:
    """Return the key that lets a request in, None where none is needed, or why it may not go on.

    Parameters
    ----------
    state : KeyringState
    token : str or None
        What the request sent as its key.
    method, path : str
    now_ms : int
    remote : bool
        Whether the request may have come from another machine.
    """
    if state.keys is None:
        return _UNREADABLE
    if not state.keys:
        return _REMOTE if remote else None
    if token is None:
        return _MISSING
    key = state.keys.get(key_id_of(token) or "")
    if key is None or not is_of(token, key):
        return _UNKNOWN
    found = key.state(now_ms)
    if found != "in force":
        return _STATES[found]
    scope = scope_needed(method, path)
    return key if key.allows(scope) else _beyond(key, scope)


def _beyond(key: Key, scope: Scope) -> Denial:
    has = ", ".join(sorted(key.scopes))
    return Denial(
        "scope",
        403,
        "The key does not reach so far",
        f"this needs a key with the scope {scope!r}, and the key has {has}",
        f"Make one: compactuary keys create NAME --scope {scope}.",
        f'{_REALM}, error="insufficient_scope", scope="{scope}"',
    )


def bearer_token(header: bytes | None) -> str | None:
    """Return the token of an Authorization header, or None where it holds none."""
    if header is None:
        return None
    scheme, _, token = header.decode("latin-1").partition(" ")
    return token.strip() or None if scheme.lower() == "bearer" else None


def is_remote(scope: Connection, host: bytes | None) -> bool:
    """Say whether a request may have come from another machine, or for one.

    The service's own address counts, not the caller's, which a proxy's header may set. So does
    the Host header: a page of another name that resolves to this machine asks under its own.

    Parameters
    ----------
    scope : ASGI connection scope
    host : bytes or None
        The Host header.
    """
    server = scope.get("server")
    # A Unix socket has no port.
    address = str(server[0]) if server and server[1] is not None else "localhost"
    return not (_is_of_this_machine(address) and _names_this_machine(host, address))


@lru_cache(maxsize=64)
def _is_of_this_machine(address: str) -> bool:
    try:
        return ip_address(address.partition("%")[0]).is_loopback
    except ValueError:
        return True  # a name: no socket has one, but a test's client


@lru_cache(maxsize=64)
def _names_this_machine(host: bytes | None, address: str) -> bool:
    if host is None:
        return True
    text = host.decode("latin-1").lower()
    name = text[1:].partition("]")[0] if text.startswith("[") else text.partition(":")[0]
    if name in {address, "localhost"} or name.endswith(".localhost"):
        return True
    try:
        return ip_address(name).is_loopback
    except ValueError:
        return False


def describe_access(document: dict[str, Any], refusals: Iterable[tuple[str, str]]) -> None:
    """Add to an OpenAPI document which scope each operation needs, and how it refuses.

    Parameters
    ----------
    document : dict
        Changed in place.
    refusals : iterable of (str, str)
        Status and description of what every operation that needs a key may answer besides.
    """
    schemes = document.setdefault("components", {}).setdefault("securitySchemes", {})
    schemes["key"] = {"type": "http", "scheme": "bearer"}
    refused = list(refusals)
    for path, operations in document["paths"].items():
        if is_public(path):
            continue
        for method, operation in operations.items():
            scope = scope_needed(method.upper(), path)
            # Not needed as long as the ledger has no keys, so no key is an alternative.
            operation["security"] = [{"key": []}, {}]
            operation["x-scope"] = scope
            for status, description in refused:
                content: dict[str, Any] = {"application/problem+json": {}}
                told = {"description": description, "content": content}
                operation["responses"].setdefault(status, told)

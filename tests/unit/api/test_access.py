"""Who may ask what, without a service."""

import hashlib
import re
from pathlib import Path

import pytest

from api.access import (
    Denial,
    admit,
    bearer_token,
    is_public,
    is_remote,
    path_of,
    scope_needed,
)
from api.app import create_app
from api.keyring import KeyringState
from api.settings import Settings
from ledger.keys import SCOPES, Key

NOW_MS = 1_800_000_000_000
TOKEN = "compactuary_0123456789ab_" + "s" * 43
DOCS = Path(__file__).parents[3] / "docs" / "access.md"


def _key(*scopes, **more):
    digest = hashlib.sha256(TOKEN.encode()).hexdigest()
    return Key("0123456789ab", "ci", digest, frozenset(scopes), NOW_MS - 1000, **more)


def _ring(*keys):
    return KeyringState({key.key_id: key for key in keys})


def _admit(ring, token=TOKEN, method="GET", path="/status", *, remote=False):
    return admit(ring, token, method, path, NOW_MS, remote=remote)


def test_a_key_with_the_scope_lets_in():
    for scope in ("read", "admin"):
        key = _key(scope)
        assert _admit(_ring(key)) is key


@pytest.mark.parametrize(
    ("ring", "token", "status", "why"),
    [
        (_ring(_key("read")), None, 401, "missing"),
        (_ring(_key("read")), "", 401, "unknown"),
        (_ring(_key("read")), "compactuary_0123456789ab_" + "t" * 43, 401, "unknown"),
        (_ring(_key("read")), TOKEN + "s", 401, "unknown"),
        (_ring(_key("read")), TOKEN[:-1], 401, "unknown"),
        (_ring(_key("read")), "compactuary_ffffffffffff_" + "s" * 43, 401, "unknown"),
        (_ring(_key("read")), "other_0123456789ab_" + "s" * 43, 401, "unknown"),
        (_ring(_key("read")), "\xe9\xff", 401, "unknown"),
        (_ring(_key("read", expires_ms=NOW_MS)), TOKEN, 401, "expired"),
        (_ring(_key("read", revoked_ms=NOW_MS - 1)), TOKEN, 401, "revoked"),
        (_ring(_key("decide", "write")), TOKEN, 403, "scope"),
        (KeyringState(None), TOKEN, 503, "unreadable"),
        (KeyringState(None), None, 503, "unreadable"),
    ],
)
def test_other_keys_do_not(ring, token, status, why):
    denial = _admit(ring, token)
    assert isinstance(denial, Denial)
    assert (denial.status, denial.denied) == (status, why)
    assert denial.remedy
    assert TOKEN not in repr(denial)


def test_a_key_holds_until_the_moment_it_expires():
    key = _key("read", expires_ms=NOW_MS + 1)
    assert _admit(_ring(key)) is key


def test_the_denial_for_a_scope_names_it():
    denial = _admit(_ring(_key("decide")), method="POST", path="/turns")
    assert "'write'" in denial.problem
    assert 'scope="write"' in denial.challenge


def test_without_any_key_only_this_machine_is_answered():
    assert _admit(_ring(), None) is None
    assert _admit(_ring(), "whatever") is None
    assert _admit(_ring(), None, remote=True).denied == "remote"


def test_keys_that_open_nothing_still_lock():
    gone = _ring(_key("admin", revoked_ms=1), _key("admin", expires_ms=1))
    assert gone.required
    assert _admit(gone, None).denied == "missing"


@pytest.mark.parametrize(
    ("header", "token"),
    [
        (None, None),
        (b"", None),
        (b"Bearer", None),
        (b"Bearer  ", None),
        (b"Basic dXNlcjpwYXNz", None),
        (b"Bearer abc", "abc"),
        (b"bearer  abc ", "abc"),
        (b"BEARER \xff", "\xff"),
    ],
)
def test_the_token_of_a_header(header, token):
    assert bearer_token(header) == token


@pytest.mark.parametrize(
    ("server", "host", "remote"),
    [
        (("127.0.0.1", 8338), b"127.0.0.1:8338", False),
        (("127.8.0.9", 8338), b"localhost:8338", False),
        (("127.0.0.1", 8338), b"LOCALHOST", False),
        (("127.0.0.1", 8338), b"agents.localhost:8338", False),
        (("::1", 8338), b"[::1]:8338", False),
        (("::1", 8338), None, False),
        (("10.0.0.7", 8338), b"10.0.0.7:8338", True),
        (("10.0.0.7", 8338), b"localhost:8338", True),
        (("192.168.1.2", 80), None, True),
        (("fe80::1%eth0", 80), None, True),
        (("0.0.0.0", 80), None, True),
        # A name that an attacker has resolve to 127.0.0.1.
        (("127.0.0.1", 8338), b"evil.example:8338", True),
        (("127.0.0.1", 8338), b"localhost.evil.example", True),
        (("127.0.0.1", 8338), b"127.0.0.1.evil.example", True),
        (("127.0.0.1", 8338), b"10.0.0.7", True),
        (("127.0.0.1", 8338), b"", True),
        (("/run/compactuary.sock", None), b"localhost", False),
        (("/run/compactuary.sock", None), b"compactuary.example.org", True),
        (None, None, False),
    ],
)
def test_what_another_machine_can_reach(server, host, remote):
    assert is_remote({"server": server}, host) is remote


def test_the_path_below_a_proxy():
    assert path_of({"path": "/x/status", "root_path": "/x"}) == "/status"
    assert path_of({"path": "/status", "root_path": "/x"}) == "/status"
    assert path_of({"path": "/xstatus", "root_path": "/x"}) == "/xstatus"
    assert path_of({"path": "/status"}) == "/status"


def test_what_nobody_thought_of_needs_everything():
    for method in ("DELETE", "PATCH", "TRACE", "MADE-UP"):
        assert scope_needed(method, "/whatever") == "admin"
    assert scope_needed("POST", "/made-up") == "write"
    # Neither another spelling nor what comes behind it makes a path public or a decision.
    for path in ("/healthz/", "/healthz/x", "//healthz", "/HEALTHZ", "/healthz?x"):
        assert not is_public(path)
    for path in ("/should-compact/", "/thresholds", "/should-compacts"):
        assert scope_needed("GET", path) == "read"


def test_the_documented_scopes_are_those_of_the_code():
    """The table in docs/access.md has every operation, with the scope that it needs."""
    document = create_app(Settings()).openapi()
    operations = {
        (method.upper(), path): operation
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    }
    expected = {
        place: None if is_public(place[1]) else scope_needed(*place) for place in operations
    }
    expected |= {("GET", path): "read" for path in ("/docs", "/openapi.json")}
    told = {}
    for line in DOCS.read_text("utf-8").splitlines():
        scope, *places = line.strip("| ").split(" | ")
        if not line.startswith("| ") or len(places) != 1:
            continue
        for method, path in re.findall(r"`(GET|PUT|POST) (/[^`]*)`", places[0]):
            told[method, path] = None if scope == "none" else scope.strip("`")
    assert told == expected
    assert set(told.values()) - {None} <= set(SCOPES)
    for place, operation in operations.items():
        assert operation.get("x-scope") == expected[place]
        refused = {"401", "403", "413", "429"} <= operation["responses"].keys()
        assert refused is not is_public(place[1])

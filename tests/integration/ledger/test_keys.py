"""Keys in the ledger: digests only, names unique while in force."""

import hashlib

import pytest
from sqlalchemy import select, text

from compactuary.errors import InputError
from ledger.database import reading, writing
from ledger.keys import create_key, is_of, key_id_of, read_keys, revoke_key
from ledger.schema import keys

NOW_MS = 1_800_000_000_000


def _create(ledger, name="ci", scopes=("read",), **more):
    with writing(ledger) as connection:
        return create_key(connection, name, scopes, now_ms=NOW_MS, **more)


def _all(ledger):
    with reading(ledger) as connection:
        return read_keys(connection)


def test_the_ledger_holds_the_hash_alone(ledger):
    key, token = _create(ledger, scopes=("write", "decide"), expires_ms=NOW_MS + 1)
    with reading(ledger) as connection:
        (row,) = connection.execute(select(keys)).mappings()
    assert dict(row) == {
        "key_id": token.split("_")[1],
        "name": "ci",
        "digest": hashlib.sha256(token.encode()).hexdigest(),
        "scopes": "decide write",
        "created_ms": NOW_MS,
        "expires_ms": NOW_MS + 1,
        "revoked_ms": None,
    }
    secret = token.split("_", 2)[2]
    assert len(secret) == 43  # 256 bits in base64url
    assert not any(secret in str(value) for value in row.values())
    assert _all(ledger) == [key]
    assert key_id_of(token) == key.key_id
    assert is_of(token, key)
    assert not is_of(token[:-1] + ("x" if token[-1] != "x" else "y"), key)


def test_a_name_is_taken_until_its_key_is_revoked(ledger):
    first, _ = _create(ledger)
    with pytest.raises(InputError, match="there already"):
        _create(ledger)
    with writing(ledger) as connection:
        revoke_key(connection, "ci", now_ms=NOW_MS + 5)
    second, _ = _create(ledger, scopes=("admin",))
    states = {key.key_id: (key.state(NOW_MS + 9), key.revoked_ms) for key in _all(ledger)}
    assert states == {
        first.key_id: ("revoked", NOW_MS + 5),
        second.key_id: ("in force", None),
    }


def test_what_is_not_there_can_not_be_revoked(ledger):
    _create(ledger)
    with writing(ledger) as connection:
        revoke_key(connection, "ci", now_ms=NOW_MS)
    for name in ("ci", "nobody", "' OR 1=1 --"):
        with pytest.raises(InputError, match="no such key"), writing(ledger) as connection:
            revoke_key(connection, name, now_ms=NOW_MS)


@pytest.mark.parametrize(
    ("given", "where"),
    [
        ({"name": ""}, "name"),
        ({"name": "a\nb"}, "name"),
        ({"name": "a\0b"}, "name"),
        ({"name": "x" * 101}, "name"),
        ({"scopes": ()}, "scope"),
        ({"scopes": ("read", "all")}, "scope"),
        ({"expires_ms": NOW_MS}, "expires"),
    ],
)
def test_wrong_keys_are_refused_by_name(ledger, given, where):
    with pytest.raises(InputError) as refused:
        _create(ledger, **given)
    assert refused.value.where == where
    assert _all(ledger) == []


def test_any_printable_name_is_only_a_name(ledger):
    names = ["it's", "'; DROP TABLE keys; --", "emoji 🦊", "../../etc"]
    for name in names:
        _create(ledger, name)
    assert sorted(key.name for key in _all(ledger)) == sorted(names)


def test_a_database_without_tables_has_no_keys(empty_database):
    assert _all(empty_database) == []


def test_two_keys_never_share_a_name_though_a_check_was_missed(ledger):
    key, _ = _create(ledger)
    other = "INSERT INTO keys (key_id, name, digest, scopes, created_ms) VALUES ('x','ci','','',1)"
    with pytest.raises(Exception, match=r"refused|UNIQUE"), writing(ledger) as connection:
        connection.execute(text(other))
    assert _all(ledger) == [key]

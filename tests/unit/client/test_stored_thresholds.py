import os

import pytest

from compactuary.endpoint import Endpoint
from compactuary.errors import InputError
from compactuary.stored_thresholds import (
    Asked,
    cache_folder,
    file_of,
    held_from,
    load,
    store,
    touch,
)

ASKED = Asked("main", "m", (("ttl", "1h"), ("window_tokens", 200_000)))


@pytest.fixture
def held(document):
    return held_from(document, '"e"', "shadow", 1_700_000_000.0)


@pytest.fixture
def file(tmp_path, endpoint):
    return file_of(tmp_path, endpoint, ASKED)


def test_what_was_stored_is_loaded(file, held):
    store(file, ASKED, held)
    assert load(file, ASKED) == held
    touch(file, 1_700_000_100.0)
    assert load(file, ASKED) == held._replace(confirmed_at=1_700_000_100.0)


def test_no_file_is_no_thresholds(file):
    assert load(file, ASKED) is None


def test_every_service_key_and_question_has_a_file_of_its_own(tmp_path, endpoint):
    services = [endpoint, endpoint._replace(key="a"), Endpoint("http", "other", 80)]
    questions = [ASKED, Asked("main", "m"), Asked("main", "n"), Asked("other", "m")]
    files = {file_of(tmp_path, one, asked) for one in services for asked in questions}
    assert len(files) == 12
    assert not [file for file in files if "secret" in str(file)]


@pytest.mark.parametrize(
    "text", [b"", b"{", b"[]", b"null", b'{"format": 1}', b"\xff\xfe", b"[" * 100_000]
)
def test_a_corrupted_file_is_refused_and_named(file, held, text):
    store(file, ASKED, held)
    file.write_bytes(text)
    with pytest.raises(InputError, match="Delete the file"):
        load(file, ASKED)


@pytest.mark.parametrize("share", [0.1, 0.5, 0.99])
def test_half_a_file_is_refused(file, held, share):
    store(file, ASKED, held)
    whole = file.read_bytes()
    file.write_bytes(whole[: int(len(whole) * share)])
    with pytest.raises(InputError):
        load(file, ASKED)


def test_the_thresholds_of_another_question_are_refused(file, held):
    store(file, Asked("main", "m"), held)
    with pytest.raises(InputError, match="holds other thresholds"):
        load(file, ASKED)


def test_a_failed_write_leaves_the_old_file_and_nothing_else(file, held, monkeypatch):
    store(file, ASKED, held)

    def full(self, target):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pathlib.Path.replace", full)
    with pytest.raises(OSError, match="No space left"):
        store(file, ASKED, held._replace(etag='"new"'))
    assert load(file, ASKED) == held
    assert [*file.parent.iterdir()] == [file]


@pytest.mark.parametrize(
    ("platform", "variables", "folder"),
    [
        ("linux", {"XDG_CACHE_HOME": "/x"}, "/x/compactuary"),
        ("linux", {"HOME": "/home/a"}, "/home/a/.cache/compactuary"),
        ("darwin", {"HOME": "/Users/a"}, "/Users/a/Library/Caches/compactuary"),
        ("win32", {"LOCALAPPDATA": "/L"}, "/L/compactuary/Cache"),
    ],
)
def test_the_platform_s_cache_folder(monkeypatch, platform, variables, folder):
    for name in ("XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("sys.platform", platform)
    assert os.fspath(cache_folder()) == folder

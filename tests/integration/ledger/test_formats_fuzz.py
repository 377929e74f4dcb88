"""Logs of every format, cut and damaged anywhere: read, or refused as a whole."""

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from compactuary.errors import SourceError
from ledger.importing import ImportOptions, import_logs
from tests.integration.ledger.formats_by_hand import FORMATS
from tests.integration.ledger.rows import everything, kept, recounted
from tests.integration.ledger.test_fuzz import DELETED, ODD, changed, places

SETTINGS = settings(
    max_examples=60,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
#: Characters that change what JSON means where one of them is put in the place of another.
DAMAGE = st.sampled_from([b'"', b"{", b"]", b"\n", b"0", b"\\", b"\0", b"\xff", b",", b"-", b"e9"])


def written(kind, value):
    if FORMATS[kind].by_lines:
        return "".join(json.dumps(line) + "\n" for line in value).encode()
    return json.dumps(value, indent=1).encode()


def check(engine, folder, kind, data):
    number = len(list(folder.iterdir()))
    path = folder / f"{number}-{FORMATS[kind].name}"
    path.write_bytes(data)
    before = everything(engine)
    (report,) = import_logs(engine, [path], ImportOptions(role_by_project=True))
    if report.error is not None:
        assert isinstance(report.error, SourceError)
        assert path.name in report.error.where
        assert report.error.remedy
        assert everything(engine) == before
    assert kept(engine) == recounted(engine)


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / "logs"
    path.mkdir()
    return path


@pytest.mark.parametrize("kind", FORMATS)
@SETTINGS
@given(data=st.data())
def test_odd_values(sqlite_ledger, folder, kind, data):
    value = FORMATS[kind].value()
    spots = list(places(value))
    for _ in range(data.draw(st.integers(1, 2))):
        first, *path = data.draw(st.sampled_from(spots))
        odd = data.draw(ODD | st.just(DELETED))
        try:
            value = changed(value, (first, *path), odd)
        except (LookupError, TypeError):
            continue  # the first damage took the place away
    check(sqlite_ledger, folder, kind, written(kind, value))


@pytest.mark.parametrize("kind", FORMATS)
@SETTINGS
@given(data=st.data())
def test_cuts_and_bytes(sqlite_ledger, folder, kind, data):
    whole = written(kind, FORMATS[kind].value())
    whole = whole[: data.draw(st.integers(0, len(whole)))] if data.draw(st.booleans()) else whole
    for _ in range(data.draw(st.integers(0, 3))):
        place = data.draw(st.integers(0, max(0, len(whole) - 1)))
        whole = whole[:place] + data.draw(DAMAGE) + whole[place + 1 :]
    check(sqlite_ledger, folder, kind, whole)

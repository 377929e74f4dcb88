"""Times in and out."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compactuary.errors import InputError
from ledger.clock import iso, milliseconds


@pytest.mark.parametrize(
    ("stamp", "expected"),
    [
        ("1970-01-01T00:00:00Z", 0),
        ("2026-07-01T12:00:00.000Z", 1_782_907_200_000),
        ("2026-07-01T12:00:00.999999Z", 1_782_907_200_999),
        ("2026-07-01T14:00:00+02:00", 1_782_907_200_000),
        ("2026-07-01T12:00:00", 1_782_907_200_000),
        ("2026-07-01 12:00:00", 1_782_907_200_000),
        ("2026-07-01", 1_782_864_000_000),
        ("1969-12-31T23:59:59.999Z", -1),
        (None, None),
        ("", None),
    ],
)
def test_a_stamp_is_whole_milliseconds_utc(stamp, expected):
    assert milliseconds(stamp) == expected


@pytest.mark.parametrize(
    "stamp",
    [
        "yesterday",
        "2026-13-01",
        1_782_907_200,
        ["2026-07-01"],
        True,
        "0001-01-01T00:00:00+14:00",
        "9999-12-31T23:59:59-14:00",
    ],
)
def test_no_stamp_is_refused(stamp):
    with pytest.raises(InputError) as caught:
        milliseconds(stamp)
    assert caught.value.where == "timestamp"
    assert caught.value.value == stamp


def test_iso_writes_what_logs_write():
    assert iso(1_782_907_200_007) == "2026-07-01T12:00:00.007Z"
    assert iso(None) is None


@given(st.integers(-62_135_596_800_000, 253_402_300_799_999))
def test_iso_comes_back_as_it_went(at_ms):
    assert milliseconds(iso(at_ms)) == at_ms

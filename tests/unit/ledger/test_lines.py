"""Whole lines of files that grow, are torn, or are no text at all."""

import gzip

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compactuary.errors import SourceError
from ledger.readers.lines import fingerprint, whole_lines

BOM = b"\xef\xbb\xbf"


@pytest.fixture
def path(tmp_path):
    return tmp_path / "log.jsonl"


def lines_of(path, offset=0):
    return list(whole_lines(path, offset))


def test_lines_come_with_the_offset_behind_them(path):
    path.write_bytes(b'{"a":1}\n\n{"b":2}\r\n')
    assert lines_of(path) == [(b'{"a":1}\n', 8), (b"\n", 9), (b'{"b":2}\r\n', 18)]
    assert lines_of(path, 9) == [(b'{"b":2}\r\n', 18)]
    assert lines_of(path, 18) == []


def test_a_torn_last_line_waits_for_its_rest(path):
    path.write_bytes(b'{"a":1}\n{"b":')
    assert lines_of(path) == [(b'{"a":1}\n', 8)]
    path.write_bytes(b'{"a":1}\n{"b":2}\n')
    assert lines_of(path, 8) == [(b'{"b":2}\n', 16)]


@pytest.mark.parametrize("ending", [b"\n", b"\r\n"])
def test_a_last_line_without_its_ending_counts_once(path, ending):
    path.write_bytes(b'{"a":1}')
    assert lines_of(path) == [(b'{"a":1}', 7)]
    path.write_bytes(b'{"a":1}' + ending)
    assert lines_of(path, 7) == []
    path.write_bytes(b'{"a":1}' + ending + b'{"b":2}\n')
    assert [line for line, _ in lines_of(path, 7)] == [b'{"b":2}\n']


def test_a_line_that_went_on_is_not_swallowed(path):
    path.write_bytes(b"12")
    (_, offset), *_ = lines_of(path)
    path.write_bytes(b"12 garbage\n")
    assert lines_of(path, offset) == [(b" garbage\n", 11)]


def test_a_byte_order_mark_is_dropped(path):
    path.write_bytes(BOM + b'{"a":1}\n')
    assert lines_of(path) == [(b'{"a":1}\n', 11)]
    path.write_bytes(BOM + b'{"a":1}')
    assert lines_of(path) == [(b'{"a":1}', 10)]


def test_line_separators_inside_strings_end_no_line(path):
    line = '{"a":"\u2028\u0085\x0c"}\n'.encode()
    path.write_bytes(line)
    assert lines_of(path) == [(line, len(line))]


def test_a_line_of_many_megabytes_is_one_line(path):
    line = b'{"a":"' + b"x" * 5_000_000 + b'"}\n'
    path.write_bytes(line + b"{}\n")
    assert [len(found) for found, _ in whole_lines(path)] == [5_000_009, 3]


@given(
    st.lists(st.sampled_from([b"{}\n", b'{"a": [1, 2]}\r\n', b"\n", b'{"b":"\xc3\xa9"}\n'])),
    st.data(),
)
def test_a_file_read_as_it_grows_gives_the_lines_of_the_whole(tmp_path_factory, lines, data):
    path = tmp_path_factory.mktemp("grown") / "log.jsonl"
    whole = b"".join(lines)
    cuts = data.draw(st.lists(st.integers(0, len(whole)), max_size=5))
    offset, found = 0, []
    for cut in [*sorted(cuts), len(whole)]:
        path.write_bytes(whole[:cut])
        for line, behind in whole_lines(path, offset):
            offset = behind
            found.append(line)
    assert [line.strip() for line in found if line.strip()] == [
        line.strip() for line in lines if line.strip()
    ]


def test_gzip_is_read_in_place_and_from_an_offset(tmp_path):
    path = tmp_path / "log.jsonl.gz"
    path.write_bytes(gzip.compress(b'{"a":1}\n') + gzip.compress(b'{"b":2}\n'))
    assert lines_of(path) == [(b'{"a":1}\n', 8), (b'{"b":2}\n', 16)]
    assert lines_of(path, 8) == [(b'{"b":2}\n', 16)]


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data[:-6],
        lambda data: data[: len(data) // 2],
        lambda data: data[:40] + b"\xff" * 20 + data[60:],
        lambda data: b"not a gzip at all",
        lambda data: data + b"trailing garbage",
    ],
)
def test_a_damaged_gzip_is_named(tmp_path, damage):
    path = tmp_path / "log.jsonl.gz"
    text = b"".join(b'{"a":%d}\n' % (n * n * 7919) for n in range(2000))
    path.write_bytes(damage(gzip.compress(text)))
    with pytest.raises(SourceError) as caught:
        lines_of(path)
    assert caught.value.where == str(path)
    assert caught.value.remedy


def test_a_missing_file_is_named(path):
    with pytest.raises(SourceError) as caught:
        lines_of(path)
    assert caught.value.where == str(path)


def test_the_fingerprint_is_of_the_beginning(path):
    path.write_bytes(b"x" * 1024 + b"first")
    before = fingerprint(path)
    path.write_bytes(b"x" * 1024 + b"then more")
    assert fingerprint(path) == before
    path.write_bytes(b"y" + b"x" * 1023)
    assert fingerprint(path) != before
    assert fingerprint(path, 10).startswith("10:")

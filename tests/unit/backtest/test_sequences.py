import csv
import gzip

import numpy as np
import pytest

from backtest.sequences import sequences_of
from backtest.sources import sequences_from_ledger, sequences_from_tables
from compactuary.errors import InputError
from ledger.database import reading, writing
from ledger.schema import requests, turns
from tests.conftest import SHARED, needs_shared_data
from tests.unit.backtest.sequences_by_hand import turn


def test_turns_of_a_session_share_a_context_and_sub_agents_have_their_own():
    sequences = sequences_of(
        [
            turn([9e3, 12e3], [500, 530], ended=False, asked_for_tools=True, in_flight=True),
            turn([5e3], [110], unit="agent", main=False),
            turn([5e3, 7e3, 8e3], [100, 120, 150]),
        ]
    )
    assert sequences.units == 2
    assert sequences.main.tolist() == [False, True]
    assert sequences.begins.tolist() == [0, 1, 6]
    assert set(sequences.session) == {"p/s"}
    assert sequences.first_context_tokens.tolist() == [5e3, 5e3]
    assert sequences.growth_tokens.tolist() == [0, 0, 2e3, 1e3, 1e3, 3e3]
    assert sequences.gap_seconds.tolist() == [0, 0, 20, 30, 350, 30]
    assert sequences.age.tolist() == [0, 0, 1, 2, 0, 1]
    assert sequences.place.tolist() == [0, 0, 1, 2, 3, 4]
    assert np.flatnonzero(sequences.opens_turn).tolist() == [4]
    assert np.flatnonzero(sequences.last).tolist() == [0, 3, 5]
    assert np.flatnonzero(sequences.ended).tolist() == [0, 3]
    assert np.flatnonzero(sequences.asked_for_tools).tolist() == [5]
    # Nobody waits where the log stops in mid-turn.
    assert np.flatnonzero(sequences.waits).tolist() == [0, 3]


def test_a_cut_turn_that_another_follows_was_waited_behind():
    sequences = sequences_of(
        [turn([5e3], [0], ended=False, in_flight=True), turn([6e3], [60], ended=False)]
    )
    assert sequences.waits.tolist() == [True, True]
    assert not sequences.ended.any()


def test_where_the_agent_compacted_growth_is_the_usual():
    sequences = sequences_of([turn([10e3, 11e3, 14e3, 4e3, 6e3])])
    # 1k, 3k and 2k were seen; the fall counts as their median.
    assert sequences.growth_tokens.tolist() == [0, 1e3, 3e3, 2e3, 2e3]


def test_requests_without_context_or_time_leave_no_hole():
    sequences = sequences_of([turn([0, 5e3, 0, 6e3], [0, 10, 20, 40]), turn([7e3], [None])])
    assert sequences.context_tokens.tolist() == [5e3, 6e3, 7e3]
    assert sequences.gap_seconds.tolist() == [0, 30, 0]
    assert sequences.age.tolist() == [0, 1, 0]
    backwards = sequences_of([turn([5e3, 6e3, 7e3], [100, 40, 130])])
    assert backwards.gap_seconds.tolist() == [0, 0, 30]


def test_a_selection_is_what_those_units_alone_would_be():
    told = [turn([5e3, 8e3], [0, 9], session="a"), turn([4e3], [3], session="b")]
    both, one = sequences_of(told), sequences_of(told[:1])
    chosen = both.chosen(np.array([True, False]))
    for name in one.__slots__:
        assert np.array_equal(getattr(chosen, name), getattr(one, name)), name


def test_nothing_to_replay_is_an_error():
    with pytest.raises(InputError, match="no turn has a request with its context"):
        sequences_of([turn([0, 0])])


def write(path, rows):
    with gzip.open(path, "wt", encoding="utf-8", newline="") as lines:
        table = csv.DictWriter(lines, rows[0])
        table.writeheader()
        table.writerows(rows)


def test_tables_are_read(tmp_path):
    facts = {"source": "o+r", "session": "s", "n_tool_calls": 3, "end_reason": "interrupted"}
    write(
        tmp_path / "turns.csv.gz",
        [
            {**facts, "role": "main", "turn_id": "0", "ended": "False"},
            {**facts, "role": "Explore", "turn_id": "x", "ended": "True"},
            {**facts, "role": "main", "turn_id": "no requests", "ended": "True"},
        ],
    )
    usage = {"input_tokens": 10, "cache_read": 4000, "cache_write": 300, "tool_calls_before": 2.0}
    at = "2026-02-11T20:36:47.500Z"
    own = {"source": "o+r", "session": "s"}
    write(
        tmp_path / "calls.csv.gz",
        [
            {**own, "turn_id": "x", "call_index": 0, "ts": "", **usage},
            {**own, "turn_id": "0", "call_index": 1, "ts": at.replace("47.", "57."), **usage},
            {**own, "turn_id": "0", "call_index": 0, "ts": at, **usage},
        ],
    )
    sequences = sequences_from_tables(tmp_path)
    assert sequences.main.tolist() == [True, False]
    assert sequences.project == ("o+r", "o+r")
    assert sequences.context_tokens.tolist() == [4310, 4310, 4310]
    assert sequences.gap_seconds.tolist() == [0, 10, 0]
    # Two calls before the last request, three in the turn: its answer asked for one.
    assert sequences.asked_for_tools.tolist() == [False, True, True]


def test_a_missing_table_is_named(tmp_path):
    with pytest.raises(InputError, match=r"calls\.csv\.gz"):
        sequences_from_tables(tmp_path)


def test_a_value_that_is_no_number_names_its_turn(tmp_path):
    write(
        tmp_path / "turns.csv.gz",
        [
            {
                "source": "o",
                "session": "s",
                "turn_id": "7",
                "role": "main",
                "n_tool_calls": 1,
                "ended": "True",
                "end_reason": "",
            }
        ],
    )
    write(
        tmp_path / "calls.csv.gz",
        [
            {
                "source": "o",
                "session": "s",
                "turn_id": "7",
                "call_index": 0,
                "ts": "noon",
                "input_tokens": 1,
                "cache_read": 1,
                "cache_write": 1,
                "tool_calls_before": 0,
            }
        ],
    )
    with pytest.raises(InputError, match="o s 7"):
        sequences_from_tables(tmp_path)


def test_the_ledger_tells_the_same(sqlite_ledger):
    turn_facts = {"session_id": "s", "thread_id": "s", "source": "logs", "started_ms": 1_000}
    request_facts = {"session_id": "s", "cache_read": 4_000, "cache_write_1h": 300}
    with writing(sqlite_ledger) as connection:
        connection.execute(
            turns.insert(),
            [
                {**turn_facts, "turn_id": "t", "role": "web/main", "status": "open"},
                {**turn_facts, "turn_id": "u", "role": "review", "status": "ended"},
            ],
        )
        connection.execute(
            requests.insert(),
            [
                {**request_facts, "request_id": "1", "turn_id": "t", "position": 1, "at_ms": 9_000},
                {**request_facts, "request_id": "0", "turn_id": "t", "position": 0, "at_ms": 2_000},
                {**request_facts, "request_id": "2", "turn_id": "u", "position": 0, "at_ms": None},
            ],
        )
        summary = {"request_id": "3", "turn_id": "t", "position": 2, "kind": "compaction"}
        connection.execute(requests.insert().values(**request_facts, **summary))
    with reading(sqlite_ledger) as connection:
        sequences = sequences_from_ledger(connection)
    assert sequences.main.tolist() == [True, False]
    assert sequences.context_tokens.tolist() == [4_300, 4_300, 4_300]
    assert sequences.gap_seconds.tolist() == [0, 7, 0]
    assert sequences.ended.tolist() == [False, False, True]
    assert sequences.waits.tolist() == [False, False, True]


@needs_shared_data
def test_the_public_logs_have_as_many_as_the_reference_says():
    sequences = sequences_from_tables(SHARED / "data")
    assert (sequences.units, len(set(sequences.session)), sequences.requests) == (628, 463, 29_553)

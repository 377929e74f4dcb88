"""Intervals by session: the same estimates, and a variance that a jackknife would give."""

import math
from statistics import fmean

import pytest

from compactuary.errors import InputError
from compactuary.role_lives import role_lives
from compactuary.session_lives import clustered
from ledger.database import reading, writing
from ledger.events import TurnReached, TurnStarted
from ledger.recording import record

#: Three turns in each of nine sessions; those of one session are all alike.
SESSIONS = {f"s{number}": [number] * 3 for number in range(1, 10)}


@pytest.fixture
def filled(sqlite_ledger):
    events = []
    for session, lives in SESSIONS.items():
        for place, calls in enumerate(lives):
            turn_id = f"{session}-{place}"
            events.append(TurnStarted(turn_id, session, session, "test", "main"))
            told = TurnReached(turn_id, session, "ended", None, None, calls, calls + 1)
            events.append(told)
    with writing(sqlite_ledger) as connection:
        record(connection, events)
    return sqlite_ledger


@pytest.mark.parametrize("unit", ["tool_calls", "requests"])
def test_alike_turns_count_as_one(filled, unit):
    with reading(filled) as connection:
        raw = role_lives(connection, unit=unit, break_even={})
        by_session = clustered(connection, raw, unit)
    one, other = raw.roles[0].life, by_session.roles[0].life
    more = 0 if unit == "tool_calls" else 1
    means = [fmean(lives) + more for lives in SESSIONS.values()]
    assert other.mean[0] == one.mean[0] == pytest.approx(fmean(means))
    # The mean of nine independent sessions: the variance between them, over nine.
    between = fmean((mean - fmean(means)) ** 2 for mean in means)
    assert other.variance[0] == pytest.approx(between / 9)
    assert one.variance[0] == pytest.approx(between / 27)
    # Student's t with 8 degrees of freedom, .95 quantile 1.8595.
    width = 1.859548 * math.sqrt(between / 9 * 9 / 8) / other.mean[0]
    assert other.upper[0] == pytest.approx(other.mean[0] * math.exp(width), rel=1e-4)


def test_a_decayed_table_knows_no_sessions(filled):
    with reading(filled) as connection:
        decayed = role_lives(connection, break_even={}, half_life_turns=200)
        with pytest.raises(InputError, match="--by-session"):
            clustered(connection, decayed, "tool_calls", 200)

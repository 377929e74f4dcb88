import numpy as np
import pytest

from backtest.candidates import CANDIDATES, Fitted
from backtest.known import growth_so_far, known_before, turns_alone
from backtest.learning import learned
from backtest.observed import learned_aftermath
from backtest.prequential import blocks, prequential
from backtest.scenario import Scenario
from backtest.sequences import sequences_of
from compactuary.errors import InputError
from tests.unit.backtest.sequences_by_hand import turn

DAY = 86_400.0
PRICES = Scenario(0.1)
RULES = ("three-thresholds", "break-even session", "renewal by project", "idle by session")


def invented(generator, sessions=24):
    """Give turns of sessions that overlap in time, some of which compact."""
    told = []
    for number in range(sessions):
        at, context = 1e9 + number * 5_000.0, 18e3
        for _ in range(int(generator.integers(1, 5))):
            contexts, times = [], []
            for _ in range(int(generator.geometric(0.15))):
                at += 20.0
                context += float(generator.exponential(9e3))
                context = 50e3 if context > 140e3 else context
                contexts.append(context)
                times.append(at)
            at += float(generator.choice([40.0, 2_000.0, 9_000.0]))
            told.append(turn(contexts, times, session=f"s{number:02}", project=f"p{number % 2}"))
    return told


def changed(one, generator):
    """Return a turn that begins as it did and then is another one."""
    at = one.times_seconds[0]
    many = int(generator.integers(1, 30))
    contexts = generator.uniform(10e3, 160e3, many)
    times = at + np.sort(generator.uniform(0, 4_000.0, many))
    times[0] = at
    return turn(contexts, times, session=one.session, project=one.project, ended=bool(many % 2))


def decisions(sequences, units, known):
    """Return the thresholds of some rules in the units that a fit decides."""
    left = learned_aftermath(known, np.ones(known.units, dtype=np.bool_), own=False)
    fitted = Fitted(known, left, learned(known, left, PRICES.ttl_seconds), PRICES)
    scored = sequences.chosen(units)
    plans = [CANDIDATES[name](fitted, scored) for name in RULES]
    return [(plan.before_request, plan.in_pause, plan.after_last) for plan in plans]


@pytest.mark.parametrize("seed", range(6))
def test_a_turn_that_ends_after_a_decision_never_changes_it(seed):
    generator = np.random.default_rng(seed)
    turns = invented(generator)
    sequences = growth_so_far(sequences_of(turns))
    for block in blocks(sequences):
        names = {sequences.session[unit] for unit in np.flatnonzero(block.units)}
        # Everything that ends later, but for the sessions decided, is another turn.
        others = [
            one
            if one.times_seconds[-1] < block.at_seconds or f"{one.project}/{one.session}" in names
            else changed(one, generator)
            for one in turns
        ]
        other = growth_so_far(sequences_of(others))
        (same,) = [one for one in blocks(other) if one.at_seconds == block.at_seconds]
        assert {other.session[unit] for unit in np.flatnonzero(same.units)} == names
        known, known_other = (known_before(one, block.at_seconds) for one in (sequences, other))
        mine = decisions(sequences, block.units, known)
        for before, after in zip(mine, decisions(other, same.units, known_other), strict=True):
            for column, again in zip(before, after, strict=True):
                assert np.array_equal(column, again)


@pytest.mark.parametrize("seed", range(6))
def test_later_turns_of_a_session_never_change_its_earlier_contexts(seed):
    generator = np.random.default_rng(seed)
    turns = invented(generator, sessions=6)
    whole = growth_so_far(sequences_of(turns))
    for unit in range(whole.units):
        own = [one for one in turns if f"{one.project}/{one.session}" == whole.session[unit]]
        part = growth_so_far(sequences_of(own[:1]))
        begin = int(whole.begins[unit])
        assert np.array_equal(
            whole.growth_tokens[begin : begin + part.requests], part.growth_tokens
        )


def test_rules_are_fitted_when_ten_and_twenty_sessions_have_begun():
    turns = [
        turn([20e3, 21e3], [1e9 + n * 1e4, 1e9 + n * 1e4 + 30], session=f"s{n:02}")
        for n in range(25)
    ]
    sequences = sequences_of(turns)
    found = blocks(sequences)
    assert [block.at_seconds for block in found] == [1e9 + 10e4, 1e9 + 20e4]
    assert [int(block.units.sum()) for block in found] == [10, 5]
    known = [one.known for one in prequential(sequences)]
    assert [one.units for one in known] == [10, 20]


def test_what_is_known_is_what_had_ended():
    at = 1e9
    turns = [
        turn([10e3, 20e3], [at, at + 10], session="a"),
        turn([30e3, 40e3], [at + 3 * DAY, at + 3 * DAY + 10], session="a"),
        turn([11e3], [at + 2 * DAY], session="b"),
        turn([12e3, 13e3], [at + 2 * DAY, at + 9 * DAY], session="c"),
    ]
    sequences = sequences_of(turns)
    known = known_before(sequences, at + 2 * DAY + 60)
    assert known is not None
    assert known.session == ("p/a", "p/b")
    assert known.context_tokens.tolist() == [10e3, 20e3, 11e3]
    # a has waited for two days, which is over; b may go on any minute.
    assert known.waits.tolist() == [False, True, False]
    assert known_before(sequences, at) is None
    later = known_before(sequences, at + 4 * DAY)
    assert later.context_tokens.tolist() == [10e3, 20e3, 30e3, 40e3, 11e3]


def test_a_turn_alone_begins_with_its_context():
    turns = [
        turn([10e3, 20e3], [1e9, 1e9 + 10]),
        turn([50e3, 51e3, 53e3], [1e9 + 500, 1e9 + 510, 1e9 + 520]),
    ]
    alone = turns_alone(sequences_of(turns))
    assert alone.units == 2
    assert alone.first_context_tokens.tolist() == [10e3, 50e3]
    assert alone.growth_tokens.tolist() == [0, 10e3, 0, 1e3, 2e3]
    assert alone.gap_seconds.tolist() == [0, 10, 0, 10, 10]
    assert not alone.opens_turn.any()


def test_growth_behind_a_compaction_is_that_of_what_went_before():
    turns = [turn([10e3, 11e3, 14e3, 20e3, 5e3, 50e3, 99e3])]
    assert growth_so_far(sequences_of(turns)).growth_tokens[4] == 3e3
    assert growth_so_far(sequences_of([turn([9e3, 5e3, 6e3])])).growth_tokens[1] == 0


def test_sessions_without_a_time_are_in_no_block():
    turns = [turn([20e3, 21e3], session=f"s{n:02}") for n in range(25)]
    sequences = sequences_of(turns)
    assert blocks(sequences) == []
    with pytest.raises(InputError, match="--split random"):
        next(prequential(sequences))

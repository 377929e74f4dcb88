import numpy as np
import pytest

from backtest.candidates import CANDIDATES, Fitted
from backtest.comparison import compared, paired_interval
from backtest.learning import learned
from backtest.occupancies import GRID_TOKENS, fixed_plans, train_three_thresholds
from backtest.plan import NEVER, Plan, stacked
from backtest.replay import replay
from backtest.scenario import Aftermath, Scenario, fixed_aftermath
from backtest.sequences import sequences_of
from backtest.trial import by_project, by_time, halves, run_trial
from compactuary.errors import InputError
from tests.unit.backtest.sequences_by_hand import turn

PRICES = Scenario(0.1)
FEW = {name: CANDIDATES[name] for name in ("never", "reorder", "renewal", "idle by session")}


def invented(seed, sessions=40):
    return sequences_of(invented_turns(seed, sessions))


def invented_turns(seed, sessions=40):
    """Give sessions of turns that end after every 12th request on average, and sub-agents."""
    generator = np.random.default_rng(seed)
    told = []
    for session in range(sessions):
        at, context = session * 1e5, 15e3
        for number in range(int(generator.geometric(0.25))):
            contexts, times = [], []
            for _ in range(int(generator.geometric(1 / 12))):
                at += 20.0
                context += float(generator.exponential(1_500))
                contexts.append(context)
                times.append(at)
            at += float(generator.choice([30.0, 2_000.0]))
            name = f"s{session:02}"
            told.append(turn(contexts, times, session=name, project=f"p{session % 3}"))
            if number % 2:
                agent = {"unit": f"agent {number}", "main": False, "project": f"p{session % 3}"}
                told.append(turn(contexts, times, session=name, **agent))
    return told


def test_a_split_never_parts_a_session():
    sequences = invented(1)
    sessions = np.array(sequences.session)
    splits = list(halves(sequences, (1, 2)))
    assert len(splits) == 4
    for split in splits:
        assert not set(sessions[split.fit]) & set(sessions[split.score])
        assert (split.fit ^ split.score).all()
    assert np.array_equal(splits[0].fit, splits[1].score)
    assert not np.array_equal(splits[0].fit, splits[2].fit)
    (time,) = by_time(sequences)
    begun = sequences.at_seconds[sequences.begins[:-1]]
    assert begun[time.fit].max() < begun[time.score].min()
    (project,) = by_project(sequences, "p1")
    assert {sequences.project[unit] for unit in np.flatnonzero(project.score)} == {"p1"}


@pytest.mark.parametrize("name", CANDIDATES)
def test_what_comes_later_never_moves_a_decision(name):
    known = sequences_of(invented_turns(2))
    left = fixed_aftermath(known)
    fitted = Fitted(known, left, learned(known, left, PRICES.ttl_seconds), PRICES)
    turns = invented_turns(3, sessions=12)
    # Only the first two turns of each session; before their requests nothing is different.
    begun = [one for one in turns if one.main and sessions_turns(turns, one) < 2]
    whole, part = sequences_of(turns), sequences_of(begun)
    plans = [CANDIDATES[name](fitted, sequences) for sequences in (whole, part)]
    here = rows_by_name(whole)
    rows = [here[key] for key in rows_by_name(part)]
    assert len(rows) == part.requests > 50
    assert np.array_equal(plans[0].before_request[rows], plans[1].before_request)
    assert np.array_equal(plans[0].in_pause[rows], plans[1].in_pause)


def sessions_turns(turns, one):
    return [turn for turn in turns if turn.main and turn.session == one.session].index(one)


def rows_by_name(sequences):
    places = zip(sequences.unit.tolist(), sequences.place.tolist(), strict=True)
    rows = [(sequences.session[unit], bool(sequences.main[unit]), place) for unit, place in places]
    return {key: row for row, key in enumerate(rows) if key[1]}


def test_nobody_beats_the_clairvoyant_and_never_is_the_baseline():
    sequences = invented(4, sessions=20)
    trial = run_trial(
        sequences,
        fixed_aftermath(sequences),
        PRICES,
        halves(sequences, (7,)),
        candidates=CANDIDATES,
    )
    assert trial.scored.all()
    assert (trial.cost >= trial.clairvoyant - 1e-6).all()
    assert np.allclose(trial.of("never"), trial.baseline)
    assert len(trial.best_tokens) == 2
    assert set(trial.best_tokens) <= set(GRID_TOKENS)
    rows = {row.rule: row for row in compared(trial, sequences.session)}
    assert set(rows) == {"best fixed threshold", *CANDIDATES}
    assert rows["never"].relative == pytest.approx(0.0)
    assert rows["best fixed threshold"].difference == 0.0
    for row in rows.values():
        assert row.share is not None
        assert row.share <= 1 + 1e-9
        assert row.interval[0] <= row.difference + 1e-9
        assert row.difference <= row.interval[1] + 1e-9


def test_no_split_is_an_error():
    sequences = invented(5, sessions=4)
    with pytest.raises(InputError, match="no split"):
        run_trial(sequences, fixed_aftermath(sequences), PRICES, iter([]), candidates=FEW)


def test_the_trained_three_are_the_best_of_all_on_their_own_sequences():
    sequences = invented(6, sessions=8)
    left = fixed_aftermath(sequences)
    found = train_three_thresholds(sequences, left, PRICES)
    main = sequences.main[sequences.unit]
    chosen = np.where(main, found.main, found.subagent)
    pause = np.where(sequences.opens_turn & main, found.turn_end, NEVER)
    waits = sequences.waits[sequences.begins[1:] - 1] & sequences.main
    after = np.where(waits, found.turn_end, NEVER)
    mine = replay(sequences, left, PRICES, Plan(chosen, pause, after)).cost.sum()
    for number in range(30):
        generator = np.random.default_rng(number)
        one, two = generator.choice(GRID_TOKENS, 2)
        end = generator.choice([*GRID_TOKENS, NEVER])
        other = Plan(
            np.where(main, one, two),
            np.where(sequences.opens_turn & main, end, NEVER),
            np.where(waits, end, NEVER),
        )
        assert replay(sequences, left, PRICES, other).cost.sum() >= mine - 1e-6


def test_intervals_draw_whole_sessions():
    # Two sessions alike leave no doubt; ten units of one session are no more than one.
    sure = paired_interval(np.array([1.0, 1.0]), np.array([10.0, 10.0]), ["a", "b"])
    assert sure == pytest.approx((0.1, 0.1))
    difference = np.array([*[1.0] * 10, *[-1.0] * 10])
    baseline = np.full(20, 10.0)
    together = paired_interval(difference, baseline, ["a"] * 10 + ["b"] * 10)
    assert together == pytest.approx((-0.1, 0.1))
    each = paired_interval(difference, baseline, [str(unit) for unit in range(20)])
    # Binomial(20, ½): 90% of the draws lie within 10 ± 4 of the mean, up to the grid.
    assert each == pytest.approx((-0.04, 0.04), abs=0.011)


def test_what_the_rules_believe_may_differ_from_the_truth():
    sequences = invented(9)
    truth = fixed_aftermath(sequences, 30e3)
    split = next(halves(sequences, (1,)))
    right = run_trial(sequences, truth, PRICES, iter([split]), candidates=FEW)
    wrong = run_trial(
        sequences,
        truth,
        PRICES,
        iter([split]),
        candidates=FEW,
        believed=lambda _: fixed_aftermath(sequences, 2e3),
    )
    assert wrong.of("renewal").sum() > right.of("renewal").sum()
    assert np.array_equal(wrong.of("never"), right.of("never"))


def test_one_plan_of_many_is_the_plan_alone():
    sequences = invented(10, sessions=6)
    left = Aftermath(*(np.full(sequences.units, size) for size in (9e3, 20e3, 0.0)))
    many = fixed_plans(sequences)
    bills = replay(sequences, left, PRICES, many).cost
    one = stacked([Plan(many.before_request[4], many.in_pause[4], many.after_last[4])])
    assert np.array_equal(replay(sequences, left, PRICES, one).cost[0], bills[4])

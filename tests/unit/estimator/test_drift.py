import json
import math
from dataclasses import replace

import numpy as np
import pytest

from compactuary.errors import InputError
from estimator.drift import (
    RATIOS,
    DriftState,
    alarm,
    cumulated_hazard,
    direction,
    evidence,
    log_statistic,
    restart,
    start,
    update,
)
from estimator.histogram import Histogram
from estimator.life_table import life_table

FLAT = DriftState(hazard=(0.0,), tail_hazard=0.1, threshold=100.0)


def geometric(mean, turns, seed=3):
    calls = np.random.default_rng(seed).geometric(1 / mean, turns)
    return life_table(Histogram.from_turns(calls, np.ones(turns, dtype=bool)))


def statistics(state):
    return [math.expm1(value) for value in state.log_evidence]


def test_first_two_steps_by_hand():
    # a turn that ended at call 10: H = 1; e = (ρ/ρ₀)·exp(−(ρ−ρ₀)) with ρ₀ = 1/1.15 below 1
    first = update(FLAT, 10, ended=True)
    e_half = 0.5 * 1.15 * math.exp(-(0.5 - 1 / 1.15))
    e_two = 2 / 1.15 * math.exp(-(2 - 1.15))
    assert statistics(first)[0] == pytest.approx(e_half)
    assert statistics(first)[3] == pytest.approx(e_two)
    # then one cut after 5 calls that were at risk: H = 0.5, δ = 0; R ← (1+R)·e
    second = update(first, 5, ended=False)
    assert statistics(second)[0] == pytest.approx((1 + e_half) * math.exp(-(0.5 - 1 / 1.15) * 0.5))
    assert statistics(second)[3] == pytest.approx((1 + e_two) * math.exp(-(2 - 1.15) * 0.5))
    mean = sum(statistics(second)) / 4
    assert math.exp(log_statistic(second.log_evidence)) == pytest.approx(mean)
    assert second.turns == 2


def test_reference_is_cumulated_by_age_and_goes_on_by_its_tail():
    table = geometric(8, 400)
    state = start(table, 1000)
    tail = table.tail_age
    by_hand = [-math.log(1 - hazard) for hazard in table.hazard[:tail]]
    assert state.hazard == pytest.approx([sum(by_hand[:age]) for age in range(tail + 1)])
    past = update(state, tail + 7, ended=False)
    expected = sum(by_hand) + 7 * -math.log(1 - 1 / table.mean[tail])
    assert statistics(past)[3] == pytest.approx(math.exp(-(2 - 1.15) * expected))


def test_only_calls_at_risk_count():
    seen = update(FLAT, 12, ended=True, entry=9)
    assert seen.log_evidence == pytest.approx(update(FLAT, 3, ended=True).log_evidence)


def test_a_turn_at_risk_for_no_call_says_nothing():
    assert update(FLAT, 0, ended=True) is FLAT
    assert update(FLAT, -1, ended=False) is FLAT
    assert update(FLAT, 4, ended=False, entry=4) is FLAT


@pytest.mark.parametrize("change", [1.0, 1.15])
@pytest.mark.parametrize("hazard", [0.01, 0.1, 0.26, 0.4, 0.7, 0.95, 1.0])
def test_evidence_is_an_e_value_for_every_hazard(hazard, change):
    # one call, without a change and with the change that is tolerated for ρ > 1
    cumulated, tail = cumulated_hazard([hazard, hazard])
    assert cumulated[1] == pytest.approx(tail)
    changed = min(hazard * change, 1.0)
    mean = changed * np.exp(evidence(tail, True)) + (1 - changed) * np.exp(evidence(tail, False))
    concerned = [ratio > 1 or change == 1.0 for ratio in RATIOS]
    assert (mean[concerned] <= 1 + 1e-12).all()


def test_the_usual_form_up_to_a_hazard_of_a_quarter():
    hazards = np.array([0.0, 0.05, 0.25])
    cumulated, tail = cumulated_hazard(hazards)
    assert np.diff(cumulated) == pytest.approx([0.0, -math.log(0.95)])
    assert tail == pytest.approx(-math.log(0.75))


def test_no_change_makes_no_evidence_on_average():
    draw = np.random.default_rng(5)
    calls = draw.geometric(0.1, 200_000)
    cut = draw.geometric(0.02, calls.size)
    exit_, ended = np.minimum(calls, cut - 1), calls < cut
    e = np.exp(evidence(exit_ * -math.log(0.9), ended))
    error = e.std(axis=0) / math.sqrt(calls.size)
    assert (e.mean(axis=0) <= 1 + 3 * error).all()


def test_a_hazard_of_one_is_handled():
    always_one = life_table(Histogram.from_turns([1] * 400, [True] * 400))
    state = start(always_one, 365)
    for _ in range(3650):
        state = update(state, 1, ended=True)
    assert not alarm(state)
    for _ in range(60):
        state = update(state, 3, ended=True)
    assert alarm(state)
    assert direction(state) == "longer"


@pytest.mark.parametrize(("mean", "way"), [(4, "shorter"), (24, "longer")])
def test_a_change_is_found_soon_and_its_direction_told(mean, way):
    state = start(geometric(10, 2000), 3650)
    for calls in np.random.default_rng(9).geometric(1 / mean, 200):
        state = update(state, int(calls), ended=True)
        if alarm(state):
            break
    assert alarm(state)
    assert state.turns < 100
    assert direction(state) == way


def test_no_overflow_and_no_end_of_evidence():
    state = FLAT
    for _ in range(3000):
        state = update(state, 1000, ended=False)
    assert all(math.isfinite(value) for value in state.log_evidence)
    # R grows by e = exp((ρ₀−ρ)·100) a turn for ρ = ½
    assert state.log_evidence[0] == pytest.approx(3000 * 100 * (1 / 1.15 - 0.5), rel=1e-6)
    assert alarm(state)


def test_a_fresh_state_has_no_alarm():
    assert log_statistic(FLAT.log_evidence) == -math.inf
    assert not alarm(FLAT)


def test_the_alarm_is_at_the_threshold():
    # every R = 99.99…, then 100.01
    below = replace(FLAT, log_evidence=(math.log(100.9999),) * 4)
    above = replace(FLAT, log_evidence=(math.log(101.0001),) * 4)
    assert not alarm(below)
    assert alarm(above)


def test_state_survives_json():
    state = update(start(geometric(8, 400), 700), 11, ended=True)
    assert DriftState.from_payload(json.loads(json.dumps(state.to_payload()))) == state


def test_restart_counts_the_alarm_and_takes_the_new_reference():
    state = update(start(geometric(8, 400), 700), 11, ended=True)
    again = restart(state, geometric(20, 300), 900)
    assert (again.alarms, again.turns, again.threshold) == (1, 0, 900.0)
    assert again.log_evidence == (0.0,) * 4
    assert again.hazard != state.hazard


def test_bad_input_is_refused():
    with pytest.raises(InputError, match="fewer than 300 turns"):
        start(geometric(8, 299), 700)
    for rate in (0.5, math.nan, math.inf):
        with pytest.raises(InputError, match="turns_per_year"):
            start(geometric(8, 300), rate)
    with pytest.raises(InputError, match="entry"):
        update(FLAT, 3, ended=True, entry=-1)
    with pytest.raises(InputError, match="not a stored drift state"):
        DriftState.from_payload({"hazard": [0.0]})

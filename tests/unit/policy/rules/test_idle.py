import pytest

from compactuary.errors import InputError
from policy.rules.idle import asked_share, idle, idles, resumed_after_expiry
from policy.rules.life import Life
from policy.rules.renewal import renewal
from policy.stopping import Problem, solve

LIFE = Life.of_hazards([0.1, 0.06, 0.05, *[1 / 30] * 20, 1 / 60])
OUTLIVES = {"resume_probability": 0.9, "cold_probability": 0.4, "ttl_seconds": 300.0}


def test_the_chance_of_being_resumed_too_late_by_hand(make_setting):
    setting = make_setting(pauses=((60.0, 0.7), (290.0, 0.45), (300.0, 0.4)), **OUTLIVES)
    # .9·.4 ÷ (.9·.7 + .1), and just before the expiry .36 ÷ (.36 + .1).
    assert resumed_after_expiry(setting, 60.0) == pytest.approx(0.36 / 0.73)
    assert resumed_after_expiry(setting) == pytest.approx(0.36 / 0.46)
    assert asked_share(setting, 0.0) == 1.0
    assert asked_share(setting, 295.0) == 0.45
    # Whoever is still away then may come back late even where pauses say otherwise.
    assert asked_share(setting, 9_999.0) == 0.4
    assert resumed_after_expiry(make_setting()) == 0.0
    assert resumed_after_expiry(make_setting(**(OUTLIVES | {"resume_probability": 1.0}))) == 1.0


def test_it_compacts_where_saving_times_probability_exceeds_the_cost(make_setting):
    setting = make_setting(**OUTLIVES)
    thresholds = idle(LIFE, setting)
    (at, threshold), (expired, none) = thresholds.at_idle
    assert (at, expired, none) == (285.0, 300.0, None)
    assert thresholds.ask_again_seconds == 285.0
    found = solve([Problem(LIFE, setting, 0.4)], tolerance=1e-3)[0]
    for context in (threshold - 500, threshold + 500):
        saving = found.value(found.cold, context) - found.cold[0]
        pays = saving * resumed_after_expiry(setting) > setting.summary_cost(context)
        assert pays == (context > threshold)


def test_asking_late_is_worth_something(make_setting):
    setting = make_setting(**OUTLIVES)
    without, late = solve([Problem(LIFE, setting), Problem(LIFE, setting, 0.4)], tolerance=1e-3)
    assert (late.turn_end <= without.turn_end + 0.01).all()
    assert late.warm[0] < without.warm[0] - 1_000
    # Asked at once, one knows no more than at the end of the turn.
    at_once = solve([Problem(LIFE, setting, 1.0)], tolerance=1e-3)[0]
    assert at_once.warm == pytest.approx(without.warm, rel=1e-6)
    assert at_once.at_idle == pytest.approx(without.at_turn_end, abs=2.0)


def test_the_end_of_the_turn_leaves_it_to_the_question_to_come(make_setting):
    setting = make_setting(**OUTLIVES)
    assert renewal(LIFE, setting).at_turn_end is not None
    assert idle(LIFE, setting).at_turn_end is None


def test_a_caller_may_ask_at_another_time(make_setting):
    setting = make_setting(pauses=((60.0, 0.7), (280.0, 0.42), (300.0, 0.4)), **OUTLIVES)
    early = idle(LIFE, setting, ask_seconds=60.0)
    assert early.at("idle", 0, 59.0) is None
    assert early.at("idle", 0, 60.0) > idle(LIFE, setting).at("idle", 0, 285.0)
    # After the expiry the cheap read is gone.
    assert idle(LIFE, setting, ask_seconds=300.0).at_idle == ()


@pytest.mark.parametrize(
    "changes",
    [{"ttl_seconds": None}, {"ttl_seconds": 0.0}, {"resume_probability": 0.0}],
)
def test_where_asking_is_no_use_it_is_renewal(make_setting, changes):
    setting = make_setting(**(OUTLIVES | changes))
    thresholds, other = idle(LIFE, setting), renewal(LIFE, setting)
    assert thresholds.at_call == other.at_call
    assert thresholds.at_turn_end == other.at_turn_end
    assert (thresholds.at_idle, thresholds.ask_again_seconds) == ((), None)


def test_a_cache_that_never_expires_is_never_asked_about(make_setting):
    thresholds = idle(LIFE, make_setting(**(OUTLIVES | {"cold_probability": 0.0})))
    assert thresholds.at("idle", 0, 290.0) is None
    assert thresholds.ask_again_seconds is None


@pytest.mark.parametrize("seconds", [-1.0, float("nan")])
def test_an_impossible_time_to_ask_is_refused(make_setting, seconds):
    with pytest.raises(InputError, match="ask_seconds"):
        idles([(LIFE, make_setting(**OUTLIVES))], ask_seconds=seconds)

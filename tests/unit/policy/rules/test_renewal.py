import pytest

from policy.rules.life import Life
from policy.rules.renewal import renewal, renewals
from policy.rules.reorder import cold_reorder_context, reorder_context

LIFE = Life.of_hazards([0.1, 0.06, 0.05, *[1 / 30] * 20, 1 / 60])


@pytest.mark.parametrize("m", [5.0, 20.0, 50.0, 230.0])
def test_a_memoryless_turn_is_the_reorder_rule(make_setting, m):
    # Two ways to the same optimum: a fixed point on a grid, and a closed form.
    setting = make_setting(window_tokens=500_000.0)
    thresholds = renewal(Life((m,), (1.0,)), setting)
    exact = reorder_context(m, setting)
    for threshold in thresholds.at_call:
        assert exact - 1_000 < threshold <= exact + 1
    assert thresholds.at_resume == pytest.approx(cold_reorder_context(m, setting), abs=300)
    assert thresholds.at_turn_end is None
    assert thresholds.rule == "renewal"
    assert thresholds.setting == setting


def test_before_a_pause_compacting_is_worth_less_context(make_setting):
    thresholds = renewal(LIFE, make_setting(resume_probability=0.93, cold_probability=0.4))
    assert thresholds.at_turn_end < min(at for at in thresholds.at_call if at is not None)
    # After the pause reading the context costs ten times as much.
    assert thresholds.at_resume > thresholds.at_turn_end


def test_the_sooner_caches_expire_the_sooner_the_end_of_a_turn_compacts(make_setting):
    found = [
        renewal(LIFE, make_setting(resume_probability=0.93, cold_probability=cold)).at_turn_end
        for cold in (0.1, 0.3, 0.6, 0.9)
    ]
    assert found == sorted(found, reverse=True)


def test_several_are_each_as_alone(make_setting):
    settings = [make_setting(read_weight=read, resume_probability=0.9) for read in (0.1, 0.05)]
    both = renewals([(LIFE, setting) for setting in settings])
    for setting, thresholds in zip(settings, both, strict=True):
        alone = renewal(LIFE, setting)
        assert thresholds.at_turn_end == pytest.approx(alone.at_turn_end, abs=2.0)
        assert thresholds.at_call == pytest.approx(alone.at_call, abs=2.0)

import numpy as np
import pytest

from compactuary.errors import InputError
from estimator.mean_residual_life import mean_residual_life, mean_variance


@pytest.mark.parametrize("table", ["ssa_period_male", "ssa_period_female"])
def test_published_period_life_tables(oracles, table):
    case = oracles[table]
    q = np.array(case["input"]["q"])
    mean = mean_residual_life(q[:-1], 1 / q[-1])
    for age, e in case["expected"]["e_x"].items():
        assert mean[int(age)] - 0.5 == pytest.approx(e, abs=case["tolerance"])


def test_recursion_from_a_published_tail(oracles):
    case = oracles["ssa_1970_open_interval"]
    mean = mean_residual_life(case["input"]["q_5_to_14"], case["input"]["m_15"])
    assert mean[:10] - 0.5 == pytest.approx(case["expected"]["e_5_to_14"], abs=case["tolerance"])
    assert mean[10] == 54.73


def test_temporary_expectation_of_the_textbook(oracles):
    case = oracles["finan_23_24"]
    lives = np.array(case["input"]["l_x_80_to_86"], dtype=float)
    q = 1 - lives[1:] / lives[:-1]
    assert mean_residual_life(q[:-1], 1.0)[0] - 1 == pytest.approx(case["expected"]["e_80"])
    # a tail of one call counts survivors to the third year once: p1 + p2 + p3, plus 1
    assert mean_residual_life(q[:3], 1.0)[0] - 1 == pytest.approx(case["expected"]["e_80_3"])


def test_dickson_hardy_waters(oracles):
    lives = (1 - np.arange(50, 106) / 105) ** 0.2
    q = 1 - lives[1:] / lives[:-1]
    case = oracles["amlcr_2_1"]
    mean = mean_residual_life(q[:-1], 1 / q[-1])
    assert mean[0] == pytest.approx(case["expected"]["m_50"], abs=case["tolerance"])


def test_geometric_life_has_one_mean_at_every_age(oracles):
    p, m = oracles["geometric"]["input"]["p"], oracles["geometric"]["expected"]["m"]
    assert mean_residual_life(np.full(200, p), m) == pytest.approx(np.full(201, m), rel=1e-12)


def test_no_hazards_leave_the_tail():
    assert mean_residual_life([], 7.0).tolist() == [7.0]


def test_variance_by_hand():
    # h1 = 1/4 of 8 at risk, tail m(1) = 2 with V(1) = 1/2:
    # V(0) = (3/4)²·1/2 + 2²·(3/16)/8 = 9/32 + 3/32
    variance = mean_variance(np.array([0.25]), np.array([8]), np.array([2.5, 2.0]), 0.5)
    assert variance == pytest.approx([12 / 32, 0.5], rel=1e-15)


@pytest.mark.parametrize("hazard", [[0.1, 1.5], [-0.1, 0.2], [float("nan")]])
def test_a_hazard_outside_0_and_1_is_refused(hazard):
    with pytest.raises(InputError, match=r"hazard\[\d\]: .*within 0 and 1"):
        mean_residual_life(hazard, 1.0)


@pytest.mark.parametrize("tail_mean", [-1.0, float("nan"), float("inf")])
def test_a_tail_without_a_mean_is_refused(tail_mean):
    with pytest.raises(InputError, match="tail_mean: "):
        mean_residual_life([0.1], tail_mean)

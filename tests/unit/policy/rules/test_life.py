import pytest

from compactuary.errors import InputError
from policy.rules.life import Life


def test_requests_are_taken_as_they_are(make_table):
    table = make_table([5.55, 5.0, 4.5], unit="requests", continue_probability=(1.0, 0.9, 0.8))
    life = Life.of(table)
    assert life.expected == (5.55, 5.0, 4.5)
    assert [life.remaining(made) for made in (0, 2, 3, 900)] == [5.55, 4.5, 4.5, 4.5]


def test_hazards_are_those_that_the_means_imply(make_table):
    # m(i) = 1 + (1 − h)·m(i+1): (5.55 − 1)/5 and (5 − 1)/4.5, then 1 − 1/4.5.
    life = Life.of(make_table([5.55, 5.0, 4.5], unit="requests"))
    assert life.go_on == pytest.approx((0.91, 8 / 9, 7 / 9))


def test_tool_calls_are_turned_into_requests_by_the_roles_own_ratio(make_table):
    # At ½ request a call, request i is call 2i, and m is half that of the calls.
    table = make_table([20.0, 19.0, 18.0, 17.0, 16.0], requests_per_call=0.5)
    assert Life.of(table).expected == (10.0, 9.0, 8.0)
    # At 2 requests a call, ages between calls are linear.
    table = make_table([4.0, 3.5], requests_per_call=2.0)
    assert Life.of(table).expected == (8.0, 7.5, 7.0)
    # Not learned is 1.
    assert Life.of(make_table([4.0, 3.5])).expected == (4.0, 3.5)


def test_a_mean_is_at_least_the_next_request(make_table):
    assert Life.of(make_table([4.0, 1.2], requests_per_call=0.5)).expected == (2.0, 1.0)


def test_hazards_are_pooled_over_neighbouring_ages():
    # At age 4 to 5 (reach ¼·4 = 1): ends ÷ at risk over the 3rd to 5th request.
    from policy.rules.life import _smoothed  # noqa: PLC0415 - pinned by hand below

    raw = [1.0, 1.0, 1.0, 0.5, 1.0, 1.0]
    # At risk 1, 1 and ½ for requests 3, 4 and 5; ½ ends with the 4th.
    assert _smoothed(raw, 10.0)[3] == pytest.approx(1 - 0.5 / 2.5)
    # The first ages stay as they are.
    assert _smoothed(raw, 10.0)[:3] == [1.0, 1.0, 1.0]


def test_a_constant_hazard_stays_constant(make_table):
    life = Life.of(make_table([12.0] * 40, unit="requests"))
    assert life.go_on == pytest.approx([11 / 12] * 40)


def test_smoothing_knows_certain_ends(make_table):
    # Every turn makes four requests: m falls to 1, and the last age is as sure as before.
    life = Life.of(make_table([4.0, 3.0, 2.0, 1.0], unit="requests"))
    assert life.go_on == (1.0, 1.0, 1.0, 0.0)


def test_a_blend_whose_means_fall_too_fast_still_has_probabilities(make_table):
    life = Life.of(make_table([50.0, 3.0, 40.0, 2.0, 1.0, 9.0], unit="requests"))
    assert all(0 <= share <= 1 for share in life.go_on)


def test_life_of_hazards_by_hand():
    life = Life.of_hazards([0.5, 0.0, 0.25])
    assert life.expected == (1 + 0.5 * 5, 5.0, 4.0)
    assert life.go_on == (0.5, 1.0, 0.75)


def test_the_median_by_hand():
    assert Life.of_hazards([1.0]).median == 1
    assert Life.of_hazards([0.1, 0.5, 0.2]).median == 2
    # .9 · .9ⁿ ≤ ½ from n = 6 on, 1 − .9⁷ = .52.
    assert Life.of_hazards([0.1]).median == 7
    assert Life((1e300,), (1.0,)).median == 10_000


@pytest.mark.parametrize("hazards", [[], [0.0], [0.5, 0.0], [1.5], [float("nan")]])
def test_impossible_hazards_are_refused(hazards):
    with pytest.raises(InputError):
        Life.of_hazards(hazards)


@pytest.mark.parametrize(
    ("expected", "shares"),
    [((), ()), ((2.0,), ()), ((0.5,), (1.0,)), ((2.0,), (1.5,)), ((float("nan"),), (1.0,))],
)
def test_impossible_lives_are_refused(expected, shares):
    with pytest.raises(InputError):
        Life(expected, shares)

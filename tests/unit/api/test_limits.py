"""Token buckets by a clock of the test's own, and the settings of limits."""

import pytest

from api.limits import Limits, RateLimiter, address_of, limits_of
from compactuary.errors import InputError


class Clock:
    now = 100.0

    def __call__(self):
        return self.now


def test_a_bucket_gives_its_burst_then_the_rate():
    clock = Clock()
    limiter = RateLimiter(Limits(requests_per_second=2, burst=3), clock)
    assert [limiter.wait_seconds("a") for _ in range(3)] == [0, 0, 0]
    assert limiter.wait_seconds("a") == pytest.approx(0.5)
    # Another caller has a bucket of its own.
    assert limiter.wait_seconds("b") == 0
    clock.now += 0.25
    assert limiter.wait_seconds("a") == pytest.approx(0.25)
    clock.now += 0.25
    assert limiter.wait_seconds("a") == 0
    assert limiter.wait_seconds("a") == pytest.approx(0.5)
    clock.now += 3600
    assert [limiter.wait_seconds("a") for _ in range(4)] == [0, 0, 0, pytest.approx(0.5)]


def test_over_a_long_time_the_rate_is_what_gets_through():
    clock = Clock()
    limiter = RateLimiter(Limits(requests_per_second=5), clock)
    through = 0
    for _ in range(10_000):
        clock.now += 0.01
        through += limiter.wait_seconds("a") == 0
    # 100 seconds at 5 a second, and the burst of 10.
    assert through == pytest.approx(510, abs=1)


def test_a_rate_below_one_a_second_still_lets_one_in():
    clock = Clock()
    limiter = RateLimiter(Limits(requests_per_second=0.1), clock)
    assert limiter.wait_seconds("a") == 0
    assert limiter.wait_seconds("a") == pytest.approx(10)


def test_without_a_limit_nobody_waits():
    limiter = RateLimiter(Limits())
    assert {limiter.wait_seconds("a") for _ in range(1000)} == {0}


def test_callers_are_forgotten_when_there_are_too_many():
    limiter = RateLimiter(Limits(requests_per_second=1, burst=1), Clock())
    assert limiter.wait_seconds("first") == 0
    assert limiter.wait_seconds("first") > 0
    for number in range(10_000):
        limiter.wait_seconds(f"other-{number}")
    assert limiter.wait_seconds("first") == 0
    assert len(limiter._buckets) == 10_000


@pytest.mark.parametrize(
    ("client", "caller"),
    [
        (("10.0.0.7", 5), "10.0.0.7"),
        (["10.0.0.7", 5], "10.0.0.7"),
        (("2001:db8:1:2:3::9", 5), "2001:0db8:0001:0002"),
        (("2001:db8:1:2:ffff::1", 5), "2001:0db8:0001:0002"),
        (("::ffff:10.0.0.7", 5), "10.0.0.7"),
        (("testclient", 5), "testclient"),
        (None, "local"),
    ],
)
def test_who_a_caller_is(client, caller):
    assert address_of(client) == caller


def test_limits_come_from_the_environment():
    assert limits_of({}) == Limits(16 * 1024 * 1024, 0, 0)
    given = {
        "COMPACTUARY_MAX_BODY_BYTES": "1000",
        "COMPACTUARY_RATE_LIMIT": "2.5",
        "COMPACTUARY_RATE_BURST": "9",
    }
    assert limits_of(given) == Limits(1000, 2.5, 9)


@pytest.mark.parametrize(
    ("name", "given"),
    [
        *(("COMPACTUARY_MAX_BODY_BYTES", given) for given in ("0", "-1", "1MB", "nan", "inf")),
        *(("COMPACTUARY_RATE_LIMIT", given) for given in ("-1", "nan", "inf", "many")),
        *(("COMPACTUARY_RATE_BURST", given) for given in ("-1", "nan", "x")),
    ],
)
def test_a_limit_that_is_none_is_refused_by_name(name, given):
    with pytest.raises(InputError) as refused:
        limits_of({name: given})
    assert (refused.value.where, refused.value.value) == (name, given)
    assert refused.value.remedy

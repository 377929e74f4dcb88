from compactuary.breaker import FAILURES_TO_OPEN, Breaker


def opened_at(now):
    breaker = Breaker(5.0)
    assert [breaker.failed(now) for _ in range(FAILURES_TO_OPEN)] == [False, False, True]
    return breaker


def test_it_opens_after_three_failures_in_a_row():
    breaker = Breaker(5.0)
    breaker.failed(1.0)
    breaker.failed(1.0)
    breaker.succeeded()
    breaker.failed(1.0)
    breaker.failed(1.0)
    assert breaker.allows(1.0)
    breaker.failed(1.0)
    assert not breaker.allows(1.0)


def test_one_caller_tries_once_in_a_while():
    breaker = opened_at(100.0)
    assert [breaker.allows(now) for now in (100.0, 104.9, 105.0, 105.0, 109.9)] == [
        False,
        False,
        True,
        False,
        False,
    ]
    assert breaker.allows(110.0)


def test_a_failed_try_puts_off_the_next_and_a_good_one_closes():
    breaker = opened_at(100.0)
    assert breaker.allows(105.0)
    assert not breaker.failed(105.5)
    assert not breaker.allows(110.4)
    assert breaker.allows(110.5)
    breaker.succeeded()
    assert breaker.allows(110.5)
    assert not breaker.open

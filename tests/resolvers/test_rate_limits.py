"""The rate limiter: its budget refills evenly, and never holds more than 10 s of the rate."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resolvers import rate_limits
from resolvers.rate_limits import BURST_S, RateLimiter
from storage.errors import RateLimited
from tests.manual_clock import ManualClock

PER_MINUTE = 600.0
BURST = PER_MINUTE / 60 * BURST_S


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> ManualClock:
    clock = ManualClock(1000.0)
    monkeypatch.setattr(rate_limits, "time", clock)
    return clock


def wait_ms_of_refusal(check: Callable[[], None]) -> int:
    with pytest.raises(RateLimited) as error:
        check()
    retry_after_ms = error.value.details["retryAfterMs"]
    assert isinstance(retry_after_ms, int)
    return retry_after_ms


def test_refused_key_may_spend_after_the_announced_time(clock: ManualClock) -> None:
    limiter = RateLimiter(PER_MINUTE, "Testing")
    limiter.spend("ann", BURST)
    wait_ms = wait_ms_of_refusal(lambda: limiter.check("ann", 5))
    assert wait_ms == 500
    limiter.check("ben", 5)
    clock.now += wait_ms / 1000
    limiter.check("ann", 5)


def test_amount_above_the_remaining_budget_is_refused(clock: ManualClock) -> None:
    limiter = RateLimiter(PER_MINUTE, "Testing")
    limiter.spend("ann", BURST - 4.5)
    assert wait_ms_of_refusal(lambda: limiter.check("ann", 5)) == 50
    limiter.check("ann", 4.5)


def test_error_names_subject_and_limit() -> None:
    limiter = RateLimiter(3_000_000, "The cost of your operations")
    limiter.spend("ann", 3_000_000)
    message = r"^The cost of your operations is limited to 3,000,000 in a minute\. Try again in 50 s\.$"
    with pytest.raises(RateLimited, match=message):
        limiter.check("ann", 1)


def test_full_budget_allows_an_amount_above_it(clock: ManualClock) -> None:
    limiter = RateLimiter(PER_MINUTE, "Testing")
    limiter.check("ann", 10 * BURST)
    limiter.spend("ann", 10 * BURST)
    assert wait_ms_of_refusal(lambda: limiter.check("ann", 10 * BURST)) == 10 * BURST_S * 1000


def test_forgotten_budget_is_full(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rate_limits, "MAX_BUDGETS", 2)
    limiter = RateLimiter(PER_MINUTE, "Testing")
    for key in ("ann", "ben", "cat"):
        limiter.spend(key, BURST)
    assert (limiter.remaining("ann"), limiter.remaining("cat")) == (int(BURST), 0)


@given(st.lists(st.tuples(st.floats(0, 30), st.floats(0, 2 * BURST)), max_size=30))
def test_spending_never_exceeds_the_rate(steps: list[tuple[float, float]]) -> None:
    clock = ManualClock(1000.0)
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(rate_limits, "time", clock)
        limiter = RateLimiter(PER_MINUTE, "Testing")
        spent_amount = last_amount = 0.0
        for pause_s, amount in steps:
            clock.now += pause_s
            try:
                limiter.check("ann", amount)
            except RateLimited:
                continue
            limiter.spend("ann", amount)
            spent_amount, last_amount = spent_amount + amount, amount
    assert spent_amount - last_amount <= BURST + PER_MINUTE / 60 * (clock.now - 1000) + 1e-6

"""The rate limiter: its budget refills evenly, and never holds more than 10 s of the rate."""

from collections.abc import Callable
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resolvers.limits import rates
from resolvers.limits.rates import ACTIVE_S, BURST_S, GroupRateLimiter, RateLimiter
from storage.errors import RateLimited
from tests.manual_clock import ManualClock

PER_MINUTE = 600.0
BURST = PER_MINUTE / 60 * BURST_S


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> ManualClock:
    clock = ManualClock(1000.0)
    monkeypatch.setattr(rates, "time", clock)
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
    monkeypatch.setattr(rates, "MAX_BUDGETS", 2)
    limiter = RateLimiter(PER_MINUTE, "Testing")
    for key in ("ann", "ben", "cat"):
        limiter.spend(key, BURST)
    assert (limiter.remaining("ann"), limiter.remaining("cat")) == (int(BURST), 0)


@given(st.lists(st.tuples(st.floats(0, 30), st.floats(0, 2 * BURST)), max_size=30))
def test_spending_never_exceeds_the_rate(steps: list[tuple[float, float]]) -> None:
    clock = ManualClock(1000.0)
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(rates, "time", clock)
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


@pytest.fixture
def group(clock: ManualClock) -> GroupRateLimiter:
    """A limiter of an organization whose members ann and ben have spent twice its budget."""
    limiter = GroupRateLimiter(PER_MINUTE, "Testing")
    limiter.spend("acme", ["ann", "ben"], 2 * BURST)
    for member in ("ann", "ben"):
        limiter.check("acme", member, 1)
    return limiter


def test_active_members_keep_equal_shares_of_spent_budget(group: GroupRateLimiter) -> None:
    group.check("acme", "ann", BURST / 2)
    group.spend("acme", ["ann"], BURST / 2)
    message = r"^Testing is limited to 600 in a minute\. Try again in 1 s\.$"
    with pytest.raises(RateLimited, match=message):
        group.check("acme", "ann", 1)
    group.check("acme", "ben", BURST / 2)
    group.check("other", "ann", BURST)


def test_refused_member_may_spend_after_the_announced_time(clock: ManualClock, group: GroupRateLimiter) -> None:
    group.spend("acme", ["ann"], BURST / 2)
    wait_ms = wait_ms_of_refusal(lambda: group.check("acme", "ann", 5))
    assert wait_ms == 1000, "A half of 10 units in a second."
    clock.now += wait_ms / 1000
    group.check("acme", "ann", 5)


def test_members_pay_equal_parts_with_their_shares(group: GroupRateLimiter) -> None:
    group.spend("acme", ["ann", "ben"], BURST / 2)
    for member in ("ann", "ben"):
        group.check("acme", member, BURST / 4)
        assert wait_ms_of_refusal(partial(group.check, "acme", member, BURST / 4 + 5)) == 1000


def test_budget_of_a_group_is_spent_before_shares(clock: ManualClock) -> None:
    limiter = GroupRateLimiter(PER_MINUTE, "Testing")
    for amount in (BURST, BURST):
        limiter.check("acme", "ann", amount)
        limiter.spend("acme", ["ann"], amount)
    assert wait_ms_of_refusal(lambda: limiter.check("acme", "ann", 5)) == 500


def test_refusal_ends_with_a_refilled_budget_of_the_group(clock: ManualClock) -> None:
    limiter = GroupRateLimiter(PER_MINUTE, "Testing")
    limiter.spend("acme", ["ann"], BURST)
    for member in ("ann", "ben", "cat", "dan"):
        limiter.check("acme", member, 1)
    limiter.spend("acme", ["ann"], BURST)
    assert wait_ms_of_refusal(lambda: limiter.check("acme", "ann", 5)) == 10_500
    clock.now += 10.5
    limiter.check("acme", "ann", 5)


def test_inactive_members_leave_their_shares_to_others(clock: ManualClock, group: GroupRateLimiter) -> None:
    group.spend("acme", ["zoe"], 30 * BURST)
    clock.now += ACTIVE_S
    group.check("acme", "ann", BURST / 2)
    assert group._active_members["acme"] == 2, "Ben was active a minute ago."
    clock.now += 1
    group.check("acme", "cat", BURST / 2)
    assert group._active_members == {"acme": 2}, "Ann and cat are active."
    clock.now += ACTIVE_S + 1
    group.check("other", "dan", 1)
    assert group._active_members == {"other": 1}
    group.check("acme", "ann", BURST)


@given(st.lists(st.tuples(st.floats(0, 30), st.integers(0, 4), st.floats(0, BURST / 5)), max_size=60))
def test_members_never_exceed_the_rate_of_their_group(steps: list[tuple[float, int, float]]) -> None:
    """Beyond the rate, the group may spend its budget, and shares of a whole, a half, a third, and so on."""
    clock, spent_amount = ManualClock(1000.0), 0.0
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(rates, "time", clock)
        limiter = GroupRateLimiter(PER_MINUTE, "Testing")
        for pause_s, member, amount in steps:
            clock.now += pause_s
            try:
                limiter.check("acme", member, amount)
            except RateLimited:
                continue
            limiter.spend("acme", [member], amount)
            spent_amount += amount
    assert spent_amount <= 4 * BURST + PER_MINUTE / 60 * (clock.now - 1000)

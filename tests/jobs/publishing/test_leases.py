"""A lease is renewed while its holder works. Work whose lease may be lost is cancelled, or does not begin."""

import asyncio

import pytest

from jobs.publishing.leases import ClaimLease, loop_time_s
from storage.errors import Unavailable
from storage.publishing.transitions import ClaimLost

pytestmark = pytest.mark.anyio


class FakeClaimStore:
    """A store that counts renewals. It refuses them unless `is_held`, and raises while `is_down`."""

    def __init__(self) -> None:
        self.renewals, self.is_held, self.is_down = 0, True, False

    async def renew(self) -> bool:
        self.renewals += 1
        if self.is_down:
            raise Unavailable("down")
        return self.is_held


async def test_short_call_renews_nothing() -> None:
    store = FakeClaimStore()
    async with ClaimLease(store.renew, 60, loop_time_s()).hold():
        await asyncio.sleep(0)
    assert store.renewals == 0


async def test_call_longer_than_lease_is_renewed() -> None:
    store = FakeClaimStore()
    lease = ClaimLease(store.renew, 3, loop_time_s())
    began_s = loop_time_s()
    async with lease.hold():
        while loop_time_s() < began_s + 3.2:
            await asyncio.sleep(0.05)
    assert store.renewals >= 2
    assert lease.began_at_s > began_s


async def test_resumed_worker_verifies_claim_before_call() -> None:
    store = FakeClaimStore()
    async with ClaimLease(store.renew, 6, loop_time_s() - 20).hold():
        assert store.renewals == 1
    store.is_held = False
    has_begun = False
    with pytest.raises(ClaimLost):
        async with ClaimLease(store.renew, 6, loop_time_s() - 20).hold():
            has_begun = True
    assert not has_begun


@pytest.mark.parametrize("fault", ["is_down", "taken_over"])
async def test_failed_renewal_cancels_work(fault: str) -> None:
    store = FakeClaimStore()
    store.is_down, store.is_held = fault == "is_down", fault != "taken_over"
    finished = asyncio.Event()

    async def work() -> None:
        async with ClaimLease(store.renew, 0.3, loop_time_s()).hold():
            await asyncio.sleep(60)
            finished.set()

    with pytest.raises(ClaimLost):
        await work()
    assert not finished.is_set()

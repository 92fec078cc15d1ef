"""Limits of attempts: exact under concurrency, and shared by processes."""

import asyncio
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from storage.errors import RateLimited
from storage.identity.accounts.attempt_limits import AttemptLimit, client_key
from storage.ids import new_id
from storage.stores import Stores
from tests.storage.topic_scenario import OpenStores

pytestmark = pytest.mark.anyio

LIMIT = AttemptLimit("test", 5, 100)


async def test_concurrent_attempts_of_two_processes_admit_the_burst(
    shared_stores: Stores, open_process: OpenStores
) -> None:
    subject = new_id()
    async with open_process() as other:
        limits = [shared_stores.attempt_limits, other.attempt_limits] * 8
        counting = (each.count([(LIMIT, subject)]) for each in limits)
        results = await asyncio.gather(*counting, return_exceptions=True)
    assert sum(each is None for each in results) == LIMIT.burst
    refusals = [each for each in results if isinstance(each, RateLimited)]
    assert len(refusals) == len(limits) - LIMIT.burst
    # The database may apply an update after one that began later. Its wait is then some milliseconds longer.
    assert all(0 < int(str(each.details["retryAfterMs"])) <= 101_000 for each in refusals)


async def test_attempts_become_free_one_by_one(shared_stores: Stores) -> None:
    subject, limits = new_id(), shared_stores.attempt_limits
    for _ in range(LIMIT.burst):
        await limits.count([(LIMIT, subject)])
    earlier = {"$set": {"free_at": {"$subtract": ["$free_at", 100_000]}}}
    stored = shared_stores.mongo["sign_in_limits"]
    await stored.update_many({"attempt": {"$exists": True}}, [earlier])
    await limits.count([(LIMIT, subject)])
    with pytest.raises(RateLimited):
        await limits.count([(LIMIT, subject)])


async def test_refused_attempts_do_not_prolong_the_wait(shared_stores: Stores) -> None:
    limit, limits = replace(LIMIT, name=new_id()), shared_stores.attempt_limits
    for _ in range(limit.burst):
        await limits.count([(limit, "subject")])
    free_at = await stored_free_at(shared_stores, limit)
    for _ in range(20):
        with pytest.raises(RateLimited):
            await limits.count([(limit, "subject")])
    assert await stored_free_at(shared_stores, limit) == free_at
    assert free_at - await shared_stores.mongo.now() <= timedelta(seconds=500)


async def stored_free_at(stores: Stores, limit: AttemptLimit) -> datetime:
    """Returns the time at which all attempts of the limit's only subject are free again."""
    (stored,) = await stores.mongo["sign_in_limits"].find({"_id": {"$regex": f"^{limit.name}:"}}).to_list(None)
    free_at: datetime = stored["free_at"]
    return free_at


async def test_forgotten_attempts_count_no_more(shared_stores: Stores) -> None:
    subject, limits = new_id(), shared_stores.attempt_limits
    for _ in range(LIMIT.burst):
        await limits.count([(LIMIT, subject)])
    await limits.forget([(LIMIT, subject)])
    await limits.count([(LIMIT, subject)])


def test_clients_of_one_ipv6_network_share_a_key() -> None:
    assert client_key("2001:db8::1") == client_key("2001:db8::ffff:1")
    assert client_key("2001:db8::1") != client_key("2001:db8:0:1::1")
    assert client_key("::ffff:192.0.2.1") == client_key("192.0.2.1") != client_key("192.0.2.2")
    assert client_key(None) == client_key("testclient") == "unknown"

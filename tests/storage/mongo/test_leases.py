"""Leases are found by the name of their worker, in a short range of the index."""

from datetime import timedelta

import pytest

from storage.mongo.leases import claim_token, lease_filter
from storage.stores import Stores

pytestmark = pytest.mark.anyio


def test_tokens_begin_with_the_name_and_differ() -> None:
    first, second = (claim_token("north") for _ in range(2))
    assert first != second
    assert first.startswith("north:")
    assert ":" not in claim_token("")


async def test_filter_finds_unexpired_leases_of_the_worker_only(shared_stores: Stores) -> None:
    now, leases = await shared_stores.mongo.now(), shared_stores.mongo["leases"]
    rows = {
        "held": (claim_token("north"), now + timedelta(seconds=30)),
        "of a longer name": (claim_token("north2"), now + timedelta(seconds=30)),
        "of a pattern": (claim_token("n.rth"), now + timedelta(seconds=30)),
        "without a name": (claim_token(""), now + timedelta(seconds=30)),
        "ended": (claim_token("north"), now - timedelta(seconds=1)),
        "planned": (claim_token("north"), now + timedelta(seconds=300)),
    }
    await leases.insert_many([{"_id": id_, "claim": token, "due": at} for id_, (token, at) in rows.items()])
    await leases.insert_one({"_id": "finished", "claim": claim_token("north")})

    async def found(worker: str) -> list[str]:
        return [each["_id"] async for each in leases.find(lease_filter(worker, "due", 60))]

    assert await found("north") == ["held"]
    assert await found("n.rth") == ["of a pattern"]
    assert await found("south") == []

"""Connections on which the driver refuses sessions are replaced, with either driver."""

import asyncio
from typing import Any

import pytest

from storage.mongo import Session
from storage.stores import Stores

pytestmark = pytest.mark.anyio


async def test_connection_opened_during_a_rollback_is_replaced(own_stores: Stores) -> None:
    """A connection that was opened during a rollback refuses sessions for its whole life."""
    mongo = own_stores.mongo

    async def count(session: Session) -> None:
        await mongo["counters"].update_one({"_id": "n"}, {"$inc": {"n": 1}}, upsert=True, session=session)

    await asyncio.gather(*(mongo.transact(count) for _ in range(3)))
    client: Any = vars(mongo.client).get("delegate", mongo.client)
    for server in client._topology._servers.values():
        assert server.pool.conns
        for connection in server.pool.conns:
            connection.supports_sessions = False
    await mongo.transact(count)
    assert await mongo.find("counters", {}) == [{"_id": "n", "n": 4}]

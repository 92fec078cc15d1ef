"""A process that aggregates a database's ledger until it is killed."""

import asyncio

import jobs.mail.aggregation
from storage.stores import open_stores
from tests.keys import ADDRESS_KEYS

SETTINGS = {"BATCH": 100, "RETRY_S": 0.2}
"""Small batches: a kill comes within one of many transactions. Another process continues soon after a kill."""


def run(mongodb_uri: str, redis_url: str, database: str) -> None:
    """Aggregates the ledger of the database, which has all collections and indexes."""
    asyncio.run(_aggregate(mongodb_uri, redis_url, database))


async def _aggregate(mongodb_uri: str, redis_url: str, database: str) -> None:
    vars(jobs.mail.aggregation).update(SETTINGS)
    async with open_stores(mongodb_uri, redis_url, database, address_keys=ADDRESS_KEYS, is_prepared=True) as stores:
        # Short leases: the test is about fences, and must not wait for the lease of a killed process.
        stores.locks._ttl_s, stores.locks._cancel_after_s = 1.0, 0.8
        await jobs.mail.aggregation.AggregationLoops(stores).run()

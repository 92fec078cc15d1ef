"""A process that aggregates a database's ledger until it is killed: python -m ... MONGODB_URI REDIS_URL DATABASE."""

import asyncio
import sys

from jobs.mail.aggregation import AggregationLoops
from storage.stores import open_stores
from tests.keys import ADDRESS_KEYS


async def main() -> None:
    mongodb_uri, redis_url, database = sys.argv[1:]
    async with open_stores(mongodb_uri, redis_url, database, address_keys=ADDRESS_KEYS) as stores:
        # Short leases: the test is about fences, and must not wait for the lease of a killed process.
        stores.locks._ttl_s, stores.locks._cancel_after_s = 2.0, 1.6
        await AggregationLoops(stores).run()


if __name__ == "__main__":
    asyncio.run(main())

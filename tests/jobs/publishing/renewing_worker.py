"""A worker process that renews due credentials once. tests/jobs/publishing/test_renewals.py starts and kills it."""

import asyncio
import sys
from dataclasses import replace
from ipaddress import ip_network

from jobs.providers.egress import Egress
from jobs.publishing.renewals import renew_credentials
from storage.publishing.networks import Network
from storage.stores import open_stores
from tests.databases import CREDENTIAL_KEYS
from tests.jobs.contexts import job_context
from tests.jobs.publishing.runs import renewer


async def work(uri: str, redis_url: str, database: str, network: str, url: str) -> None:
    """Renews as the worker "killed", which is the name of its leases."""
    options = {"credential_keys": CREDENTIAL_KEYS, "is_prepared": True, "worker": "killed"}
    async with open_stores(uri, redis_url, database, **options) as stores:  # type: ignore[arg-type]
        egress = Egress((ip_network("127.0.0.0/8"),))
        renewers = {Network(network): renewer(Network(network), egress, url)}
        jobs = replace(job_context(stores, egress), credential_renewers=renewers)
        print(await renew_credentials(jobs), flush=True)
        await egress.aclose()


if __name__ == "__main__":
    asyncio.run(work(*sys.argv[1:]))

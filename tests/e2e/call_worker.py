"""A worker process that runs only the broker pool and the polling of overdue calls, with short lock leases.

python -m tests.e2e.call_worker MONGODB_URI REDIS_URL DATABASE TELEPHONY_URL LEASE_S
"""

import asyncio
import signal
import sys
from dataclasses import replace

from jobs.calls.broker_pool import run_broker_pool
from jobs.calls.polling import poll_overdue_calls
from jobs.context import JobContext
from jobs.providers.telephony.webhook import WebhookTelephony
from storage.locks import Locks
from storage.stores import open_stores
from tests.jobs.contexts import job_context
from tests.jobs.providers.telephony.twin import SECRET

POLL_EVERY_S = 0.5
UNREACHABLE_CALLBACK_URL = "http://127.0.0.1:1/callbacks/telephony"


async def run_worker(mongodb_uri: str, redis_url: str, database: str, telephony_url: str, lease_s: float) -> None:
    """Runs the broker pool and the polling until SIGTERM."""
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    async with open_stores(mongodb_uri, redis_url, database) as stores:
        telephony = WebhookTelephony(telephony_url, SECRET, UNREACHABLE_CALLBACK_URL)
        jobs = job_context(replace(stores, locks=Locks(stores.mongo, lease_s)), telephony=telephony)
        tasks = [asyncio.create_task(work) for work in (run_broker_pool(jobs), _poll(jobs))]
        print("ready", flush=True)
        await stop.wait()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await telephony.aclose()


async def _poll(jobs: JobContext) -> None:
    while True:
        await asyncio.sleep(POLL_EVERY_S)
        await poll_overdue_calls(jobs)


if __name__ == "__main__":
    *servers, lease = sys.argv[1:]
    asyncio.run(run_worker(*servers, float(lease)))

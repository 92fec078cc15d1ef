"""The loop that finds events for webhooks, in one worker at a time."""

import asyncio
from datetime import datetime

from jobs.context import JobContext
from storage.heartbeats import process_name
from storage.webhooks.discovery import WebhookReader

LOCK = "webhook_discovery"
SEARCH_EVERY_S = 1.0
SETTLE_EVERY_S = 5.0
WITHOUT_LOCK_S = 2.0
"""The pause before a worker tries again to become the one that searches."""


async def find_webhook_events(jobs: JobContext) -> None:
    """Searches the log until it is cancelled, or until the lock is lost."""
    while True:
        async with jobs.stores.locks.held(LOCK, process_name()) as lock:
            if lock is not None:
                await _search_repeatedly(jobs)
        await asyncio.sleep(WITHOUT_LOCK_S)


async def _search_repeatedly(jobs: JobContext) -> None:
    discovery, loop = jobs.stores.webhook_discovery, asyncio.get_running_loop()
    new_since: datetime | None = None
    settle_at_s = loop.time()
    while True:
        readers = await discovery.readers()
        if readers:
            new_since = await _search(jobs, readers, new_since)
            if loop.time() >= settle_at_s:
                await _search_settled(jobs)
                settle_at_s = loop.time() + SETTLE_EVERY_S
        else:
            new_since = None
        await asyncio.sleep(SEARCH_EVERY_S)


async def _search_settled(jobs: JobContext) -> None:
    """Finds settled events for the webhooks of now: the search for new events may have lasted longer than SETTLED_S."""
    discovery = jobs.stores.webhook_discovery
    if readers := await discovery.readers():
        await discovery.search_settled(readers)


async def _search(jobs: JobContext, readers: list[WebhookReader], new_since: datetime | None) -> datetime:
    """Finds new events. The first search begins where everything was found before."""
    discovery = jobs.stores.webhook_discovery
    return await discovery.search_new(readers, new_since or await discovery.settled_at(readers))

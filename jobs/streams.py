"""Sweepers of event streams: outbox rows of a process that died, and events that nobody needs any more."""

from jobs.context import JobContext
from jobs.webhooks.streams import kept_for_s
from storage.heartbeats import process_name
from storage.metrics import PRUNING_DELAY_S


async def relay_outbox(jobs: JobContext) -> int:
    """Starts to relay outbox rows that are older than 3 s. Returns the number of their streams."""
    return await jobs.stores.outbox.sweep()


async def prune_events(jobs: JobContext) -> int:
    """Deletes events that are older than 24 hours, in one worker at a time. Returns how many.

    Events are kept longer while a webhook waits for older ones.
    """
    pruned, kept_s = 0, await kept_for_s(jobs)
    async with jobs.stores.locks.held("prune_events", process_name()) as lock:
        while lock is not None and (batch_count := await jobs.stores.events.prune(kept_s)):
            pruned += batch_count
            PRUNING_DELAY_S.set(await jobs.stores.events.pruning_delay_s(kept_s))
    # Another worker may prune now, and reports the delay. The last value of this worker would be out of date.
    PRUNING_DELAY_S.set(0)
    return pruned

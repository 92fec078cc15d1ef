"""Sweepers of event streams: outbox rows of a process that died, and events older than 24 hours."""

from jobs.context import JobContext


async def relay_outbox(jobs: JobContext) -> int:
    """Relays rows that are older than 3 s. Returns the number of their streams."""
    return await jobs.stores.outbox.sweep()


async def prune_events(jobs: JobContext) -> int:
    """Deletes a batch of events that are older than 24 hours. Returns how many."""
    return await jobs.stores.events.prune()

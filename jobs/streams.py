"""Sweepers of the streams: rows left in the outbox by a process that died, and events past their 24 hours."""

from jobs.context import JobContext


async def move_outbox(jobs: JobContext) -> int:
    """Moves what was left behind for 3 s. Returns for how many streams."""
    return await jobs.stores.outbox.sweep()


async def prune_events(jobs: JobContext) -> int:
    """Forgets events older than 24 hours, a batch at a time. Returns how many."""
    return await jobs.stores.events.prune()

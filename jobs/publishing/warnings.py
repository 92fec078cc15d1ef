"""Warns people before the credentials end that they gave to connected accounts."""

from jobs.context import JobContext

BATCH_SIZE = 50


async def warn_of_ends(jobs: JobContext) -> int:
    """Sends the warnings whose time has come. Returns how many it sent."""
    return await jobs.stores.credential_warnings.send_due(BATCH_SIZE)

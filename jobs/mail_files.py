"""The sweeper that deletes old mails from the data folder of a worker without a mail server."""

import asyncio

from jobs.context import JobContext


async def delete_old_mails(jobs: JobContext) -> int:
    """Deletes mails that were stored more than 7 days ago. Returns how many."""
    return await asyncio.to_thread(jobs.mailer.files.delete_old)

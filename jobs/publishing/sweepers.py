"""The publishing area's job and sweepers. The job starts a sweep early; a sweeper starts one every second anyway."""

from typing import Any

from jobs.context import JobContext

ACCOUNT_BATCH_SIZE = 20


async def wake_publisher(ctx: dict[str, Any], post_id: str, revision: int) -> None:
    """Claims publications that are due soon. The arguments are unused: they make the job's id unique."""
    jobs: JobContext = ctx["jobs"]
    await jobs.publisher.sweep()


async def publish_due(jobs: JobContext) -> int:
    """Claims publications that are due within five seconds or whose lease has expired. Returns how many."""
    return await jobs.publisher.sweep()


async def upload_media(jobs: JobContext) -> int:
    """Starts the uploads of media whose time has come, minutes before the due moment. Returns how many it started."""
    return await jobs.publisher.upload_media()


async def fail_disconnected(jobs: JobContext) -> int:
    """Fails publications that still wait for a disconnected account. Returns how many it failed."""
    count = 0
    for account in await jobs.stores.accounts.list_disconnected(ACCOUNT_BATCH_SIZE):
        count += await jobs.stores.scheduled_posts.fail_scheduled(account)
        await jobs.stores.accounts.mark_cleared(account)
    return count

"""What wakes the publisher: a job when something is due soon, and sweepers each second, which need no job."""

from typing import Any

from jobs.context import JobContext

DISCONNECTED_AT_ONCE = 20


async def wake(ctx: dict[str, Any], post_id: str, revision: int) -> None:
    """Something is due within seconds. What exactly, the publisher finds out itself."""
    jobs: JobContext = ctx["jobs"]
    await jobs.publisher.sweep()


async def publish_due(jobs: JobContext) -> int:
    """Takes on what is due within five seconds, and what was left behind. Returns how many."""
    return await jobs.publisher.sweep()


async def upload_media(jobs: JobContext) -> int:
    """Uploads media of what is due in ten minutes. Returns how many publications those were."""
    return await jobs.publisher.uploads.run()


async def fail_disconnected(jobs: JobContext) -> int:
    """Fails what still waits for disconnected accounts, after whose disconnection somebody died. Returns how many."""
    count = 0
    for account in await jobs.stores.accounts.disconnected(DISCONNECTED_AT_ONCE):
        count += await jobs.stores.scheduled_posts.fail_waiting(account)
        await jobs.stores.accounts.cleared(account)
    return count

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


async def resume_accounts(jobs: JobContext) -> int:
    """Schedules publications again whose account has other credentials now. Returns how many it scheduled.

    The replacement does so too. This finds what remains if it was interrupted, and what a retry has left.
    """
    count = 0
    for organization_id, account_id in await jobs.stores.scheduled_posts.find_accounts_needing_attention():
        account = await jobs.stores.accounts.get(organization_id, account_id)
        if account.disconnected_at is not None:
            count += await jobs.stores.scheduled_posts.fail_scheduled(account)
        elif account.attention is None:
            count += await jobs.stores.scheduled_posts.resume_account(account)
    return count

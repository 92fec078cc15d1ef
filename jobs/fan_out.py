"""Fan-out: a job after each post, and sweepers that finish the work of lost jobs and killed workers.

A chunk holds at most 500 followers. A failed insert affects one follower only: it is retried alone, five times, and
then kept as failed.
"""

import asyncio
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass
from typing import Any

import structlog
from arq import Retry

from jobs.context import JobContext
from storage.feed.fan_outs import FanOutClaim, FanOutRetry
from storage.ids import PostKey

TIME_SLICE_S = 5.0
"""How long one post may occupy a worker's slot before the job is queued again behind the others."""

SWEEP_LIMIT = 8
RETRY_LIMIT = 500
UNSETTLED_S = 3.0

log = structlog.get_logger(__name__)


async def fan_out(ctx: dict[str, Any], organization_id: str, timestamp: int) -> None:
    """Pushes a post into its readers' feeds, or removes it. Does nothing if another worker holds the claim."""
    jobs: JobContext = ctx["jobs"]
    if not await _work(jobs, PostKey(organization_id, timestamp), TIME_SLICE_S):
        raise Retry(defer=0)


async def _work(jobs: JobContext, key: PostKey, time_slice_s: float) -> bool:
    """Processes chunks of followers. Returns False when the time slice ended before the work."""
    ends_at = asyncio.get_running_loop().time() + time_slice_s
    claim = await jobs.stores.fan_outs.claim(key)
    next_batch: asyncio.Task[_FollowerBatch] | None = None
    try:
        while claim is not None:
            batch = await (next_batch or _read_chunk(jobs, claim, claim.after))
            # The next batch is read while this one is written.
            next_batch = None if batch.is_last else asyncio.create_task(_read_chunk(jobs, claim, batch.after))
            claim = await _write_chunk(jobs, claim, batch)
            if batch.is_last:
                return True
            if claim is not None and asyncio.get_running_loop().time() > ends_at:
                await jobs.stores.fan_outs.release(claim)
                return False
    finally:
        if next_batch is not None:
            next_batch.cancel()
            await asyncio.gather(next_batch, return_exceptions=True)
    return True


@dataclass(frozen=True, slots=True)
class _FollowerBatch:
    """The readers in a chunk of followers, without absent readers and readers who blocked the author."""

    reader_ids: Sequence[str]
    after: str
    is_last: bool


async def _read_chunk(jobs: JobContext, claim: FanOutClaim, after: str) -> _FollowerBatch:
    feeds, organization_id = jobs.stores.feeds, claim.key.organization_id
    chunk = await feeds.followers(organization_id, claim.author_id, after)
    if claim.task == "remove":
        return _FollowerBatch(chunk.follower_ids, chunk.after, chunk.is_last)
    present, others = await asyncio.gather(
        feeds.without_absent(organization_id, chunk.follower_ids),
        feeds.without_blockers(organization_id, claim.author_id, chunk.follower_ids),
    )
    allowed = set(others)
    return _FollowerBatch([each for each in present if each in allowed], chunk.after, chunk.is_last)


async def _write_chunk(jobs: JobContext, claim: FanOutClaim, batch: _FollowerBatch) -> FanOutClaim | None:
    """Writes one chunk. Returns the advanced claim, or None when it was lost or the post is gone."""
    stores, key = jobs.stores, claim.key
    if claim.task == "remove":
        await stores.feeds.remove(key, batch.reader_ids)
        await stores.fan_outs.delete_retries(key)
        return await stores.fan_outs.advance(claim, batch.after, batch.is_last)
    if await stores.posts.find(key) is None:
        return None
    failed = await stores.feeds.push(key, claim.author_id, batch.reader_ids)
    delivered = len(batch.reader_ids) - len(failed)
    return await stores.fan_outs.advance(claim, batch.after, batch.is_last, delivered, failed)


async def finish_fan_outs(jobs: JobContext) -> int:
    """Continues fan-outs that no worker has claimed. Returns their number."""
    keys = await jobs.stores.fan_outs.open(SWEEP_LIMIT)
    await asyncio.gather(*(_isolated(_work(jobs, key, TIME_SLICE_S)) for key in keys))
    return len(keys)


async def retry_failed_inserts(jobs: JobContext) -> int:
    """Retries failed inserts, each post alone. Returns the number of posts."""
    retries = await jobs.stores.fan_outs.due_retries(RETRY_LIMIT)
    for retry in retries:
        await _isolated(_retry(jobs, retry))
    return len(retries)


async def _retry(jobs: JobContext, retry: FanOutRetry) -> None:
    stores = jobs.stores
    post = await stores.posts.find(retry.key)
    if post is None:
        await stores.fan_outs.delete_retries(retry.key)
        return
    readers = sorted(retry.tries)
    allowed = await stores.feeds.without_blockers(retry.key.organization_id, post.author_id, readers)
    await stores.fan_outs.settle_retries(retry, await stores.feeds.push(retry.key, post.author_id, allowed))


async def settle_follows(jobs: JobContext) -> int:
    """Applies changes of follows that have waited for 3 s to the feeds. Returns their number."""
    pairs = await jobs.stores.follows.unsettled(UNSETTLED_S, SWEEP_LIMIT * 10)
    for pair in pairs:
        await jobs.stores.follows.try_to_settle(pair)
    return len(pairs)


async def rebuild_feed(ctx: dict[str, Any], organization_id: str, reader_id: str) -> None:
    """Rebuilds the feed of a reader who was absent."""
    jobs: JobContext = ctx["jobs"]
    await jobs.stores.home.rebuild(organization_id, reader_id)


async def rebuild_feeds(jobs: JobContext) -> int:
    """Rebuilds feeds whose job was lost. Returns their number."""
    readers = await jobs.stores.home.rebuilding(SWEEP_LIMIT)
    for reader in readers:
        await _isolated(jobs.stores.home.rebuild(*reader))
    return len(readers)


async def _isolated(work: Coroutine[Any, Any, object]) -> None:
    """Runs `work`, and logs a failure. A later sweep tries again; other work is not affected."""
    try:
        await work
    except Exception as error:
        log.warning("fan_out_step_failed", error=repr(error))

"""Fan-out: the job that follows each post, and sweepers that finish the work of lost jobs and killed workers.

A chunk holds at most 500 followers. An insert that fails for one follower is retried for that follower only, five
times, and is then stored as failed.
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
"""How long one fan-out may occupy a worker's slot before its job is queued again behind other jobs."""

SWEEP_LIMIT = 8
RETRY_LIMIT = 500
UNSETTLED_S = 3.0
"""How long a sweep leaves a follow or unfollow to the request that made it, before the sweep applies it."""

log = structlog.get_logger(__name__)


async def fan_out(ctx: dict[str, Any], organization_id: str, timestamp: int) -> None:
    """Pushes a post into its readers' feeds, or removes it. Does nothing if another worker holds the claim."""
    jobs: JobContext = ctx["jobs"]
    if not await _run_fan_out(jobs, PostKey(organization_id, timestamp), TIME_SLICE_S):
        raise Retry(defer=0)


async def _run_fan_out(jobs: JobContext, key: PostKey, time_slice_s: float) -> bool:
    """Processes chunks of followers. Returns False if the time slice ended before the last chunk."""
    ends_at = asyncio.get_running_loop().time() + time_slice_s
    claim = await jobs.stores.fan_outs.claim(key)
    next_chunk: asyncio.Task[_ReaderChunk] | None = None
    try:
        while claim is not None:
            chunk = await (next_chunk or _read_chunk(jobs, claim, claim.after))
            # The next chunk is read while the current chunk is written.
            next_chunk = None if chunk.is_last else asyncio.create_task(_read_chunk(jobs, claim, chunk.after))
            claim = await _write_chunk(jobs, claim, chunk)
            if chunk.is_last:
                return True
            if claim is not None and asyncio.get_running_loop().time() > ends_at:
                await jobs.stores.fan_outs.release(claim)
                return False
    finally:
        if next_chunk is not None:
            next_chunk.cancel()
            await asyncio.gather(next_chunk, return_exceptions=True)
    return True


@dataclass(frozen=True, slots=True)
class _ReaderChunk:
    """The readers among a chunk of followers: a post is not pushed to absent readers, or to blockers of the author.

    For a removal, all followers of the chunk are readers. `after` is the id of the last follower of the chunk.
    """

    reader_ids: Sequence[str]
    after: str
    is_last: bool


async def _read_chunk(jobs: JobContext, claim: FanOutClaim, after: str) -> _ReaderChunk:
    feeds, organization_id = jobs.stores.feeds, claim.key.organization_id
    followers = await feeds.followers(organization_id, claim.author_id, after)
    if claim.task == "remove":
        return _ReaderChunk(followers.follower_ids, followers.after, followers.is_last)
    present, blockers = await asyncio.gather(
        feeds.without_absent(organization_id, followers.follower_ids),
        jobs.stores.relations.blockers_among(organization_id, claim.author_id, followers.follower_ids),
    )
    return _ReaderChunk([each for each in present if each not in blockers], followers.after, followers.is_last)


async def _write_chunk(jobs: JobContext, claim: FanOutClaim, chunk: _ReaderChunk) -> FanOutClaim | None:
    """Writes one chunk. Returns the advanced claim, or None if the claim was lost or the post was deleted."""
    stores, key = jobs.stores, claim.key
    if claim.task == "remove":
        await stores.feeds.remove(key, chunk.reader_ids)
        await stores.fan_outs.delete_retries(key)
        return await stores.fan_outs.advance(claim, chunk.after, chunk.is_last)
    post = await stores.posts.find(key)
    if post is None:
        return None
    failed = await stores.feeds.push(post, chunk.reader_ids)
    delivered = len(chunk.reader_ids) - len(failed)
    return await stores.fan_outs.advance(claim, chunk.after, chunk.is_last, delivered, failed)


async def finish_fan_outs(jobs: JobContext) -> int:
    """Continues unfinished fan-outs that no worker has claimed. Returns how many."""
    keys = await jobs.stores.fan_outs.unclaimed(SWEEP_LIMIT)
    await asyncio.gather(*(_run_isolated(_run_fan_out(jobs, key, TIME_SLICE_S)) for key in keys))
    return len(keys)


async def retry_failed_inserts(jobs: JobContext) -> int:
    """Retries failed inserts, post by post. Returns the number of posts."""
    retries = await jobs.stores.fan_outs.due_retries(RETRY_LIMIT)
    for retry in retries:
        await _run_isolated(_retry_inserts(jobs, retry))
    return len(retries)


async def _retry_inserts(jobs: JobContext, retry: FanOutRetry) -> None:
    stores = jobs.stores
    post = await stores.posts.find(retry.key)
    if post is None:
        await stores.fan_outs.delete_retries(retry.key)
        return
    blockers = await stores.relations.blockers_among(retry.key.organization_id, post.author_id, list(retry.tries))
    allowed = sorted(retry.tries.keys() - blockers)
    await stores.fan_outs.store_retry_outcomes(retry, await stores.feeds.push(post, allowed))


async def settle_follows(jobs: JobContext) -> int:
    """Applies follows and unfollows to the feeds, if they have waited for 3 s. Returns how many."""
    pairs = await jobs.stores.follows.pending_changes(UNSETTLED_S, SWEEP_LIMIT * 10)
    for pair in pairs:
        await jobs.stores.follows.try_to_apply_change(pair)
    return len(pairs)


async def rebuild_feed(ctx: dict[str, Any], organization_id: str, reader_id: str) -> None:
    """Rebuilds the feed of a reader who was absent."""
    jobs: JobContext = ctx["jobs"]
    await jobs.stores.home.rebuild(organization_id, reader_id)


async def rebuild_feeds(jobs: JobContext) -> int:
    """Rebuilds feeds whose job was lost. Returns how many."""
    readers = await jobs.stores.home.readers_to_rebuild(SWEEP_LIMIT)
    for reader in readers:
        await _run_isolated(jobs.stores.home.rebuild(*reader))
    return len(readers)


async def _run_isolated(work: Coroutine[Any, Any, object]) -> None:
    """Runs `work` and logs its failure, so that other work continues. A later sweep tries again."""
    try:
        await work
    except Exception as error:
        log.warning("fan_out_step_failed", error=repr(error))

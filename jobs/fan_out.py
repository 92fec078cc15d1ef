"""Fan-out: a job after each post, and the sweepers that finish what a lost job or a killed worker left.

A chunk is at most 500 followers. What went wrong with one of them stays theirs: they are tried alone, five times, and
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
from storage.references import PostKey

TURN_S = 5.0
"""How long one post may keep a place in the queue; then others have their turn first."""

SWEEP_LIMIT = 8
RETRY_LIMIT = 500
UNSETTLED_S = 3.0

log = structlog.get_logger(__name__)


async def fan_out(ctx: dict[str, Any], organization_id: str, timestamp: int) -> None:
    """Brings a post into its author's followers' feeds, or out of them. Whose claim it is not has nothing to do."""
    jobs: JobContext = ctx["jobs"]
    if not await _work(jobs, PostKey(organization_id, timestamp), TURN_S):
        raise Retry(defer=0)


async def _work(jobs: JobContext, key: PostKey, turn_s: float) -> bool:
    """Whether nothing is left to do here; False when only the turn is over."""
    ends_at = asyncio.get_running_loop().time() + turn_s
    claim = await jobs.stores.fan_outs.claim(key)
    ahead: asyncio.Task[_FollowerBatch] | None = None
    try:
        while claim is not None:
            part = await (ahead or _look(jobs, claim, claim.after))
            # The next followers are looked up while these are written.
            ahead = None if part.is_last else asyncio.create_task(_look(jobs, claim, part.after))
            claim = await _step(jobs, claim, part)
            if part.is_last:
                return True
            if claim is not None and asyncio.get_running_loop().time() > ends_at:
                await jobs.stores.fan_outs.release(claim)
                return False
    finally:
        if ahead is not None:
            ahead.cancel()
            await asyncio.gather(ahead, return_exceptions=True)
    return True


@dataclass(frozen=True, slots=True)
class _FollowerBatch:
    """A chunk's readers, without those who get nothing."""

    reader_ids: Sequence[str]
    after: str
    is_last: bool


async def _look(jobs: JobContext, claim: FanOutClaim, after: str) -> _FollowerBatch:
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


async def _step(jobs: JobContext, claim: FanOutClaim, part: _FollowerBatch) -> FanOutClaim | None:
    """Writes one chunk; the claim as it is then, None when it is lost or the post is gone."""
    stores, key = jobs.stores, claim.key
    if claim.task == "remove":
        await stores.feeds.remove(key, part.reader_ids)
        await stores.fan_outs.forget_retries(key)
        return await stores.fan_outs.advance(claim, part.after, part.is_last)
    if await stores.posts.find(key) is None:
        return None
    failed = await stores.feeds.push(key, claim.author_id, part.reader_ids)
    delivered = len(part.reader_ids) - len(failed)
    return await stores.fan_outs.advance(claim, part.after, part.is_last, delivered, failed)


async def finish_fan_outs(jobs: JobContext) -> int:
    """Goes on with fan-outs that nobody works on. Returns with how many."""
    keys = await jobs.stores.fan_outs.open(SWEEP_LIMIT)
    await asyncio.gather(*(_apart(_work(jobs, key, TURN_S)) for key in keys))
    return len(keys)


async def retry_failed_inserts(jobs: JobContext) -> int:
    """Tries again, each alone, the readers whose insert failed. Returns how many posts they are of."""
    retries = await jobs.stores.fan_outs.due_retries(RETRY_LIMIT)
    for retry in retries:
        await _apart(_retry(jobs, retry))
    return len(retries)


async def _retry(jobs: JobContext, retry: FanOutRetry) -> None:
    stores = jobs.stores
    post = await stores.posts.find(retry.key)
    if post is None:
        await stores.fan_outs.forget_retries(retry.key)
        return
    readers = sorted(retry.tries)
    allowed = await stores.feeds.without_blockers(retry.key.organization_id, post.author_id, readers)
    await stores.fan_outs.retried(retry, await stores.feeds.push(retry.key, post.author_id, allowed))


async def settle_follows(jobs: JobContext) -> int:
    """Brings feeds in line with follows whose change was left behind for 3 s. Returns how many."""
    pairs = await jobs.stores.follows.unsettled(UNSETTLED_S, SWEEP_LIMIT * 10)
    for pair in pairs:
        await jobs.stores.follows.try_to_settle(pair)
    return len(pairs)


async def rebuild_feed(ctx: dict[str, Any], organization_id: str, reader_id: str) -> None:
    """Rebuilds the feed of a reader who was away."""
    jobs: JobContext = ctx["jobs"]
    await jobs.stores.home.rebuild(organization_id, reader_id)


async def rebuild_feeds(jobs: JobContext) -> int:
    """Rebuilds feeds whose job was lost. Returns how many."""
    readers = await jobs.stores.home.rebuilding(SWEEP_LIMIT)
    for reader in readers:
        await _apart(jobs.stores.home.rebuild(*reader))
    return len(readers)


async def _apart(work: Coroutine[Any, Any, object]) -> None:
    """What fails is left for a later sweep, and keeps nothing else waiting."""
    try:
        await work
    except Exception as error:
        log.warning("left_for_later", error=repr(error))

"""Fan-out: a job after each post, and the sweepers that finish what a lost job or a killed worker left.

A chunk is at most 500 followers. What went wrong with one of them stays theirs: they are tried alone, five times, and
then kept as failed.
"""

import asyncio
from collections.abc import Coroutine
from typing import Any

import structlog
from arq import Retry as Again

from jobs.context import JobContext
from storage.feed.fan_outs import Claim, Retry
from storage.feed.records import PostKey

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
        raise Again(defer=0)


async def _work(jobs: JobContext, key: PostKey, turn_s: float) -> bool:
    """Whether nothing is left to do here; False when only the turn is over."""
    loop = asyncio.get_running_loop()
    ends_at = loop.time() + turn_s
    claim = await jobs.stores.fan_outs.claim(key)
    while claim is not None:
        claim, is_done = await _step(jobs, claim)
        if is_done or claim is None:
            return True
        if loop.time() > ends_at:
            await jobs.stores.fan_outs.release(claim)
            return False
    return True


async def _step(jobs: JobContext, claim: Claim) -> tuple[Claim | None, bool]:
    """One chunk; the claim as it is then, and whether it was the last one."""
    stores, key = jobs.stores, claim.key
    chunk = await stores.feeds.followers(key.organization_id, claim.author_id, claim.after)
    delivered, failed = 0, set[str]()
    if claim.task == "push":
        if await stores.posts.find(key) is None:
            return None, True
        readers, known = await asyncio.gather(
            stores.feeds.without_absent(key.organization_id, chunk.follower_ids),
            stores.feeds.without_blockers(key.organization_id, claim.author_id, chunk.follower_ids),
        )
        allowed = set(known)
        readers = [each for each in readers if each in allowed]
        failed = await stores.feeds.push(key, claim.author_id, readers)
        delivered = len(readers) - len(failed)
    else:
        await stores.feeds.remove(key, chunk.follower_ids)
        await stores.fan_outs.forget_retries(key)
    return await stores.fan_outs.advance(claim, chunk.after, chunk.is_last, delivered, failed), chunk.is_last


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


async def _retry(jobs: JobContext, retry: Retry) -> None:
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

"""Sweepers by which the log has what webhooks send: posts of the local feed, and events that wait for three days."""

from datetime import datetime

from jobs.context import JobContext
from storage.feed.records import local_stream
from storage.streams.log import KEPT_S

MARGIN_S = 3600.0
"""How much longer than needed events are kept."""


async def keep_local_feeds_open(jobs: JobContext) -> int:
    """Records that the local feeds of webhooks have a subscriber, so that their posts are events. Returns how many."""
    organizations = await jobs.stores.webhook_claims.organizations_with_posts()
    for organization_id in organizations:
        await jobs.stores.list_subscribers.record(local_stream(organization_id))
    return 0


async def kept_for_s(jobs: JobContext) -> float:
    """Returns for how many seconds events are kept: a day, or longer while events wait for webhooks.

    A webhook is disabled after failures of three days, so that nothing waits longer.
    """
    oldest = await _oldest_waiting(jobs)
    if oldest is None:
        return KEPT_S
    age_s = (await jobs.stores.mongo.now() - oldest).total_seconds()
    return min(max(KEPT_S, age_s + MARGIN_S), KEPT_S + jobs.webhook_retry_s + MARGIN_S)


async def _oldest_waiting(jobs: JobContext) -> datetime | None:
    """Returns the instant of the oldest event that a webhook may still need; None without webhooks."""
    stores = jobs.stores
    readers = await stores.webhook_discovery.readers()
    if not readers:
        return None
    searched = await stores.webhook_discovery.settled_at(readers)
    waiting = await stores.webhook_positions.oldest_waiting([each.start.webhook_id for each in readers])
    return searched if waiting is None else min(searched, waiting)

"""The home feed: posts of the users that the viewer follows, and the viewer's own."""

import asyncio
from dataclasses import dataclass

from strawberry import UNSET

from resolvers.access import require_member
from resolvers.arguments import Inclusive, Latest, Oldest, PageLimit, page_range
from resolvers.context import Info
from storage.feed.home import FeedReader, HomeFeedState
from storage.feed.records import Post
from storage.redis.queue import FAN_OUT
from storage.timeline import TimelinePage


@dataclass(frozen=True, slots=True)
class HomeFeedPage(TimelinePage[Post]):
    """A page of a home feed, and whether the feed is complete."""

    state: HomeFeedState


async def home_feed(
    info: Info, oldest: Oldest = UNSET, latest: Latest = UNSET, limit: PageLimit = 50, inclusive: Inclusive = True
) -> HomeFeedPage:
    """Returns a page of the viewer's home feed."""
    viewer = require_member(info)
    range_ = page_range(oldest, latest, limit, inclusive)
    stores = info.context.stores
    hidden, visit, merged = await asyncio.gather(
        info.context.hidden_subjects(),
        stores.home.record_visit(viewer.organization_id, viewer.id),
        stores.home.merged_followees(viewer.organization_id, viewer.id),
    )
    reader = FeedReader(viewer.organization_id, viewer.id, hidden.users, merged)
    page, state = await stores.home.page(reader, range_), visit.state
    if state is HomeFeedState.READY and await stores.home.begin_refill(reader, page, visit):
        state = HomeFeedState.REBUILDING
    if state is HomeFeedState.REBUILDING:
        await stores.queue.enqueue(FAN_OUT, "feed.rebuild", viewer.organization_id, viewer.id)
    return HomeFeedPage(page.items, page.timestamps, page.has_older, page.has_newer, page.oldest, page.newest, state)

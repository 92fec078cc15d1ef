"""The subscriptions `homeFeedEvents` and `notificationEvents`, which are executed for each viewer separately."""

import asyncio
import math
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass

import structlog
from strawberry import UNSET

from resolvers.access import require_member
from resolvers.arguments import Since, text_or_none
from resolvers.context import Context, Info
from resolvers.events import RESTART_S, Event, StreamReady, ViewerEventSource, viewer_events
from storage.errors import DomainError
from storage.feed.home import SEEN_EVERY_S, FeedReader
from storage.feed.records import Post, RemovedPost, home_stream, merged_stream
from storage.identity.records import User, user_stream
from storage.notifications import Notification, RemovedNotification
from storage.streams.hub import HydratedEvent
from storage.streams.log import Cursor, StreamPosition, parse_cursor
from storage.streams.merged_subscription import (
    MergedEvent,
    MergedStart,
    StreamPositions,
    follow_merged,
    parse_positions,
)
from storage.streams.subscription import IdleTimeout

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class PostArrived(Event):
    """A post arrived in the feed."""

    kind: str
    post: Post


@dataclass(frozen=True, slots=True)
class PostRemoved(Event):
    """A post left the feed."""

    kind: str
    post_id: str


@dataclass(frozen=True, slots=True)
class NotificationArrived(Event):
    """The viewer received a notification."""

    kind: str
    notification: Notification


@dataclass(frozen=True, slots=True)
class NotificationRemoved(Event):
    """A notification of the viewer is gone."""

    kind: str
    notification_id: str


HomeEventRecord = StreamReady | PostArrived | PostRemoved


@dataclass(frozen=True, slots=True)
class HomeFeedEventSource(ViewerEventSource):
    """A subscription to a reader's home stream and to the organization's stream of merged posts."""

    context: Context
    viewer: User
    since: StreamPositions | None

    async def __aiter__(self) -> AsyncGenerator[HomeEventRecord, None]:
        """Yields events; after a failure it continues from the last position."""
        organization_id, hub = self.viewer.organization_id, self.context.stores.hub
        reader_stream, positions = home_stream(organization_id, self.viewer.id), self.since
        presence = HourlyRecorder(self._record_presence)
        while True:
            try:
                await presence.renew()
                items = follow_merged(hub, reader_stream, [merged_stream(organization_id)], positions)
                async with aclosing(items):
                    async for item in items:
                        await presence.renew()
                        if isinstance(item, IdleTimeout):
                            continue
                        record = await self._to_record(item)
                        # Set after the viewer's rights were read: if that read fails, the event must be read again.
                        positions = parse_positions(reader_stream, item.cursor)
                        if record is not None:
                            yield record
            except DomainError:
                raise
            except Exception as error:
                log.warning("home_subscription_restarted", stream=reader_stream.name, error=repr(error))
            await asyncio.sleep(RESTART_S)

    async def _record_presence(self) -> None:
        """Records that the reader visits the feed and is subscribed to the home stream."""
        stores, viewer = self.context.stores, self.viewer
        await stores.home.record_read(viewer.organization_id, viewer.id)
        await stores.home_subscribers.record(viewer.organization_id, viewer.id)

    async def _to_record(self, item: MergedStart | MergedEvent) -> HomeEventRecord | None:
        """Returns the item's record. None if the other stream delivers the post, or the viewer may not see the post."""
        if isinstance(item, MergedStart):
            return StreamReady(item.cursor, item.at, item.resumed)
        subject = item.event.subject
        # Own and pushed posts come from the home stream, merged posts of other authors from the merged stream.
        source = "merged" if subject.merged and subject.author_id != self.viewer.id else "home"
        if item.stream.kind != source:
            return None
        if not await self._may_see(subject):
            return None
        return post_event_record(item.cursor, item.event)

    async def _may_see(self, subject: Post | RemovedPost) -> bool:
        is_repost = isinstance(subject, Post) and subject.is_repost
        if subject.author_id == self.viewer.id and not is_repost:
            return True
        # Checked first: in a large organization, the viewer does not follow the authors of most merged posts.
        if subject.author_id != self.viewer.id and not await self._follows(subject.author_id):
            return False
        hidden = (await self.context.hidden_subjects()).users
        if isinstance(subject, RemovedPost) or subject.parent is None or subject.is_quote:
            return subject.author_id not in hidden
        parent_author = subject.parent.author_id
        if hidden & {subject.author_id, parent_author}:
            return False
        if subject.is_repost:
            return await self._is_first_showing(subject, hidden)
        return parent_author == self.viewer.id or await self._follows(parent_author)

    async def _is_first_showing(self, repost: Post, hidden: frozenset[str]) -> bool:
        """Returns whether the feed has neither the reposted post nor an earlier repost of it."""
        home, viewer = self.context.stores.home, self.viewer
        merged = await home.merged_followees(viewer.organization_id, viewer.id)
        reader = FeedReader(viewer.organization_id, viewer.id, hidden, merged)
        return bool(
            await home.visible_posts(reader, [(repost.timestamp, repost.author_id)], {repost.timestamp: repost})
        )

    async def _follows(self, author_id: str) -> bool:
        relations, viewer = self.context.stores.relations, self.viewer
        return await relations.follows(viewer.organization_id, viewer.id, author_id)


def post_event_record(cursor: Cursor, event: HydratedEvent) -> PostArrived | PostRemoved:
    """Returns the record of a post that was added to a feed or removed from it."""
    at, subject = event.event.at, event.subject
    if isinstance(subject, RemovedPost):
        return PostRemoved(cursor, at, "PostRemoved", subject.post_id)
    return PostArrived(cursor, at, "PostArrived", subject)


@dataclass(slots=True)
class HourlyRecorder:
    """Records once an hour that a subscription is open."""

    record: Callable[[], Awaitable[None]]
    renew_at_s: float = -math.inf
    """When the subscription is recorded next, by the loop's clock."""

    async def renew(self) -> None:
        """Records the subscription, unless it was recorded within the last hour."""
        now_s = asyncio.get_running_loop().time()
        if now_s >= self.renew_at_s:
            await self.record()
            self.renew_at_s = now_s + SEEN_EVERY_S


@dataclass(frozen=True, slots=True)
class NotificationEventSource(ViewerEventSource):
    """A subscription to the viewer's notifications."""

    context: Context
    viewer: User
    since: StreamPosition | None

    def __aiter__(self) -> AsyncGenerator[StreamReady | NotificationArrived | NotificationRemoved, None]:
        stream = user_stream(self.viewer.organization_id, self.viewer.id)
        return viewer_events(self.context.stores.hub, stream, self.since, self._visible_record)

    async def _visible_record(
        self, cursor: Cursor, event: HydratedEvent
    ) -> NotificationArrived | NotificationRemoved | None:
        """Returns the event's record, or None if the viewer has blocked or muted its subject."""
        if isinstance(event.subject, RemovedNotification):
            return NotificationRemoved(cursor, event.event.at, "NotificationRemoved", event.subject.notification_id)
        if event.subject.is_hidden(await self.context.hidden_subjects()):
            return None
        return NotificationArrived(cursor, event.event.at, "NotificationArrived", event.subject)


async def home_feed_events(info: Info, since: Since = UNSET) -> HomeFeedEventSource:
    """Subscribes to posts that arrive in the viewer's home feed and leave it."""
    viewer, cursor = require_member(info), text_or_none(since)
    stream = home_stream(viewer.organization_id, viewer.id)
    return HomeFeedEventSource(info.context, viewer, None if cursor is None else parse_positions(stream, cursor))


async def notification_events(info: Info, since: Since = UNSET) -> NotificationEventSource:
    """Subscribes to the viewer's notifications that arrive or are removed."""
    viewer, cursor = require_member(info), text_or_none(since)
    stream = user_stream(viewer.organization_id, viewer.id)
    return NotificationEventSource(info.context, viewer, None if cursor is None else parse_cursor(stream, cursor))

"""The subscriptions `homeFeedEvents` and `notificationEvents`, which are executed for each viewer separately."""

import asyncio
import math
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial

import structlog
from strawberry import UNSET

from resolvers.access import require_member
from resolvers.arguments import Since, text_or_none
from resolvers.context import Context, Info
from resolvers.events import RESTART_S, Event, StreamReady, ViewerEventSource, viewer_events
from storage.errors import DomainError
from storage.feed.home import SEEN_EVERY_S, HomeStore
from storage.feed.records import Post, RemovedPost, author_stream, home_stream
from storage.identity.records import User, user_stream
from storage.notifications import Notification
from storage.streams.hub import HydratedEvent
from storage.streams.log import Cursor, Position, Stream, parse_cursor
from storage.streams.merged_subscription import MergedEvent, MergedStart, Positions, follow_merged, parse_positions

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


HomeEventRecord = StreamReady | PostArrived | PostRemoved


@dataclass(frozen=True, slots=True)
class HomeSource(ViewerEventSource):
    """A subscription to a reader's home stream, merged with the streams of the merged authors they follow."""

    context: Context
    viewer: User
    since: Positions | None

    async def __aiter__(self) -> AsyncGenerator[HomeEventRecord, None]:
        """Yields events; after a failure it continues from the last position."""
        main, positions = home_stream(self.viewer.organization_id, self.viewer.id), self.since
        others = partial(self._merged_authors, _PresenceRecorder(self.context.stores.home, self.viewer))
        while True:
            try:
                steps = follow_merged(self.context.stores.hub, main, others, positions)
                async with aclosing(steps):
                    async for step in steps:
                        positions = parse_positions(main, step.cursor)
                        event = await self._to_record(step)
                        if event is not None:
                            yield event
            except DomainError:
                raise
            except Exception as error:
                log.warning("home_subscription_restarted", stream=main.name, error=repr(error))
            await asyncio.sleep(RESTART_S)

    async def _merged_authors(self, presence: "_PresenceRecorder") -> Mapping[Stream, Position]:
        """Returns the streams of merged authors, and records presence. Called at the start and every ten seconds."""
        await presence.renew()
        organization_id, reader_id = self.viewer.organization_id, self.viewer.id
        blocked = (await self.context.visibility()).blocked
        reader = await self.context.stores.home.reader(organization_id, reader_id, blocked)
        return {author_stream(organization_id, author): begin for author, begin in reader.merged.items()}

    async def _to_record(self, step: MergedStart | MergedEvent) -> HomeEventRecord | None:
        if isinstance(step, MergedStart):
            return StreamReady(step.cursor, step.at, step.resumed)
        subject, is_own = step.event.subject, step.stream.kind == "home"
        # Pushed posts arrive on the reader's own stream, merged posts on their author's stream.
        if subject.merged is is_own and subject.author_id != self.viewer.id:
            return None
        if not await self._may_see(subject.author_id):
            return None
        return _home_record(step.cursor, step.event)

    async def _may_see(self, author_id: str) -> bool:
        if author_id == self.viewer.id:
            return True
        relations, organization_id = self.context.stores.relations, self.viewer.organization_id
        if author_id in await relations.blocked_by(organization_id, self.viewer.id):
            return False
        return await relations.follows(organization_id, self.viewer.id, author_id)


def _home_record(cursor: Cursor, event: HydratedEvent) -> HomeEventRecord:
    at, subject = event.event.at, event.subject
    if isinstance(subject, RemovedPost):
        return PostRemoved(cursor, at, "PostRemoved", subject.post_id)
    return PostArrived(cursor, at, "PostArrived", subject)


@dataclass(slots=True)
class _PresenceRecorder:
    """Records a visit once an hour while the reader is subscribed, so that the reader does not count as absent."""

    home: HomeStore
    viewer: User
    renew_at: float = -math.inf

    async def renew(self) -> None:
        """Records a visit, unless one was recorded within the last hour."""
        now = asyncio.get_running_loop().time()
        if now >= self.renew_at:
            await self.home.record_visit(self.viewer.organization_id, self.viewer.id)
            self.renew_at = now + SEEN_EVERY_S


@dataclass(frozen=True, slots=True)
class NotificationSource(ViewerEventSource):
    """A subscription to the viewer's notifications."""

    context: Context
    viewer: User
    since: Position | None

    async def __aiter__(self) -> AsyncGenerator[StreamReady | NotificationArrived, None]:
        """Yields notifications, without those caused by blocked users."""
        stream = user_stream(self.viewer.organization_id, self.viewer.id)
        async with aclosing(viewer_events(self.context.stores.hub, stream, self.since, _notification_record)) as events:
            async for event in events:
                if isinstance(event, StreamReady) or not await self._is_hidden(event.notification):
                    yield event

    async def _is_hidden(self, notification: Notification) -> bool:
        return notification.actor_id in (await self.context.visibility()).blocked


def _notification_record(cursor: Cursor, event: HydratedEvent) -> NotificationArrived:
    return NotificationArrived(cursor, event.event.at, "NotificationArrived", event.subject)


async def home_feed_events(info: Info, since: Since = UNSET) -> HomeSource:
    """Subscribes to posts that arrive in the viewer's home feed and leave it."""
    viewer, text = require_member(info), text_or_none(since)
    main = home_stream(viewer.organization_id, viewer.id)
    return HomeSource(info.context, viewer, None if text is None else parse_positions(main, text))


async def notification_events(info: Info, since: Since = UNSET) -> NotificationSource:
    """Subscribes to the viewer's new notifications."""
    viewer, text = require_member(info), text_or_none(since)
    stream = user_stream(viewer.organization_id, viewer.id)
    return NotificationSource(info.context, viewer, None if text is None else parse_cursor(stream, text))

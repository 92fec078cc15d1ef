"""The subscriptions `localEvents` and `hashtagEvents`, whose executions are shared by their viewers."""

from collections.abc import Collection, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from strawberry import UNSET

from resolvers.access import require_member
from resolvers.arguments import Since, text_or_none
from resolvers.context import Context, Info
from resolvers.events import HiddenEvents, SharedEventSource, StreamReady, hidden_by_viewer
from resolvers.feed.events import HourlyRecorder, PostArrived, PostRemoved, post_event_record
from resolvers.feed.posts import Hashtag, checked_hashtag
from storage.errors import Forbidden
from storage.feed.records import hashtag_stream, local_stream
from storage.identity.mutes import MuteSubject
from storage.identity.records import User
from storage.streams.hub import EventHub, HydratedEvent
from storage.streams.log import Cursor, Stream, StreamPosition, format_cursor, parse_cursor


@dataclass(frozen=True, slots=True)
class ListEventSource(SharedEventSource):
    """A viewer's subscription to the stream of the local feed or of a hashtag."""

    is_open: ClassVar[bool] = True

    context: Context
    viewer: User
    stream: Stream
    since: StreamPosition | None
    recorder: HourlyRecorder

    @property
    def hub(self) -> EventHub:
        """The hub that delivers the stream's events."""
        return self.context.stores.hub

    def record(self, epoch: str, event: HydratedEvent) -> StreamReady | PostArrived | PostRemoved:
        """Returns the record of an event."""
        return post_event_record(format_cursor(self.stream, StreamPosition(epoch, event.event.n)), event)

    async def hidden_from(self, viewer_ids: Collection[str], events: Sequence[HydratedEvent]) -> HiddenEvents:
        """Returns by viewer which events are about posts of authors whom the viewer blocked or muted."""
        return await hidden_by_viewer([event.subject.author_id for event in events], partial(self._hiding, viewer_ids))

    async def _hiding(self, viewer_ids: Collection[str], author_id: str) -> AbstractSet[str]:
        """Returns the viewers who blocked or muted the author."""
        stores, organization_id = self.context.stores, self.viewer.organization_id
        blockers = await stores.relations.blockers_among(organization_id, author_id, viewer_ids)
        return blockers | await stores.mutes.muters_among(organization_id, MuteSubject.USER, author_id, viewer_ids)

    async def renew(self) -> None:
        """Records once an hour that the stream has subscribers, so that events are added to it."""
        await self.recorder.renew()

    async def departures(self) -> int:
        """Returns 0: every member may subscribe."""
        return 0

    @property
    def departures_stream(self) -> Stream | None:
        """None: every member may subscribe."""
        return None

    async def authorized_among(self, user_ids: Collection[str]) -> AbstractSet[str]:
        """Returns all users: every member may subscribe. Connections of users who are none any more are closed."""
        return set(user_ids)

    def forbidden(self) -> Forbidden:
        """Returns the error for a viewer who lost the permission."""
        return Forbidden("You are no longer a member of the organization.")


async def local_events(info: Info, since: Since = UNSET) -> ListEventSource:
    """Subscribes to posts that are added to the local feed or removed from it."""
    return _source(info, local_stream(require_member(info).organization_id), text_or_none(since))


async def hashtag_events(info: Info, tag: Hashtag, since: Since = UNSET) -> ListEventSource:
    """Subscribes to posts with a hashtag."""
    organization_id = require_member(info).organization_id
    return _source(info, hashtag_stream(organization_id, checked_hashtag(tag)), text_or_none(since))


def _source(info: Info, stream: Stream, cursor: str | None) -> ListEventSource:
    position = None if cursor is None else parse_cursor(stream, Cursor(cursor))
    recorder = HourlyRecorder(partial(info.context.stores.list_subscribers.record, stream))
    return ListEventSource(info.context, require_member(info), stream, position, recorder)

"""The subscriptions `localEvents` and `hashtagEvents`, which are executed for each viewer separately."""

from collections.abc import AsyncGenerator
from dataclasses import dataclass
from functools import partial

from strawberry import UNSET

from resolvers.access import require_member
from resolvers.arguments import Since, text_or_none
from resolvers.context import Context, Info
from resolvers.events import StreamReady, ViewerEventSource, viewer_events
from resolvers.feed.events import HourlyRecorder, PostArrived, PostRemoved, post_event_record
from resolvers.feed.posts import Hashtag, checked_hashtag
from storage.feed.records import hashtag_stream, local_stream
from storage.identity.records import User
from storage.streams.hub import HydratedEvent
from storage.streams.log import Cursor, Stream, StreamPosition, parse_cursor


@dataclass(frozen=True, slots=True)
class ListEventSource(ViewerEventSource):
    """A subscription to the stream of the local feed or of a hashtag."""

    context: Context
    viewer: User
    stream: Stream
    since: StreamPosition | None

    def __aiter__(self) -> AsyncGenerator[StreamReady | PostArrived | PostRemoved, None]:
        stores = self.context.stores
        recorder = HourlyRecorder(partial(stores.list_subscribers.record, self.stream))
        return viewer_events(stores.hub, self.stream, self.since, self._visible_record, recorder.renew)

    async def _visible_record(self, cursor: Cursor, event: HydratedEvent) -> PostArrived | PostRemoved | None:
        """Returns the event's record, or None if the viewer has blocked or muted the post's author."""
        if event.subject.author_id in (await self.context.hidden_subjects()).users:
            return None
        return post_event_record(cursor, event)


async def local_events(info: Info, since: Since = UNSET) -> ListEventSource:
    """Subscribes to posts that are added to the local feed or removed from it."""
    return _source(info, local_stream(require_member(info).organization_id), text_or_none(since))


async def hashtag_events(info: Info, tag: Hashtag, since: Since = UNSET) -> ListEventSource:
    """Subscribes to posts with a hashtag."""
    organization_id = require_member(info).organization_id
    return _source(info, hashtag_stream(organization_id, checked_hashtag(tag)), text_or_none(since))


def _source(info: Info, stream: Stream, cursor: str | None) -> ListEventSource:
    position = None if cursor is None else parse_cursor(stream, Cursor(cursor))
    return ListEventSource(info.context, require_member(info), stream, position)

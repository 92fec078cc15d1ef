"""Subscriptions: which stream a viewer may listen to, and what its events look like."""

import asyncio
import time
from collections.abc import AsyncIterator, Collection, Sequence
from collections.abc import Set as AbstractSet
from contextlib import aclosing
from dataclasses import dataclass
from datetime import UTC, datetime

from strawberry import UNSET

from resolvers.access import joined_topic, member
from resolvers.arguments import Since, given
from resolvers.chat.communities import CommunityId
from resolvers.chat.topics import TopicId
from resolvers.context import Context, Info
from resolvers.events import Event, StreamReady
from storage.chat.records import Message, Topic
from storage.errors import Forbidden
from storage.identity.records import User
from storage.streams.hub import HydratedEvent
from storage.streams.log import Position, Stream, format_cursor, parse_cursor
from storage.streams.subscription import StreamEvent, SubscriptionStart, follow_events

RECHECK_S = 2.0


@dataclass(frozen=True, slots=True)
class MessageEvent(Event):
    """Something happened to a message; `kind` is the event's GraphQL type."""

    kind: str
    message: Message


@dataclass(frozen=True, slots=True)
class TopicEvent(Event):
    """Something happened in a community; `kind` is the event's GraphQL type."""

    kind: str
    topic: Topic


EventRecord = StreamReady | MessageEvent | TopicEvent


@dataclass(frozen=True, slots=True)
class Source:
    """A stream that the viewer may listen to. Iterated, it gives this one viewer's events.

    Servers that know many sources of one stream may read the stream once for all of them, asking `hidden_from` and
    `may_listen` on the way (server/graphql/broadcasts.py). `community_id` is the community that must be joined, if any.
    """

    context: Context
    viewer: User
    stream: Stream
    since: Position | None
    community_id: str | None

    def ready(self, step: SubscriptionStart) -> StreamReady:
        """The record of a beginning."""
        return StreamReady(format_cursor(self.stream, step.position), step.at, step.resumed)

    def record(self, epoch: str, event: HydratedEvent) -> EventRecord:
        """The record of an event whose object is there."""
        cursor = format_cursor(self.stream, Position(epoch, event.event.n))
        if isinstance(event.subject, Message):
            return MessageEvent(cursor, event.event.at, event.event.kind, event.subject)
        return TopicEvent(cursor, event.event.at, event.event.kind, event.subject)

    @staticmethod
    def now() -> datetime:
        """When a beginning happens that no step of the stream tells of."""
        return datetime.now(UTC)

    async def settle(self, position: Position) -> None:
        """Returns when nobody who is told this position gets a page without what came before it.

        Its messages come as no event any more, and a post that has not returned yet may be missing in a pool.
        """
        if self.stream.kind == "topic":
            await self.context.stores.messages.settle(self.stream.id, position.n)

    async def hidden_from(self, events: Sequence[HydratedEvent]) -> list[frozenset[str]]:
        """For each event the ids of those who must not see it: they blocked its author."""
        authors = list({event.subject.author_id for event in events if isinstance(event.subject, Message)})
        look_up, organization_id = self.context.stores.relations.blockers_of, self.viewer.organization_id
        found = await asyncio.gather(*(look_up(organization_id, author) for author in authors))
        blockers = dict(zip(authors, found, strict=True))
        return [blockers.get(getattr(event.subject, "author_id", ""), frozenset()) for event in events]

    async def departures(self) -> int:
        """Grows whenever somebody who belonged where one must belong no longer does."""
        if self.community_id is None:
            return 0
        return await self.context.stores.communities.departures(self.community_id)

    async def may_listen(self, user_ids: Collection[str]) -> AbstractSet[str]:
        """Those of the users who belong where one must belong, now."""
        if self.community_id is None:
            return set(user_ids)
        return await self.context.stores.communities.members_among(self.community_id, user_ids)

    async def __aiter__(self) -> AsyncIterator[EventRecord]:
        """The viewer's events. Raises: Forbidden, at the latest 5 s after the viewer left."""
        checked_at = time.monotonic()
        async with aclosing(follow_events(self.context.stores.hub, self.stream, self.since)) as steps:
            async for step in steps:
                if time.monotonic() - checked_at >= RECHECK_S:
                    if not await self.may_listen([self.viewer.id]):
                        raise left()
                    checked_at = time.monotonic()
                if isinstance(step, SubscriptionStart):
                    if not step.resumed:
                        await self.settle(step.position)
                    yield self.ready(step)
                elif isinstance(step, StreamEvent) and not await self._is_hidden(step.event):
                    yield self.record(step.position.epoch, step.event)

    async def _is_hidden(self, event: HydratedEvent) -> bool:
        (hidden_from,) = await self.hidden_from([event])
        return self.viewer.id in hidden_from


def left() -> Forbidden:
    """Why a subscription ends whose viewer may no longer listen."""
    return Forbidden("You left the community.")


async def topic_events(info: Info, topic_id: TopicId, since: Since = UNSET) -> Source:
    """What happens to the messages of a topic, without those of whom the viewer blocked."""
    viewer = member(info)
    topic = await joined_topic(info, topic_id)
    return _source(info, viewer, Stream("topic", topic.id), given(since), topic.community_id)


async def community_events(info: Info, community_id: CommunityId, since: Since = UNSET) -> Source:
    """New topics of a community, and which topics have new messages."""
    viewer = member(info)
    community = await info.context.stores.communities.get(viewer.organization_id, community_id)
    return _source(info, viewer, Stream("community", community.id), given(since), None)


def _source(info: Info, viewer: User, stream: Stream, since: str | None, community_id: str | None) -> Source:
    position = None if since is None else parse_cursor(stream, since)
    return Source(info.context, viewer, stream, position, community_id)

"""Subscriptions to topics and communities: access checks, and the records of their events."""

from collections.abc import Collection, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from strawberry import UNSET, Parent

from resolvers.access import find_visible_community, require_joined_topic, require_member, require_visible_topics
from resolvers.arguments import Since, text_or_none
from resolvers.chat.communities import CommunityId
from resolvers.chat.topics import TopicId
from resolvers.context import Context, Info
from resolvers.events import Event, HiddenEvents, SharedEventSource, StreamReady, hidden_by_viewer
from storage.chat.memberships import community_stream, removals_stream
from storage.chat.records import Community, CommunityVisibility, Message, Topic
from storage.errors import Forbidden
from storage.identity.records import User
from storage.streams.hub import EventHub, HydratedEvent
from storage.streams.log import Stream, StreamPosition, format_cursor, parse_cursor


@dataclass(frozen=True, slots=True)
class MessageEvent(Event):
    """An event of a topic's stream. `kind` is the event's GraphQL type."""

    kind: str
    message: Message


@dataclass(frozen=True, slots=True)
class TopicEvent(Event):
    """An event of a community's stream. `kind` is the event's GraphQL type."""

    kind: str
    topic: Topic


@dataclass(frozen=True, slots=True)
class CommunityEvent(Event):
    """An event about a community itself, in its own stream. `kind` is the event's GraphQL type."""

    kind: str
    community_id: str


@dataclass(frozen=True, slots=True)
class TypingEvent(Event):
    """A person started or stopped typing in a topic. `kind` is the event's GraphQL type."""

    kind: str
    user_id: str


ChatEventRecord = StreamReady | MessageEvent | TopicEvent | CommunityEvent | TypingEvent


async def changed_community(root: Parent[CommunityEvent], info: Info) -> Community | None:
    """Returns the community of an event; None if the viewer cannot see it any more."""
    return await find_visible_community(info, root.community_id)


@dataclass(frozen=True, slots=True)
class ChatEventSource(SharedEventSource):
    """A viewer's subscription to a topic or community.

    Members of the community may subscribe. While the community is public, every viewer may subscribe to its stream of
    kind "community", which has no messages.
    """

    context: Context
    viewer: User
    stream: Stream
    since: StreamPosition | None
    community_id: str

    @property
    def hub(self) -> EventHub:
        """The hub that delivers the stream's events."""
        return self.context.stores.hub

    def record(self, epoch: str, event: HydratedEvent) -> ChatEventRecord:
        """Returns the record of an event."""
        cursor = format_cursor(self.stream, StreamPosition(epoch, event.event.n))
        if isinstance(event.subject, Message):
            return MessageEvent(cursor, event.event.at, event.event.kind, event.subject)
        if isinstance(event.subject, Community):
            return CommunityEvent(cursor, event.event.at, event.event.kind, event.subject.id)
        return TopicEvent(cursor, event.event.at, event.event.kind, event.subject)

    async def hidden_from(self, viewer_ids: Collection[str], events: Sequence[HydratedEvent]) -> HiddenEvents:
        """Returns by viewer which events are by authors that the viewer blocked."""
        authors = [event.subject.author_id if isinstance(event.subject, Message) else None for event in events]
        blockers_among, organization_id = self.context.stores.relations.blockers_among, self.viewer.organization_id
        return await hidden_by_viewer(authors, lambda author: blockers_among(organization_id, author, viewer_ids))

    async def renew(self) -> None:
        """Does nothing: the streams of topics and communities have events also without subscribers."""

    async def departures(self) -> int:
        """Returns a number that grows whenever a user loses the permission to subscribe."""
        return await self.context.stores.communities.departures(self.community_id)

    @property
    def departures_stream(self) -> Stream | None:
        """The stream of people who lost the membership."""
        return removals_stream(self.community_id)

    async def authorized_among(self, user_ids: Collection[str]) -> AbstractSet[str]:
        """Returns those of the users who may receive the events now."""
        communities = self.context.stores.communities
        if self.stream.kind == "community":
            community = await communities.get(self.viewer.organization_id, self.community_id)
            if community.visibility is CommunityVisibility.PUBLIC:
                return set(user_ids)
        return await communities.members_among(self.community_id, user_ids)

    def forbidden(self) -> Forbidden:
        """Returns the error for a viewer who left the community or was removed."""
        return Forbidden("You are no longer a member of the community.")


async def topic_events(info: Info, topic_id: TopicId, since: Since = UNSET) -> ChatEventSource:
    """Subscribes to a topic's messages, without those of users whom the viewer blocked."""
    viewer = require_member(info)
    topic = await require_joined_topic(info, topic_id)
    return _source(info, viewer, Stream("topic", topic.id), text_or_none(since), topic.community_id)


async def community_events(info: Info, community_id: CommunityId, since: Since = UNSET) -> ChatEventSource:
    """Subscribes to changes of a community, its new topics and the activity of its topics."""
    viewer = require_member(info)
    community = await require_visible_topics(info, community_id)
    return _source(info, viewer, community_stream(community.id), text_or_none(since), community.id)


def _source(info: Info, viewer: User, stream: Stream, since: str | None, community_id: str) -> ChatEventSource:
    position = None if since is None else parse_cursor(stream, since)
    return ChatEventSource(info.context, viewer, stream, position, community_id)

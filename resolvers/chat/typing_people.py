"""People who are typing in a topic or conversation: their signals, and what other people see of them."""

import asyncio
from collections.abc import Collection, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Annotated

import strawberry
from strawberry import Parent

from resolvers.access import participants_among, require_joined_topic, require_member
from resolvers.chat.events import ChatEventRecord, ChatEventSource, TypingEvent
from resolvers.chat.presence import people_with_presence
from resolvers.chat.topics import TopicId
from resolvers.context import Info
from resolvers.events import HiddenEvents, hidden_by_viewer
from storage.chat.records import Topic
from storage.errors import Forbidden
from storage.identity.presence.typing_hub import typing_stream
from storage.identity.records import User
from storage.streams.hub import EventHub, HydratedEvent
from storage.streams.log import Stream, StreamPosition, format_cursor


async def set_typing(
    info: Info,
    topic_id: TopicId,
    typing: Annotated[
        bool, strawberry.argument(description="True: the viewer is typing. False: the viewer has stopped.")
    ] = True,
) -> bool:
    """Signals that the viewer is typing, or has stopped. Returns whether others may see the viewer typing."""
    viewer, hub = require_member(info), info.context.stores.typing
    topic = await _require_joined_topic(info, topic_id)
    if not (typing and await _is_shown(info, topic)):
        await hub.end(topic.id, viewer.id)
        return False
    await hub.begin(topic.id, viewer.id)
    return True


async def typing_users(info: Info, topic_id: TopicId) -> list[User]:
    """Returns who else is typing, as far as the viewer may see it."""
    viewer, topic = require_member(info), await _require_joined_topic(info, topic_id)
    typing = await info.context.stores.typing.people(topic.id)
    others = [user_id for user_id in typing if user_id != viewer.id]
    return await people_with_presence(info.context, viewer, topic.community_id, others) if others else []


async def typing_user(root: Parent[TypingEvent], info: Info) -> User:
    """Returns the person who started or stopped typing."""
    return await info.context.stores.users.get(require_member(info).organization_id, root.user_id)


async def _require_joined_topic(info: Info, topic_id: str) -> Topic:
    """Returns a topic of a community or conversation that the viewer has joined. Raises: NotFound, Forbidden."""
    viewer, topic = require_member(info), await require_joined_topic(info, topic_id)
    # People who were asked to join a conversation read it, but nobody learns that they do.
    if not await participants_among(info.context, viewer.organization_id, topic.community_id, [viewer.id]):
        raise Forbidden("Accept the conversation first.")
    return topic


async def _is_shown(info: Info, topic: Topic) -> bool:
    """Returns whether the viewer may write to the topic, and no switch hides presence."""
    viewer, stores = require_member(info), info.context.stores
    stored, is_enabled, muted_until, community = await asyncio.gather(
        stores.users.get(*viewer.key),
        stores.presence_settings.is_enabled(viewer.organization_id),
        stores.moderation.muted_until(topic.community_id, viewer.id),
        stores.communities.find(viewer.organization_id, topic.community_id),
    )
    is_archived = topic.archived_at or (community and community.archived_at)
    return is_enabled and not stored.hides_presence and muted_until is None and not is_archived


@dataclass(frozen=True, slots=True)
class TypingEventSource(ChatEventSource):
    """A viewer's subscription to the people who are typing in a topic or conversation."""

    @property
    def hub(self) -> EventHub:
        """The hub of people who are typing."""
        return self.context.stores.typing

    @property
    def departures_stream(self) -> Stream | None:
        """None, since the hub has no stream of departures. Broadcasts recheck permissions every 2 s."""
        return None

    def record(self, epoch: str, event: HydratedEvent) -> ChatEventRecord:
        """Returns the record of an event."""
        cursor = format_cursor(self.stream, StreamPosition(epoch, event.event.n))
        return TypingEvent(cursor, event.event.at, event.event.kind, event.subject)

    async def hidden_from(self, viewer_ids: Collection[str], events: Sequence[HydratedEvent]) -> HiddenEvents:
        """Returns by viewer which events are about the viewer, or about people with a block in either direction."""
        people = [event.subject for event in events]
        return await hidden_by_viewer(people, lambda person: self._hiding(person, viewer_ids))

    async def _hiding(self, user_id: str, viewer_ids: Collection[str]) -> AbstractSet[str]:
        """Returns the viewers who must not see the person: the person, and those with a block."""
        relations, organization_id = self.context.stores.relations, self.viewer.organization_id
        blocked, blockers = await asyncio.gather(
            relations.blocked_users_of(organization_id, user_id),
            relations.blockers_among(organization_id, user_id, viewer_ids),
        )
        return (blockers | blocked | {user_id}).intersection(viewer_ids)

    async def authorized_among(self, user_ids: Collection[str]) -> AbstractSet[str]:
        """Returns those of the users who have joined the community or the conversation."""
        return await participants_among(self.context, self.viewer.organization_id, self.community_id, user_ids)


async def typing_events(info: Info, topic_id: TopicId) -> TypingEventSource:
    """Subscribes to the people who are typing in a topic or conversation."""
    viewer, topic = require_member(info), await _require_joined_topic(info, topic_id)
    return TypingEventSource(info.context, viewer, typing_stream(topic.id), None, topic.community_id)

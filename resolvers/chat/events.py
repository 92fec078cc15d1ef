"""Subscriptions: a stream followed for one viewer, until the viewer may no longer listen."""

import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from strawberry import UNSET

from resolvers.access import joined_topic, member
from resolvers.arguments import Since, given
from resolvers.chat.communities import CommunityId
from resolvers.chat.topics import TopicId
from resolvers.context import Info
from storage.chat.records import Message, Topic
from storage.errors import Forbidden
from storage.events import Cursor, Stream, format_cursor, parse_cursor
from storage.follow import Arrived, Idle, Ready, follow
from storage.identity import User

RECHECK_S = 2.0


@dataclass(frozen=True, slots=True)
class Event:
    """What every event carries: the cursor to resume from, and when."""

    cursor: Cursor
    at: datetime


@dataclass(frozen=True, slots=True)
class StreamReady(Event):
    """A position: the subscription goes on from here."""

    resumed: bool


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


async def topic_events(
    info: Info, topic_id: TopicId, since: Since = UNSET
) -> AsyncGenerator[StreamReady | MessageEvent, None]:
    """What happens to the messages of a topic, without those of whom the viewer blocked."""
    viewer = member(info)
    topic = await joined_topic(info, viewer, topic_id)
    stream = Stream("topic", topic.id)
    async with aclosing(_events(info, viewer, stream, topic.community_id, given(since))) as steps:
        async for step in steps:
            if isinstance(step, StreamReady):
                yield step
            elif step.event.subject.author_id not in (await info.context.sight(viewer)).blocked:
                event = step.event.event
                yield MessageEvent(format_cursor(stream, step.position), event.at, event.kind, step.event.subject)


async def community_events(
    info: Info, community_id: CommunityId, since: Since = UNSET
) -> AsyncGenerator[StreamReady | TopicEvent, None]:
    """New topics of a community, and which topics have new messages."""
    viewer = member(info)
    community = await info.context.stores.communities.get(viewer.organization_id, community_id)
    stream = Stream("community", community.id)
    async with aclosing(_events(info, viewer, stream, None, given(since))) as steps:
        async for step in steps:
            if isinstance(step, StreamReady):
                yield step
            else:
                event = step.event.event
                yield TopicEvent(format_cursor(stream, step.position), event.at, event.kind, step.event.subject)


async def _events(
    info: Info, viewer: User, stream: Stream, community_id: str | None, since: str | None
) -> AsyncGenerator[StreamReady | Arrived, Any]:
    """A stream's steps. Ends with Forbidden at the latest 5 s after the viewer left the community, if one is named."""
    position = None if since is None else parse_cursor(stream, since)
    checked_at = time.monotonic()
    async with aclosing(follow(info.context.stores.hub, stream, position)) as steps:
        async for step in steps:
            if community_id is not None and time.monotonic() - checked_at >= RECHECK_S:
                if not await info.context.stores.communities.is_member(community_id, viewer.id):
                    raise Forbidden("You left the community.")
                checked_at = time.monotonic()
            if isinstance(step, Ready):
                yield StreamReady(format_cursor(stream, step.position), step.at, step.resumed)
            elif not isinstance(step, Idle):
                yield step

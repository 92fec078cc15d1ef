"""Conversations: direct messages between two people or in a group. Topics of the same id hold their messages."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from typing import Annotated

import strawberry
from strawberry import ID, UNSET, Parent

from resolvers.access import require_member
from resolvers.arguments import Inclusive, Latest, Oldest, PageLimit, Since, checked_text, page_range, text_or_none
from resolvers.context import Context, Info
from resolvers.events import Event, StreamReady, ViewerEventSource, viewer_events
from resolvers.idempotency import input_key
from resolvers.inputs import StartConversationInput
from storage.chat.conversations.changes import MAX_PEOPLE
from storage.chat.conversations.records import Conversation, ConversationPerson, ConversationState
from storage.chat.conversations.rules import conversations_stream
from storage.errors import BadUserInput
from storage.identity.records import User
from storage.streams.hub import HydratedEvent
from storage.streams.log import Cursor, StreamPosition, parse_cursor
from storage.timeline import TimelinePage

MAX_NAME_CHARS = 100

ConversationId = Annotated[ID, strawberry.argument(description="Id of the conversation.")]


async def conversation(info: Info, id: ConversationId) -> Conversation:
    """Returns a conversation of the viewer."""
    return await info.context.stores.conversations.get(require_member(info), id)


async def conversations(
    info: Info,
    state: Annotated[
        ConversationState,
        strawberry.argument(
            description="JOINED: conversations that the viewer has joined. REQUESTED: requests that wait for the "
            "viewer."
        ),
    ] = ConversationState.JOINED,
    oldest: Oldest = UNSET,
    latest: Latest = UNSET,
    limit: PageLimit = 50,
    inclusive: Inclusive = True,
) -> TimelinePage[Conversation]:
    """Returns a page of the viewer's conversations, ordered by last activity."""
    viewer = require_member(info)
    range_ = page_range(oldest, latest, limit, inclusive)
    return await info.context.stores.conversations.page(viewer, state, range_)


async def start_conversation(
    info: Info,
    input: Annotated[StartConversationInput, strawberry.argument(description="People and name of the conversation.")],
) -> Conversation:
    """Starts a conversation, or returns the one that two people have."""
    viewer = require_member(info)
    name = checked_text("groupName", input.group_name, 0, MAX_NAME_CHARS)
    people = await _other_people(info, viewer, input.user_ids)
    if len(people) == 1 and name:
        raise BadUserInput("groupName", "no name for a conversation between two people")
    key = input_key(viewer, "startConversation", input)
    return await info.context.stores.conversations.start(viewer, people, name, key)


async def accept_conversation(info: Info, conversation_id: ConversationId) -> Conversation:
    """Accepts a request."""
    return await info.context.stores.conversations.accept(require_member(info), conversation_id)


async def decline_conversation(info: Info, conversation_id: ConversationId) -> bool:
    """Declines a request."""
    viewer, conversations = require_member(info), info.context.stores.conversations
    await conversations.leave(viewer.organization_id, viewer.id, conversation_id, only_request=True)
    return True


async def leave_conversation(info: Info, conversation_id: ConversationId) -> bool:
    """Leaves a conversation, or declines the request."""
    viewer = require_member(info)
    await info.context.stores.conversations.leave(viewer.organization_id, viewer.id, conversation_id)
    return True


async def add_to_conversation(
    info: Info,
    conversation_id: ConversationId,
    user_ids: Annotated[list[ID], strawberry.argument(description="Ids of the people, 1 to 49.")],
) -> Conversation:
    """Adds people to a group."""
    viewer, conversations = require_member(info), info.context.stores.conversations
    await conversations.get(viewer, conversation_id)
    return await conversations.add(viewer, conversation_id, await _other_people(info, viewer, user_ids))


async def rename_conversation(
    info: Info,
    conversation_id: ConversationId,
    name: Annotated[str, strawberry.argument(description="New name, at most 100 characters. Empty: no name.")],
) -> Conversation:
    """Renames a group."""
    viewer = require_member(info)
    checked_text("name", name, 0, MAX_NAME_CHARS)
    return await info.context.stores.conversations.rename(viewer, conversation_id, name)


async def _other_people(info: Info, viewer: User, ids: Sequence[str]) -> list[User]:
    """Returns the users, each once. Raises: BadUserInput; NotFound for an id of no user."""
    distinct = list(dict.fromkeys(ids))
    if not 1 <= len(distinct) < MAX_PEOPLE or viewer.id in distinct:
        raise BadUserInput("userIds", f"the ids of 1 to {MAX_PEOPLE - 1} other people")
    get = info.context.stores.users.get
    return list(await asyncio.gather(*(get(viewer.organization_id, each) for each in distinct)))


async def state(root: Parent[Conversation], info: Info) -> ConversationState:
    """Returns the viewer's state."""
    # A viewer who leaves during the query has no state, and gets REQUESTED. The messages are then hidden already.
    return root.state_of(require_member(info).id) or ConversationState.REQUESTED


async def person_user(root: Parent[ConversationPerson], info: Info) -> User:
    """Returns the person."""
    return (await person_users([root], info))[0]


async def person_users(people: Sequence[ConversationPerson], info: Info) -> list[User]:
    """Returns the user of each person."""
    return await info.context.stores.users.get_all(
        require_member(info).organization_id, [each.user_id for each in people]
    )


@dataclass(frozen=True, slots=True)
class ConversationEvent(Event):
    """A conversation of the viewer changed. `conversation` is None if the viewer does not see it any more."""

    kind: str
    conversation_id: str
    conversation: Conversation | None


@dataclass(frozen=True, slots=True)
class ConversationEventSource(ViewerEventSource):
    """A subscription to the viewer's conversations."""

    context: Context
    viewer: User
    since: StreamPosition | None

    def __aiter__(self) -> AsyncGenerator[StreamReady | ConversationEvent, None]:
        stream = conversations_stream(self.viewer.organization_id, self.viewer.id)
        return viewer_events(self.context.stores.hub, stream, self.since, self._record)

    async def _record(self, cursor: Cursor, event: HydratedEvent) -> ConversationEvent | None:
        # Read for this event: the hub's copy may be older than the viewer's departure.
        id_ = event.subject.id
        conversation = await self.context.stores.conversations.find(self.viewer, id_)
        return ConversationEvent(cursor, event.event.at, event.event.kind, id_, conversation)


async def conversation_events(info: Info, since: Since = UNSET) -> ConversationEventSource:
    """Subscribes to the viewer's conversations."""
    viewer, cursor = require_member(info), text_or_none(since)
    stream = conversations_stream(viewer.organization_id, viewer.id)
    return ConversationEventSource(info.context, viewer, None if cursor is None else parse_cursor(stream, cursor))

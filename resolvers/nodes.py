"""The lookup of an object by its id alone, whatever its type."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Annotated

import strawberry
from strawberry import ID

import resolvers.calls.jobs
import resolvers.chat.communities
import resolvers.chat.conversations
import resolvers.chat.messages
import resolvers.chat.threads
import resolvers.chat.topics
import resolvers.content_reports
import resolvers.feed.fan_outs
import resolvers.feed.posts
import resolvers.files.uploads
import resolvers.identity
import resolvers.publishing.posts
from resolvers.access import require_role, require_signed_in
from resolvers.context import Context, Info
from storage.calls.records import CallJob
from storage.chat.conversations.records import Conversation
from storage.chat.records import Community, Message, Thread, Topic
from storage.errors import BadUserInput, Forbidden, NotFound
from storage.feed.content_reports.records import ContentReport
from storage.feed.records import FanOut, Post
from storage.files.records import StoredFile
from storage.identity.keys.records import ServiceKey
from storage.identity.records import User
from storage.identity.roles import Role
from storage.ids import TYPES_IN_IDS, IdOfType
from storage.publishing.records import ScheduledPost

MAX_NODES = 100

NodeRecord = (
    Community
    | Topic
    | Message
    | Post
    | ContentReport
    | CallJob
    | ScheduledPost
    | User
    | Conversation
    | Thread
    | StoredFile
    | FanOut
    | ServiceKey
)


@dataclass(frozen=True, slots=True)
class NodeType:
    """How the objects of one GraphQL type are found."""

    record: type
    find: Callable[[Info, ID], Awaitable[NodeRecord]]
    """Returns the object. Raises: NotFound, Forbidden."""

    scope: str | None
    """The scope that a service key needs; None if no key may find such objects."""


async def _thread(info: Info, id_: ID) -> Thread:
    """Returns the thread whose topic has this id, if the viewer may read the message that it belongs to."""
    topic = await resolvers.chat.topics.topic(info, id_)
    parent = await resolvers.chat.messages.message(info, ID(topic.parent_message_id or ""))
    thread = await resolvers.chat.threads.thread(parent, info)
    if thread is None:
        raise NotFound("thread", id_)
    return thread


async def _fan_out(info: Info, id_: ID) -> FanOut:
    """Returns the fan-out of one of the viewer's posts."""
    post = await resolvers.feed.posts.post(info, id_)
    fan_out = await resolvers.feed.fan_outs.fan_out(post, info)
    if fan_out is None:
        raise NotFound("fan-out", id_)
    return fan_out


async def _service_key(info: Info, id_: ID) -> ServiceKey:
    viewer = require_role(info, Role.ADMIN)
    return await info.context.stores.service_keys.get(viewer.organization_id, id_)


NODE_TYPES = {
    "Community": NodeType(Community, resolvers.chat.communities.community, "chat:read"),
    "Topic": NodeType(Topic, resolvers.chat.topics.topic, "chat:read"),
    "Message": NodeType(Message, resolvers.chat.messages.message, "chat:read"),
    "Post": NodeType(Post, resolvers.feed.posts.post, "feed:read"),
    "ContentReport": NodeType(ContentReport, resolvers.content_reports.content_report, "moderation:read"),
    "CallJob": NodeType(CallJob, resolvers.calls.jobs.call_job, "calls:read"),
    "ScheduledPost": NodeType(ScheduledPost, resolvers.publishing.posts.scheduled_post, "publishing:read"),
    "User": NodeType(User, resolvers.identity.user, "identity:read"),
    "Conversation": NodeType(Conversation, resolvers.chat.conversations.conversation, "chat:read"),
    "Thread": NodeType(Thread, _thread, "chat:read"),
    "Upload": NodeType(StoredFile, resolvers.files.uploads.upload, "files:read"),
    "FanOut": NodeType(FanOut, _fan_out, "feed:read"),
    "ServiceKey": NodeType(ServiceKey, _service_key, None),
}
"""The types that implement Node, by name.

An id that names no type is looked up in all types with plain ids at once, and the first of them that has it counts.
"""

_NAMES = {node_type.record: name for name, node_type in NODE_TYPES.items()}


def type_name_of(record: object) -> str:
    """Returns the name of the GraphQL type of a node's record."""
    return _NAMES[type(record)]


async def node(info: Info, id: Annotated[ID, strawberry.argument(description="Id of the object.")]) -> NodeRecord:
    """Returns the object with this id that the viewer may see."""
    require_signed_in(info)
    types = [each for name, each in NODE_TYPES.items() if _may_have(name, id) and _may_find(info.context, each)]
    found = await asyncio.gather(*(_find(node_type, info, id) for node_type in types))
    first = next((each for each in found if each is not None), None)
    if first is None:
        raise NotFound("object", id)
    return first


async def nodes(
    info: Info,
    ids: Annotated[list[ID], strawberry.argument(description=f"Ids of the objects, at most {MAX_NODES}.")],
) -> list[NodeRecord | NotFound]:
    """Returns the objects with these ids, and the error for each that is not found."""
    require_signed_in(info)
    if len(ids) > MAX_NODES:
        raise BadUserInput("ids", f"at most {MAX_NODES} ids, not {len(ids)}")
    return await asyncio.gather(*(_node_or_error(info, each) for each in ids))


async def _node_or_error(info: Info, id_: ID) -> NodeRecord | NotFound:
    # graphql-core raises an exception in a list as the error of its item.
    try:
        return await node(info, id_)
    except NotFound as error:
        return error


def _may_have(type_name: str, id_: str) -> bool:
    """Returns whether an object of the type may have the id: the type that the id names, or one with plain ids."""
    return type_name == id_.type_name if isinstance(id_, IdOfType) else type_name not in TYPES_IN_IDS


def _may_find(context: Context, node_type: NodeType) -> bool:
    """Returns whether the credentials allow the lookup: only service keys need a scope."""
    return context.scopes is None or node_type.scope in context.scopes


async def _find(node_type: NodeType, info: Info, id_: ID) -> NodeRecord | None:
    try:
        return await node_type.find(info, id_)
    except (NotFound, Forbidden):
        return None

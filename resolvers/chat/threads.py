"""Threads: the replies to a message as the viewer sees them, and the topic for a new reply."""

from collections.abc import Sequence

from strawberry import Parent

import resolvers.chat.topics
from resolvers.access import require_member
from resolvers.context import Info
from storage.chat.records import Message, Thread, Topic
from storage.chat.threads.rules import thread_id
from storage.errors import BadUserInput, NotFound
from storage.identity.records import User
from storage.ids import MessageKey, message_key
from storage.timeline import Timestamp

MAX_REPLIERS = 5


async def thread(root: Parent[Message], info: Info) -> Thread | None:
    """Returns the thread of a message, or None."""
    return (await threads([root], info))[0]


async def threads(messages: Sequence[Message], info: Info) -> list[Thread | None]:
    """Returns the thread of each message without replies of users whom the viewer blocked, or None."""
    require_member(info)
    with_replies = [message for message in messages if message.thread_summary is not None]
    if not with_replies:
        return [None for _ in messages]
    blocked = (await info.context.viewer_blocks()).blocked
    hidden_counts = [0] * len(with_replies)
    if blocked:
        keys = [message.key for message in with_replies]
        hidden_counts = await info.context.stores.threads.count_replies_by(keys, blocked)
    hidden = dict(zip([message.key for message in with_replies], hidden_counts, strict=True))
    return [_thread(message, hidden.get(message.key, 0), blocked) for message in messages]


def _thread(message: Message, hidden_count: int, blocked: frozenset[str]) -> Thread | None:
    summary = message.thread_summary
    if summary is None:
        return None
    repliers = [(user_id, timestamp) for user_id, timestamp in summary.repliers if user_id not in blocked]
    return Thread(
        thread_id(message.key),
        # A reply that the summary does not count yet may already be among the hidden ones.
        max(summary.replies - hidden_count, 0),
        Timestamp(repliers[0][1]) if repliers else None,
        tuple(user_id for user_id, _ in repliers[:MAX_REPLIERS]),
    )


async def followed(root: Parent[Thread], info: Info) -> bool:
    """Returns whether the viewer follows a thread."""
    return (await followed_of_many([root], info))[0]


async def followed_of_many(threads: Sequence[Thread], info: Info) -> list[bool]:
    """Returns for each thread whether the viewer follows it."""
    ids = [thread.id for thread in threads]
    followed_ids = await info.context.stores.threads.followed_among(ids, require_member(info).id)
    return [id_ in followed_ids for id_ in ids]


async def last_repliers(root: Parent[Thread], info: Info) -> list[User]:
    """Returns the last repliers, the latest first."""
    return (await last_repliers_of_many([root], info))[0]


async def last_repliers_of_many(threads: Sequence[Thread], info: Info) -> list[list[User]]:
    """Returns the last repliers of each thread, the latest first."""
    ids = [thread.replier_ids for thread in threads]
    return await info.context.stores.users.find_each(require_member(info).organization_id, ids)


async def last_reply(root: Parent[Thread], info: Info) -> Message | None:
    """Returns the last reply, or None."""
    return (await last_replies([root], info))[0]


async def last_replies(threads: Sequence[Thread], info: Info) -> list[Message | None]:
    """Returns the last reply of each thread. None if there is none, and up to a second after its deletion."""
    require_member(info)
    keys = [None if each.last_reply_at is None else MessageKey(each.id, each.last_reply_at) for each in threads]
    replies = await info.context.stores.messages.find_many([key for key in keys if key is not None])
    shown = {key: reply for key, reply in replies.items() if reply.deleted_at is None}
    return [None if key is None else shown.get(key) for key in keys]


async def unread_count(root: Parent[Thread], info: Info) -> int:
    """Returns the number of replies after the viewer's read mark, at most 100."""
    return (await unread_counts([root], info))[0]


async def unread_counts(threads: Sequence[Thread], info: Info) -> list[int]:
    """Returns for each thread the number of replies after the viewer's read mark, at most 100."""
    topics = await info.context.stores.topics.find_many([thread.id for thread in threads])
    return await resolvers.chat.topics.unread_counts([topics[thread.id] for thread in threads], info)


async def open_thread(info: Info, topic: Topic, parent_id: str, argument: str = "replyTo") -> Topic:
    """Returns the thread of a message of the topic, which is created if there is none. Raises: BadUserInput, NotFound.

    The caller has checked that the viewer has joined the topic's community.
    """
    viewer, stores, key = require_member(info), info.context.stores, message_key(parent_id)
    nested = BadUserInput(argument, "the id of a message outside of threads; a reply has no thread of its own")
    if topic.thread_parent is not None:
        raise nested
    if key.topic_id != topic.id:
        other = await stores.topics.find(viewer.organization_id, key.topic_id)
        if other is not None and other.thread_parent is not None and other.thread_parent.topic_id == topic.id:
            raise nested
        raise NotFound("message", parent_id)
    parent = await stores.messages.get(key)
    if parent.author_id in (await info.context.viewer_blocks()).blocked:
        raise NotFound("message", parent_id)
    if parent.thread_reply is not None:
        raise nested
    return await stores.threads.open(viewer.organization_id, key, viewer.id)

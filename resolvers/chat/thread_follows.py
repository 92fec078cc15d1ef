"""Following of threads: the threads that the viewer follows, and the two mutations."""

import asyncio
from collections.abc import Sequence

from strawberry import UNSET, Parent

from resolvers.access import require_member
from resolvers.arguments import Inclusive, Latest, Oldest, PageLimit, page_range
from resolvers.chat.messages import MessageId, require_readable
from resolvers.chat.threads import open_thread
from resolvers.context import Info
from storage.chat.records import FollowedThread, Message, Topic
from storage.chat.threads.rules import thread_id
from storage.timeline import TimelinePage


async def followed_threads(
    info: Info, oldest: Oldest = UNSET, latest: Latest = UNSET, limit: PageLimit = 50, inclusive: Inclusive = True
) -> TimelinePage[FollowedThread]:
    """Returns a page of the threads that the viewer follows and may read, ordered by last activity."""
    viewer, stores = require_member(info), info.context.stores
    range_ = page_range(oldest, latest, limit, inclusive)
    places = await stores.communities.joined_by(viewer.organization_id, viewer.id)
    page = await stores.threads.followed(viewer.organization_id, viewer.id, places, range_)
    return page.map(FollowedThread)


async def parent_topic(root: Parent[FollowedThread], info: Info) -> Topic:
    """Returns the topic of the parent message."""
    return (await parent_topics([root], info))[0]


async def parent_topics(threads: Sequence[FollowedThread], info: Info) -> list[Topic]:
    """Returns the topic of each thread's parent message."""
    require_member(info)
    topics = await info.context.stores.topics.find_many({each.parent.topic_id for each in threads})
    return [topics[each.parent.topic_id] for each in threads]


async def parent_message(root: Parent[FollowedThread], info: Info) -> Message | None:
    """Returns the parent message, or None if the viewer has blocked its author."""
    return (await parent_messages([root], info))[0]


async def parent_messages(threads: Sequence[FollowedThread], info: Info) -> list[Message | None]:
    """Returns the parent message of each thread. None if the viewer has blocked its author."""
    require_member(info)
    keys = [each.parent for each in threads]
    viewer_blocks, found = await asyncio.gather(
        info.context.viewer_blocks(), info.context.stores.messages.find_many(keys)
    )
    visible = {key: message for key, message in found.items() if message.author_id not in viewer_blocks.blocked}
    return [visible.get(key) for key in keys]


async def follow_thread(info: Info, message_id: MessageId) -> Message:
    """Makes the viewer follow the thread of a message, which is started if there is none."""
    viewer, stores = require_member(info), info.context.stores
    key = await require_readable(info, viewer, message_id)
    topic = await stores.topics.get(viewer.organization_id, key.topic_id)
    thread = await open_thread(info, topic, message_id, "messageId")
    await stores.threads.follow(thread.id, viewer.id)
    return await stores.messages.get(key)


async def unfollow_thread(info: Info, message_id: MessageId) -> Message:
    """Makes the viewer no longer follow the thread of a message, even if the viewer has blocked its author."""
    viewer, stores = require_member(info), info.context.stores
    key = await require_readable(info, viewer, message_id)
    thread = await stores.topics.find(viewer.organization_id, thread_id(key))
    if thread is not None:
        await stores.threads.unfollow(thread.id, viewer.id)
    message = await stores.messages.get(key)
    is_hidden = message.author_id in (await info.context.viewer_blocks()).blocked
    return message.without_content() if is_hidden else message

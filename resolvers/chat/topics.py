"""Topics as the viewer sees them: last message, unread count, read mark and timeline."""

import asyncio
from collections.abc import Sequence
from typing import Annotated

import strawberry
from strawberry import ID, UNSET, Parent

from resolvers.access import find_visible_topic, require_joined_topic, require_member, restrict_to_members
from resolvers.arguments import Inclusive, Latest, Oldest, PageLimit, checked_timestamp, page_range
from resolvers.context import Info
from storage.chat.records import Community, CommunityVisibility, Message, Topic
from storage.errors import NotFound
from storage.ids import MessageKey
from storage.timeline import TimelinePage, TimelineRange, Timestamp

TopicId = Annotated[ID, strawberry.argument(description="Id of the topic.")]


async def topic(info: Info, id: TopicId) -> Topic:
    """Returns a topic that the viewer may see. Raises: NotFound."""
    topic = await find_visible_topic(info, id)
    if topic is None:
        raise NotFound("topic", id)
    return topic


async def community(root: Parent[Topic], info: Info) -> Community:
    """Returns the community of a topic. For a conversation, makes up a private community, which is not stored."""
    return (await communities([root], info))[0]


async def communities(topics: Sequence[Topic], info: Info) -> list[Community]:
    """Returns the community of each topic. For conversations, makes up private communities."""
    return list(await asyncio.gather(*(_community(each, info) for each in topics)))


async def _community(topic: Topic, info: Info) -> Community:
    if topic.is_conversation:
        count = await info.context.stores.conversations.joined_count(topic.community_id)
        return Community(topic.community_id, topic.organization_id, topic.title, "", count, CommunityVisibility.PRIVATE)
    return await info.context.stores.communities.get(topic.organization_id, topic.community_id)


async def last_message(root: Parent[Topic], info: Info) -> Message | None:
    """Returns the newest message that the viewer may see, or None."""
    return (await last_messages([root], info))[0]


async def last_messages(topics: Sequence[Topic], info: Info) -> list[Message | None]:
    """Returns for each topic the newest message that the viewer may see, or None.

    Reads memberships, blocks and messages at the same time.
    """
    messages = info.context.stores.messages
    keys = [MessageKey(topic.id, topic.last_activity) for topic in topics]
    joined, viewer_blocks, found = await asyncio.gather(
        _joined_community_ids(topics, info), info.context.viewer_blocks(), messages.find_many(keys)
    )
    newest = [found.get(key) if topic.community_id in joined else None for topic, key in zip(topics, keys, strict=True)]
    return await messages.last_visible(newest, viewer_blocks.blocked)


async def unread_count(root: Parent[Topic], info: Info) -> int:
    """Returns the number of messages after the viewer's read mark, at most 100."""
    return (await unread_counts([root], info))[0]


async def unread_counts(topics: Sequence[Topic], info: Info) -> list[int]:
    """Returns for each topic the number of messages after the viewer's read mark, at most 100.

    Reads memberships, blocks and read marks at the same time.
    """
    viewer, store = require_member(info), info.context.stores.topics
    joined, viewer_blocks, marks = await asyncio.gather(
        _joined_community_ids(topics, info),
        info.context.viewer_blocks(),
        store.read_marks([topic.id for topic in topics], viewer.id),
    )
    readable = [(topic, mark) for topic, mark in zip(topics, marks, strict=True) if topic.community_id in joined]
    heads = [(topic.id, topic.last_activity) for topic, _ in readable]
    blocked = viewer_blocks.blocked
    counts = iter(await store.unread_counts_after([mark for _, mark in readable], heads, viewer.id, blocked))
    return [next(counts) if topic.community_id in joined else 0 for topic in topics]


async def read_up_to(root: Parent[Topic], info: Info) -> Timestamp | None:
    """Returns the viewer's read mark, or None."""
    return (await read_marks([root], info))[0]


async def read_marks(topics: Sequence[Topic], info: Info) -> list[Timestamp | None]:
    """Returns for each topic the viewer's read mark, or None. Reads memberships and read marks at the same time."""
    ids, viewer = [topic.id for topic in topics], require_member(info)
    joined, marks = await asyncio.gather(
        _joined_community_ids(topics, info), info.context.stores.topics.read_marks(ids, viewer.id)
    )
    return [mark if topic.community_id in joined else None for topic, mark in zip(topics, marks, strict=True)]


async def messages_of(
    root: Parent[Topic],
    info: Info,
    oldest: Oldest = UNSET,
    latest: Latest = UNSET,
    limit: PageLimit = 50,
    inclusive: Inclusive = True,
) -> TimelinePage[Message] | None:
    """Returns a page of the topic's timeline; None if the viewer has not joined the community."""
    range_ = page_range(oldest, latest, limit, inclusive)
    if not await _is_joined(root, info):
        return None
    viewer_blocks = await info.context.viewer_blocks()
    return await _page(info, root, range_, viewer_blocks.blocked)


async def messages(
    info: Info,
    topic_id: TopicId,
    oldest: Oldest = UNSET,
    latest: Latest = UNSET,
    limit: PageLimit = 50,
    inclusive: Inclusive = True,
) -> TimelinePage[Message]:
    """Returns a page of a topic's timeline."""
    viewer = require_member(info)
    range_ = page_range(oldest, latest, limit, inclusive)
    topics = info.context.stores.topics
    topic, viewer_blocks = await asyncio.gather(
        topics.get(viewer.organization_id, topic_id), info.context.viewer_blocks()
    )
    # The page is read during the membership check, and returned only if the check succeeds.
    _, page = await asyncio.gather(
        restrict_to_members(info, topic.community_id, NotFound("topic", topic_id)),
        _page(info, topic, range_, viewer_blocks.blocked),
    )
    return page


async def messages_around(
    info: Info,
    topic_id: TopicId,
    timestamp: Annotated[
        Timestamp,
        strawberry.argument(description="Centre of the page. No message needs to have exactly this timestamp."),
    ],
    limit: PageLimit = 50,
) -> TimelinePage[Message]:
    """Returns the messages around a timestamp."""
    require_member(info)
    centre = checked_timestamp("timestamp", timestamp)
    page_limit = page_range(centre, UNSET, limit, True).limit
    topic = await require_joined_topic(info, topic_id)
    stores, viewer_blocks = info.context.stores, await info.context.viewer_blocks()
    return await stores.messages.around(topic.id, centre, page_limit, viewer_blocks.blocked)


async def mark_read(
    info: Info,
    topic_id: TopicId,
    timestamp: Annotated[
        Timestamp, strawberry.argument(description="Timestamp of the newest message that the viewer has read.")
    ],
) -> Topic:
    """Moves the viewer's read mark forward, up to the newest message."""
    viewer = require_member(info)
    read_up_to = checked_timestamp("timestamp", timestamp)
    topic = await require_joined_topic(info, topic_id)
    stores = info.context.stores
    has_moved = await stores.topics.mark_read(topic.id, viewer.id, read_up_to, topic.last_activity)
    if has_moved and topic.is_conversation and topic.thread_parent is None:
        await stores.conversations.update_notification(viewer, topic.id)
    return topic


async def _is_joined(topic: Topic, info: Info) -> bool:
    return await info.context.stores.communities.is_member(topic.community_id, require_member(info).id)


async def _joined_community_ids(topics: Sequence[Topic], info: Info) -> set[str]:
    """Returns the ids of the topics' communities that the viewer has joined."""
    require_member(info)
    return await info.context.joined_communities({topic.community_id for topic in topics})


async def _page(info: Info, topic: Topic, range_: TimelineRange, blocked: frozenset[str]) -> TimelinePage[Message]:
    return await info.context.stores.messages.page(topic.id, range_, blocked, last=topic.last_activity)

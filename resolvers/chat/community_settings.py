"""Settings of communities and topics: name or title, visibility, archive, pinned messages and slow mode."""

from collections.abc import Sequence
from typing import Annotated

import strawberry
from strawberry import UNSET, Parent

from resolvers.access import find_visible_topic, require_member, require_moderator
from resolvers.arguments import checked_text, text_or_none
from resolvers.chat.communities import MAX_DESCRIPTION_CHARS, MAX_NAME_CHARS, MAX_TITLE_CHARS, CommunityId
from resolvers.chat.messages import MessageId
from resolvers.chat.topics import TopicId
from resolvers.context import Info
from storage.chat.records import Community, CommunityVisibility, Message, Topic
from storage.chat.roles import Moderator
from storage.errors import BadUserInput, Forbidden, NotFound
from storage.ids import message_key

MAX_SLOW_MODE_S = 21_600
"""Six hours."""


async def update_community(
    info: Info,
    id: CommunityId,
    name: Annotated[
        str | None, strawberry.argument(description="New name, 1 to 100 characters. Omitted or null: unchanged.")
    ] = UNSET,
    description: Annotated[
        str | None,
        strawberry.argument(description="New description, at most 2000 characters. Omitted or null: unchanged."),
    ] = UNSET,
    visibility: Annotated[
        CommunityVisibility | None, strawberry.argument(description="New visibility. Omitted or null: unchanged.")
    ] = UNSET,
) -> Community:
    """Changes the name, the description or the visibility."""
    community, moderator = await require_moderator(info, id)
    new_name, new_description = text_or_none(name), text_or_none(description)
    if new_name is not None:
        checked_text("name", new_name, 1, MAX_NAME_CHARS)
    if new_description is not None:
        checked_text("description", new_description, 0, MAX_DESCRIPTION_CHARS)
    new_visibility = visibility if isinstance(visibility, CommunityVisibility) else None
    moderation = info.context.stores.moderation
    await moderation.update_community(community, moderator, new_name, new_description, new_visibility)
    return await info.context.stores.communities.get(community.organization_id, community.id)


async def archive_community(info: Info, community_id: CommunityId) -> Community:
    """Makes a community read-only."""
    return await _set_archived(info, community_id, True)


async def unarchive_community(info: Info, community_id: CommunityId) -> Community:
    """Ends the archiving of a community."""
    return await _set_archived(info, community_id, False)


async def _set_archived(info: Info, community_id: str, is_archived: bool) -> Community:
    community, moderator = await require_moderator(info, community_id)
    stores = info.context.stores
    await stores.moderation.set_archived(community, moderator, is_archived)
    return await stores.communities.get(community.organization_id, community.id)


async def rename_topic(
    info: Info,
    topic_id: TopicId,
    title: Annotated[str, strawberry.argument(description="New title, 1 to 200 characters.")],
) -> Topic:
    """Replaces the title of a topic."""
    topic, moderator = await _require_moderated_topic(info, topic_id, NotFound("topic", topic_id))
    checked_text("title", title, 1, MAX_TITLE_CHARS)
    topics = info.context.stores.topics
    await topics.rename(topic, title, moderator)
    return await topics.get(topic.organization_id, topic.id)


async def archive_topic(info: Info, topic_id: TopicId) -> Topic:
    """Makes a topic read-only."""
    return await _set_topic_archived(info, topic_id, True)


async def unarchive_topic(info: Info, topic_id: TopicId) -> Topic:
    """Ends the archiving of a topic."""
    return await _set_topic_archived(info, topic_id, False)


async def _set_topic_archived(info: Info, topic_id: str, is_archived: bool) -> Topic:
    topic, moderator = await _require_moderated_topic(info, topic_id, NotFound("topic", topic_id))
    topics = info.context.stores.topics
    await topics.set_archived(topic.id, is_archived, moderator)
    return await topics.get(topic.organization_id, topic.id)


async def pin_message(info: Info, message_id: MessageId) -> Message:
    """Pins a message."""
    message, moderator = await _require_moderated_message(info, message_id)
    return await info.context.stores.messages.pin(message.key, moderator)


async def unpin_message(info: Info, message_id: MessageId) -> Message:
    """Removes a pin."""
    message, moderator = await _require_moderated_message(info, message_id)
    await info.context.stores.messages.unpin(message.key, moderator)
    return message


async def set_slow_mode(
    info: Info,
    topic_id: TopicId,
    seconds: Annotated[
        int,
        strawberry.argument(description="Seconds between messages of one person, 1 to 21600. 0 ends slow mode."),
    ],
) -> Topic:
    """Sets the slow mode of a topic."""
    topic, moderator = await _require_moderated_topic(info, topic_id, NotFound("topic", topic_id))
    if not 0 <= seconds <= MAX_SLOW_MODE_S:
        raise BadUserInput("seconds", f"a number from 0 to {MAX_SLOW_MODE_S}")
    topics = info.context.stores.topics
    await topics.set_slow_mode(topic.id, seconds, moderator)
    return await topics.get(topic.organization_id, topic.id)


async def _require_moderated_topic(info: Info, topic_id: str, not_found: NotFound) -> tuple[Topic, Moderator]:
    """Returns a topic and the viewer as its moderator.

    Raises: `not_found` for a topic that the viewer may not see; Forbidden.
    """
    require_member(info)
    topic = await find_visible_topic(info, topic_id)
    if topic is None:
        raise not_found
    _, moderator = await require_moderator(info, topic.community_id)
    if topic.thread_parent is not None:
        raise Forbidden("A thread has no settings and no pins of its own. Change the topic of its parent message.")
    return topic, moderator


async def _require_moderated_message(info: Info, id_: str) -> tuple[Message, Moderator]:
    """Returns a message, and the viewer as a moderator of its topic.

    Raises: NotFound, also for a message of a blocked author; Forbidden.
    """
    key, not_found = message_key(id_), NotFound("message", id_)
    _, moderator = await _require_moderated_topic(info, key.topic_id, not_found)
    message = await info.context.stores.messages.get(key)
    if message.author_id in (await info.context.viewer_blocks()).blocked:
        raise not_found
    return message, moderator


async def pinned_messages(root: Parent[Topic], info: Info) -> list[Message]:
    """Returns the pinned messages that the viewer may see."""
    return (await pinned_messages_of_many([root], info))[0]


async def pinned_messages_of_many(topics: Sequence[Topic], info: Info) -> list[list[Message]]:
    """Returns the pinned messages of each topic that the viewer may see, the latest pin first."""
    stores, viewer = info.context.stores, require_member(info)
    joined = await stores.communities.joined_communities({each.community_id for each in topics}, viewer.id)
    hidden = (await info.context.viewer_blocks()).blocked
    pins = await stores.topics.pins([each.id for each in topics if each.community_id in joined])
    messages = await stores.messages.find_many([key for keys in pins.values() for key in keys])
    visible = {key: message for key, message in messages.items() if message.author_id not in hidden}
    return [[visible[key] for key in pins.get(topic.id, ()) if key in visible] for topic in topics]

"""Settings of communities and topics: name, visibility, archive, pinned messages and slow mode."""

from collections.abc import Sequence
from typing import Annotated

import strawberry
from strawberry import UNSET, Parent

from resolvers.access import find_visible_topic, require_member, require_moderator
from resolvers.arguments import checked_text, text_or_none
from resolvers.chat.communities import MAX_DESCRIPTION_CHARS, MAX_NAME_CHARS, CommunityId
from resolvers.chat.messages import MessageId
from resolvers.chat.topics import TopicId
from resolvers.context import Info
from storage.chat.records import Community, Message, Topic
from storage.chat.visibility import CommunityVisibility
from storage.errors import BadUserInput, NotFound
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


async def pin_message(info: Info, message_id: MessageId) -> Message:
    """Pins a message."""
    key = message_key(message_id)
    await _require_moderated_topic(info, key.topic_id, NotFound("message", message_id))
    return await info.context.stores.messages.pin(key, info.context.actor)


async def unpin_message(info: Info, message_id: MessageId) -> Message:
    """Removes a pin."""
    key, messages = message_key(message_id), info.context.stores.messages
    await _require_moderated_topic(info, key.topic_id, NotFound("message", message_id))
    message = await messages.get(key)
    await messages.unpin(key, info.context.actor)
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
    topic = await _require_moderated_topic(info, topic_id, NotFound("topic", topic_id))
    if not 0 <= seconds <= MAX_SLOW_MODE_S:
        raise BadUserInput("seconds", f"a number from 0 to {MAX_SLOW_MODE_S}")
    topics = info.context.stores.topics
    await topics.set_slow_mode(topic.id, seconds, info.context.actor)
    return await topics.get(topic.organization_id, topic.id)


async def _require_moderated_topic(info: Info, topic_id: str, missing: NotFound) -> Topic:
    """Returns a topic that the viewer moderates. Raises: `missing` for one that the viewer may not see; Forbidden."""
    require_member(info)
    topic = await find_visible_topic(info, topic_id)
    if topic is None:
        raise missing
    await require_moderator(info, topic.community_id)
    return topic


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

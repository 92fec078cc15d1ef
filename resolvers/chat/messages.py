"""Messages and reactions: posting, editing, deleting, reacting, and the fields of a message."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated

import strawberry
from strawberry import ID, UNSET, Parent

from resolvers.access import (
    exclude_reacting_viewers,
    find_visible_topic,
    granted_roles,
    require_joined_topic,
    require_member,
    restrict_to_members,
    viewer_role,
    visible_topics,
)
from resolvers.arguments import (
    Emoji,
    Inclusive,
    Latest,
    ListLimit,
    Oldest,
    PageLimit,
    checked_limit,
    checked_text,
    page_range,
    stored_emojis,
    text_or_none,
)
from resolvers.chat.quotes import checked_quote
from resolvers.chat.stamps import checked_reaction, checked_stamp
from resolvers.chat.threads import open_thread
from resolvers.context import Info
from resolvers.files.attachments import checked_attachments
from resolvers.idempotency import input_key
from resolvers.inputs import PostMessageInput
from storage.chat.changes import NewMessage
from storage.chat.records import Message, Reaction, ReceivedReaction, Topic
from storage.chat.roles import CommunityRole, Moderator, may_act_on
from storage.chat.stamps.catalogue import Stamp, find_stamp
from storage.errors import BadUserInput, NotFound
from storage.files.link_previews import LinkPreview, first_url
from storage.files.preview_pictures import preview_picture_id
from storage.identity.mentions import find_mentioned
from storage.identity.records import User
from storage.identity.roles import Role
from storage.ids import MessageKey, message_key
from storage.redis.queue import PREVIEWS
from storage.timeline import TimelinePage

MAX_TEXT_CHARS = 4000

MessageId = Annotated[ID, strawberry.argument(description="Id of the message.")]


async def message(info: Info, id: MessageId) -> Message:
    """Returns a message that the viewer may see."""
    viewer = require_member(info)
    key = await require_readable(info, viewer, id)
    message = await info.context.stores.messages.get(key)
    if message.author_id in (await info.context.viewer_blocks()).blocked:
        raise NotFound("message", id)
    return message


async def post_message(
    info: Info, input: Annotated[PostMessageInput, strawberry.argument(description="Topic and content of the message.")]
) -> Message:
    """Posts a message to a topic, or to the thread of one of its messages."""
    viewer = require_member(info)
    stamp_id = await checked_stamp(info, text_or_none(input.stamp_id))
    attachments = await checked_attachments(info, input.attachments)
    body = checked_text("text", input.text, 0 if stamp_id is not None or attachments else 1, MAX_TEXT_CHARS)
    topic = await require_joined_topic(info, input.topic_id)
    parent_id = text_or_none(input.reply_to)
    if parent_id is not None:
        topic = await open_thread(info, topic, parent_id)
    if input.also_to_topic and topic.thread_parent is None:
        raise BadUserInput("alsoToTopic", "false, since the message is no reply in a thread")
    quoted_id = text_or_none(input.quoted_message_id)
    quote = None if quoted_id is None else await checked_quote(info, quoted_id)
    # A key of an earlier release covers no `alsoToTopic`. Without it, retries have the same digest as before.
    key = input_key(viewer, "postMessage", input if input.also_to_topic else replace(input, also_to_topic=UNSET))
    mentions = await find_mentioned(info.context.stores.users, viewer.organization_id, body)
    # A thread has the slow mode of its parent's topic, which the commit reads.
    may_have_slow_mode = topic.slow_mode_seconds > 0 or topic.thread_parent is not None
    is_exempt = may_have_slow_mode and await _is_moderator(info, topic.community_id)
    new_message = NewMessage(
        topic.id,
        topic.community_id,
        viewer.id,
        body,
        stamp_id,
        mentions,
        None,
        is_exempt,
        attachments,
        quote,
        input.also_to_topic,
    )
    posted = await info.context.stores.messages.post(new_message, key)
    await _enqueue_preview(info, posted)
    return posted


async def _is_moderator(info: Info, community_id: str) -> bool:
    """Returns whether the viewer is a moderator or owner of the community."""
    return may_act_on(await viewer_role(info, community_id), False, None)


async def edit_message(
    info: Info,
    id: MessageId,
    text: Annotated[
        str,
        strawberry.argument(
            description="New text, at most 4000 characters; empty only if the message has a stamp or files."
        ),
    ],
) -> Message:
    """Replaces the text of the viewer's own message."""
    viewer = require_member(info)
    body = checked_text("text", text, 0, MAX_TEXT_CHARS)
    key = await require_readable(info, viewer, id)
    mentions = await find_mentioned(info.context.stores.users, viewer.organization_id, body)
    edited = await info.context.stores.messages.edit(key, viewer.id, body, mentions)
    await _enqueue_preview(info, edited)
    return edited


async def delete_message(info: Info, id: MessageId) -> Message:
    """Replaces a message by a tombstone.

    Authors may delete their own messages. Moderators and owners may delete messages of people of a lower rank in the
    community. An ADMIN may delete any message of a community whose topics the ADMIN may see.
    """
    viewer = require_member(info)
    is_admin = Role.ADMIN in granted_roles(info.context)
    # An ADMIN may delete messages of communities that the ADMIN has not joined.
    key, topic = await _locate(info, viewer, id)
    if not (is_admin and await find_visible_topic(info, topic.id)):
        await restrict_to_members(info, topic.community_id, NotFound("message", id))
    # Conversations have no moderators. An ADMIN removes a message there by deciding a report.
    deleter = Moderator(viewer.id, is_admin and not topic.is_conversation, info.context.actor)
    return await info.context.stores.messages.delete(key, deleter)


async def add_reaction(info: Info, message_id: MessageId, emoji: Emoji) -> Message:
    """Adds a reaction of the viewer."""
    viewer = require_member(info)
    emoji = await checked_reaction(info, emoji)
    key, blocked = await _reaction_target(info, viewer, message_id)
    return await info.context.stores.messages.add_reaction(viewer.organization_id, key, viewer.id, emoji, blocked)


async def remove_reaction(info: Info, message_id: MessageId, emoji: Emoji) -> Message:
    """Removes a reaction of the viewer."""
    viewer, messages = require_member(info), info.context.stores.messages
    first, *others = stored_emojis(emoji)
    key, blocked = await _reaction_target(info, viewer, message_id)
    changed = await messages.remove_reaction(viewer.organization_id, key, viewer.id, first, blocked)
    for other in others:
        changed = await messages.remove_reaction(viewer.organization_id, key, viewer.id, other, blocked)
    return changed


async def reactions_received(
    info: Info,
    oldest: Oldest = UNSET,
    latest: Latest = UNSET,
    limit: PageLimit = 50,
    inclusive: Inclusive = True,
) -> TimelinePage[ReceivedReaction]:
    """Returns a page of the reactions to the viewer's messages, without those of blocked and muted users."""
    viewer = require_member(info)
    range_ = page_range(oldest, latest, limit, inclusive)
    hidden = (await info.context.hidden_subjects()).users
    reactions = info.context.stores.reactions

    async def filter_topics(topic_ids: set[str]) -> set[str]:
        return set(await visible_topics(info, topic_ids))

    return await reactions.received(viewer.organization_id, viewer.id, range_, hidden, filter_topics)


async def author(root: Parent[Message], info: Info) -> User:
    """Returns the author of a message."""
    return await info.context.stores.users.get(require_member(info).organization_id, root.author_id)


async def authors(messages: Sequence[Message], info: Info) -> list[User]:
    """Returns the author of each message."""
    ids = [message.author_id for message in messages]
    return await info.context.stores.users.get_all(require_member(info).organization_id, ids)


async def author_role(root: Parent[Message], info: Info) -> CommunityRole | None:
    """Returns the role of the author in the topic's community, or None for an author who is no member."""
    return (await author_roles([root], info))[0]


async def author_roles(messages: Sequence[Message], info: Info) -> list[CommunityRole | None]:
    """Returns for each message the role of its author in the topic's community, or None."""
    require_member(info)
    stores = info.context.stores
    topics = await stores.topics.find_many({message.topic_id for message in messages})
    members = [(topics[message.topic_id].community_id, message.author_id) for message in messages]
    roles = await stores.moderation.roles(set(members))
    return [roles.get(member) for member in members]


async def mentions(root: Parent[Message], info: Info) -> list[User]:
    """Returns the users whom the message's text mentions."""
    return await info.context.stores.users.find_many(require_member(info).organization_id, root.mention_ids)


async def mentions_of_many(messages: Sequence[Message], info: Info) -> list[list[User]]:
    """Returns the users whom each message's text mentions."""
    ids = [message.mention_ids for message in messages]
    return await info.context.stores.users.find_each(require_member(info).organization_id, ids)


async def stamp(root: Parent[Message]) -> Stamp | None:
    """Returns the stamp of a message, or None."""
    return None if root.stamp_id is None else find_stamp(root.stamp_id)


async def stamps_of_many(messages: Sequence[Message], _info: Info) -> list[Stamp | None]:
    """Returns the stamp of each message, or None."""
    return [None if message.stamp_id is None else find_stamp(message.stamp_id) for message in messages]


async def reactions(root: Parent[Message], info: Info) -> list[Reaction]:
    """Returns the reactions to a message as the audience sees them."""
    return (await reactions_of_many([root], info))[0]


async def reactions_of_many(messages: Sequence[Message], info: Info) -> list[list[Reaction]]:
    """Returns the reactions to each message as the audience sees them."""
    require_member(info)
    if not any(message.reaction_counts for message in messages):
        return [[] for _ in messages]
    await exclude_reacting_viewers(info, messages)
    return await info.context.stores.reactions.of_messages(messages, await info.context.viewer_blocks())


async def link_preview(root: Parent[Message], info: Info) -> LinkPreview | None:
    """Returns the link preview of a message, or None."""
    return proxied_preview(root.link_preview, info)


async def link_previews(messages: Sequence[Message], info: Info) -> list[LinkPreview | None]:
    """Returns the link preview of each message, or None."""
    return [proxied_preview(message.link_preview, info) for message in messages]


def proxied_preview(preview: LinkPreview | None, info: Info) -> LinkPreview | None:
    """Returns the preview with the image's URL replaced by a URL of this server, which serves the stored copy."""
    if preview is None or preview.image_url is None:
        return preview
    copy_id = preview_picture_id(info.context.audience.organization_id, preview.image_url)
    return replace(preview, image_url=info.context.sign_image(preview.image_url, copy_id))


async def reaction_users(root: Parent[Reaction], info: Info, limit: ListLimit = 10) -> list[User]:
    """Lists the users who reacted with the emoji, earliest first."""
    viewer = require_member(info)
    viewer_blocks = await info.context.viewer_blocks()
    ids = await info.context.stores.reactions.users(
        root.message, root.emoji, checked_limit(limit), viewer_blocks.blocked
    )
    return await info.context.stores.users.find_many(viewer.organization_id, ids)


async def received_from(root: Parent[ReceivedReaction], info: Info) -> User:
    """Returns the user who reacted."""
    return await info.context.stores.users.get(require_member(info).organization_id, root.user_id)


async def received_on(root: Parent[ReceivedReaction], info: Info) -> Message:
    """Returns the message that the reaction belongs to."""
    return await info.context.stores.messages.get(root.message)


async def _locate(info: Info, viewer: User, id_: str) -> tuple[MessageKey, Topic]:
    """Returns the message's key and its topic in the viewer's organization. Raises: NotFound for an unknown topic."""
    key = message_key(id_)
    topic = await info.context.stores.topics.find(viewer.organization_id, key.topic_id)
    if topic is None:
        raise NotFound("message", id_)
    return key, topic


async def require_readable(info: Info, viewer: User, id_: str) -> MessageKey:
    """Returns the key of a message in a community that the viewer has joined. Raises: NotFound, Forbidden."""
    key, topic = await _locate(info, viewer, id_)
    await restrict_to_members(info, topic.community_id, NotFound("message", id_))
    return key


async def _reaction_target(info: Info, viewer: User, id_: str) -> tuple[MessageKey, frozenset[str]]:
    """Returns the key of a message in a community that the viewer has joined, and the users whom the viewer blocked.

    The commit checks whether the message exists, and whether a blocked user wrote it. Raises: NotFound, Forbidden.
    """
    key, viewer_blocks = await asyncio.gather(require_readable(info, viewer, id_), info.context.viewer_blocks())
    return key, viewer_blocks.blocked


async def _enqueue_preview(info: Info, message: Message) -> None:
    if first_url(message.text) is not None and message.link_preview is None:
        await info.context.stores.queue.enqueue(PREVIEWS, "chat.preview_link", message.topic_id, message.timestamp)

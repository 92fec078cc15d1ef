"""Quotes: the quoted message as the viewer may see it now, and the check of a new quote."""

import asyncio
from collections.abc import Collection, Sequence

from strawberry import Parent

from resolvers.access import require_member, restrict_to_members
from resolvers.context import Info
from storage.chat.records import Message, Quote
from storage.errors import NotFound
from storage.ids import message_key


async def quoted_message(root: Parent[Quote], info: Info) -> Message | None:
    """Returns the quoted message; None if the viewer may not read it, or has blocked its author."""
    return (await quoted_messages([root], info))[0]


async def quoted_messages(quotes: Sequence[Quote], info: Info) -> list[Message | None]:
    """Returns each quoted message; None for those that the viewer may not read, and those of blocked authors."""
    require_member(info)
    readable = await _readable_places(info, {quote.community_id for quote in quotes})
    blocked = (await info.context.viewer_blocks()).blocked
    keys = [quote.key for quote in quotes if quote.community_id in readable]
    messages = await info.context.stores.messages.find_many(keys) if keys else {}
    visible = {key: message for key, message in messages.items() if message.author_id not in blocked}
    return [visible.get(quote.key) for quote in quotes]


async def _readable_places(info: Info, ids: Collection[str]) -> set[str]:
    """Returns those of the communities and conversations that somebody of the audience has joined.

    Excludes the viewers who have not joined one of these.
    """
    audience, communities = info.context.audience, info.context.stores.communities
    found = await asyncio.gather(*(communities.members_among(id_, audience.viewer_ids) for id_ in ids))
    members = {id_: joined for id_, joined in zip(ids, found, strict=True) if joined}
    for joined in members.values():
        audience.exclude(audience.viewer_ids - joined)
    return set(members)


async def checked_quote(info: Info, message_id: str) -> Quote:
    """Returns the quote of a message that the viewer may read. The commit checks whether the message was deleted.

    Raises: NotFound, also for a message of a blocked author; Forbidden in a PUBLIC community without membership.
    """
    viewer, stores, key = require_member(info), info.context.stores, message_key(message_id)
    topic = await stores.topics.find(viewer.organization_id, key.topic_id)
    if topic is None:
        raise NotFound("message", message_id)
    await restrict_to_members(info, topic.community_id, NotFound("message", message_id))
    message = await stores.messages.get(key)
    if message.author_id in (await info.context.viewer_blocks()).blocked:
        raise NotFound("message", message_id)
    # A cross-post has no content. So the quote is of its reply.
    return Quote(message.content_key, topic.community_id)

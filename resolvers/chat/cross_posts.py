"""Cross-posts: the reply that a message of a topic shows, and the message to which people reply."""

from collections.abc import Sequence

from strawberry import Parent

from resolvers.access import require_member
from resolvers.context import Info
from storage.chat.records import Message, ThreadReply


async def shown_reply(root: Parent[ThreadReply], info: Info) -> Message:
    """Returns the reply."""
    return (await shown_replies([root], info))[0]


async def shown_replies(roots: Sequence[ThreadReply], info: Info) -> list[Message]:
    """Returns each reply. Who sees a cross-post may read the reply: both have the same author and community."""
    require_member(info)
    keys = [root.key for root in roots]
    replies = await info.context.stores.messages.find_many(keys)
    return [replies[key] for key in keys]


async def parent(root: Parent[ThreadReply], info: Info) -> Message | None:
    """Returns the message to which people reply, or None if the viewer has blocked its author."""
    return (await parents([root], info))[0]


async def parents(roots: Sequence[ThreadReply], info: Info) -> list[Message | None]:
    """Returns for each reply the message to which people reply, or None if the viewer has blocked its author."""
    require_member(info)
    blocked = (await info.context.viewer_blocks()).blocked
    messages = await info.context.stores.messages.find_many([root.parent for root in roots])
    return [None if messages[root.parent].author_id in blocked else messages[root.parent] for root in roots]

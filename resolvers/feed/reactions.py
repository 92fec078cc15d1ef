"""Reactions to posts."""

from collections.abc import Sequence

from strawberry import Parent

from resolvers.access import require_member
from resolvers.arguments import Emoji, ListLimit, checked_limit, stored_emojis
from resolvers.chat.stamps import checked_reaction
from resolvers.context import Info
from resolvers.feed.responses import PostId, find_open_original, find_original
from storage.errors import NotFound
from storage.feed.records import Post, PostReaction
from storage.identity.records import User


async def add_post_reaction(info: Info, post_id: PostId, emoji: Emoji) -> Post:
    """Adds a reaction of the viewer to a post."""
    viewer, emoji = require_member(info), await checked_reaction(info, emoji)
    post = await find_open_original(info, post_id)
    return await info.context.stores.post_reactions.add(post, viewer.id, emoji)


async def remove_post_reaction(info: Info, post_id: PostId, emoji: Emoji) -> Post:
    """Removes a reaction of the viewer from a post."""
    viewer, reactions = require_member(info), info.context.stores.post_reactions
    first, *others = stored_emojis(emoji)
    post = await find_original(info, post_id)
    changed = await reactions.remove(post.key, viewer.id, first)
    for other in others:
        changed = await reactions.remove(post.key, viewer.id, other)
    if changed is None or changed.deleted_at is not None:
        raise NotFound("post", post_id)
    return changed


async def reactions(root: Parent[Post], info: Info) -> list[PostReaction]:
    """Returns the reactions to a post as the viewer sees them."""
    return (await reactions_of_many([root], info))[0]


async def reactions_of_many(posts: Sequence[Post], info: Info) -> list[list[PostReaction]]:
    """Returns the reactions to each post as the viewer sees them."""
    if not any(post.reaction_counts for post in posts):
        return [[] for _ in posts]
    return await info.context.stores.post_reactions.of_posts(posts, await info.context.viewer_blocks())


async def reaction_users(root: Parent[PostReaction], info: Info, limit: ListLimit = 10) -> list[User]:
    """Lists the users who reacted with the emoji, earliest first."""
    viewer, blocked = require_member(info), (await info.context.viewer_blocks()).blocked
    reactions = info.context.stores.post_reactions
    ids = await reactions.users(root.post, root.emoji, checked_limit(limit), blocked)
    return await info.context.stores.users.find_many(viewer.organization_id, ids)

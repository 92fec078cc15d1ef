"""Replies to posts, reposts and quotes: the rules for writing them, and the fields of a post about them."""

from collections.abc import Sequence
from typing import Annotated

import strawberry
from strawberry import ID, UNSET, Parent

from resolvers.access import require_member
from resolvers.arguments import Inclusive, Latest, Oldest, PageLimit, page_range
from resolvers.context import Info
from storage.errors import BadUserInput, Forbidden, NotFound
from storage.feed.records import Post, PostParent, PostParentKind
from storage.ids import PostKey, post_key
from storage.redis.queue import FAN_OUT
from storage.timeline import TimelinePage

PostId = Annotated[ID, strawberry.argument(description="Id of the post. The id of a repost stands for the original.")]


async def find_original(info: Info, id_: str) -> Post:
    """Returns the post that the viewer may see; for a repost, the original. Raises: NotFound."""
    viewer, posts = require_member(info), info.context.stores.posts
    post = await posts.get(post_key(viewer.organization_id, id_))
    if post.is_repost and post.parent_key is not None:
        post = await posts.get(post.parent_key)
    if post.author_id in (await info.context.viewer_blocks()).blocked:
        raise NotFound("post", id_)
    return post


async def find_open_original(info: Info, id_: str) -> Post:
    """Returns the post as `find_original` does. Raises: NotFound; Forbidden if its author has blocked the viewer."""
    viewer, post = require_member(info), await find_original(info, id_)
    relations = info.context.stores.relations
    if await relations.blockers_among(viewer.organization_id, viewer.id, [post.author_id]):
        raise Forbidden("You cannot reply to this post, react to it, repost it or quote it.")
    return post


async def new_parent(info: Info, in_reply_to: str | None, quote_of: str | None) -> PostParent | None:
    """Returns the parent of a new post, or None. Raises: BadUserInput for two parents; NotFound, Forbidden."""
    if in_reply_to is not None and quote_of is not None:
        raise BadUserInput("quoteOf", "null in a reply")
    kind = PostParentKind.REPLY if quote_of is None else PostParentKind.QUOTE
    id_ = quote_of if in_reply_to is None else in_reply_to
    if id_ is None:
        return None
    return (await find_open_original(info, id_)).as_parent(kind)


async def repost(info: Info, post_id: PostId) -> Post:
    """Reposts a post to the viewer's followers. Idempotent."""
    viewer = require_member(info)
    reposted_post = await info.context.stores.posts.repost(viewer.id, await find_open_original(info, post_id))
    await _enqueue_fan_out(info, reposted_post.key)
    return reposted_post


async def undo_repost(info: Info, post_id: PostId) -> Post:
    """Removes the viewer's repost of a post. Idempotent. Returns the post."""
    viewer, original = require_member(info), await find_original(info, post_id)
    removed = await info.context.stores.posts.undo_repost(viewer.id, original.key)
    if removed is not None:
        await _enqueue_fan_out(info, removed)
    return original


async def _enqueue_fan_out(info: Info, key: PostKey) -> None:
    await info.context.stores.queue.enqueue(FAN_OUT, "feed.fan_out", key.organization_id, key.timestamp)


async def replies(
    root: Parent[Post],
    info: Info,
    oldest: Oldest = UNSET,
    latest: Latest = UNSET,
    limit: PageLimit = 50,
    inclusive: Inclusive = True,
) -> TimelinePage[Post]:
    """Returns a page of the replies to a post, without those of blocked authors."""
    range_ = page_range(oldest, latest, limit, inclusive)
    return await info.context.stores.posts.replies(root.key, range_, (await info.context.viewer_blocks()).blocked)


async def in_reply_to(root: Parent[Post], info: Info) -> Post | None:
    """Returns the post that the post replies to, or None."""
    return (await parents_of([root], info, PostParentKind.REPLY))[0]


async def in_reply_to_of_many(posts: Sequence[Post], info: Info) -> list[Post | None]:
    """Returns the post that each post replies to, or None."""
    return await parents_of(posts, info, PostParentKind.REPLY)


async def repost_of(root: Parent[Post], info: Info) -> Post | None:
    """Returns the post that the post repeats, or None."""
    return (await parents_of([root], info, PostParentKind.REPOST))[0]


async def repost_of_many(posts: Sequence[Post], info: Info) -> list[Post | None]:
    """Returns the post that each post repeats, or None."""
    return await parents_of(posts, info, PostParentKind.REPOST)


async def quote_of(root: Parent[Post], info: Info) -> Post | None:
    """Returns the post that the post quotes, or None."""
    return (await parents_of([root], info, PostParentKind.QUOTE))[0]


async def quote_of_many(posts: Sequence[Post], info: Info) -> list[Post | None]:
    """Returns the post that each post quotes, or None."""
    return await parents_of(posts, info, PostParentKind.QUOTE)


async def parents_of(posts: Sequence[Post], info: Info, kind: PostParentKind) -> list[Post | None]:
    """Returns each post's parent of this kind. None without one, and if it was deleted or its author is blocked."""
    timestamps = [post.parent.timestamp for post in posts if post.parent is not None and post.parent.kind is kind]
    if not timestamps:
        return [None] * len(posts)
    blocked = (await info.context.viewer_blocks()).blocked
    found = await info.context.stores.posts.by_timestamp(require_member(info).organization_id, timestamps)
    visible = {timestamp: post for timestamp, post in found.items() if post.author_id not in blocked}
    return [
        None if post.parent is None or post.parent.kind is not kind else visible.get(post.parent.timestamp)
        for post in posts
    ]


async def reply_count(root: Parent[Post], info: Info) -> int:
    """Returns the number of replies that the viewer may see."""
    return (await reply_counts([root], info))[0]


async def reply_counts(posts: Sequence[Post], info: Info) -> list[int]:
    """Returns the number of replies to each post that the viewer may see."""
    counts = [(post.timestamp, post.reply_count) for post in posts]
    return await _without_blocked(info, PostParentKind.REPLY, counts)


async def repost_count(root: Parent[Post], info: Info) -> int:
    """Returns the number of users who reposted the post, without users whom the viewer blocked."""
    return (await repost_counts([root], info))[0]


async def repost_counts(posts: Sequence[Post], info: Info) -> list[int]:
    """Returns the number of users who reposted each post, without users whom the viewer blocked."""
    counts = [(post.timestamp, post.repost_count) for post in posts]
    return await _without_blocked(info, PostParentKind.REPOST, counts)


async def quote_count(root: Parent[Post], info: Info) -> int:
    """Returns the number of quotes of the post, without those of users whom the viewer blocked."""
    return (await quote_counts([root], info))[0]


async def quote_counts(posts: Sequence[Post], info: Info) -> list[int]:
    """Returns the number of quotes of each post, without those of users whom the viewer blocked."""
    counts = [(post.timestamp, post.quote_count) for post in posts]
    return await _without_blocked(info, PostParentKind.QUOTE, counts)


async def _without_blocked(info: Info, kind: PostParentKind, counts: Sequence[tuple[int, int]]) -> list[int]:
    """Subtracts responses of users whom the viewer blocked. `counts` are pairs of a post's timestamp and its count."""
    blocked, counted = (await info.context.viewer_blocks()).blocked, [post for post, count in counts if count]
    if not (blocked and counted):
        return [count for _, count in counts]
    organization_id = require_member(info).organization_id
    hidden = await info.context.stores.posts.count_responses(organization_id, kind, counted, blocked)
    return [max(0, count - hidden[post]) for post, count in counts]


async def reposted(root: Parent[Post], info: Info) -> bool:
    """Returns whether the viewer has reposted the post."""
    return (await reposted_of_many([root], info))[0]


async def reposted_of_many(posts: Sequence[Post], info: Info) -> list[bool]:
    """Returns for each post whether the viewer has reposted it."""
    viewer = require_member(info)
    timestamps = [post.timestamp for post in posts if not post.is_repost]
    if not timestamps:
        return [False] * len(posts)
    found = await info.context.stores.posts.reposted_among(viewer.organization_id, viewer.id, timestamps)
    return [post.timestamp in found for post in posts]

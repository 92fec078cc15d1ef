"""Creates and deletes posts, reads their timelines, and resolves the fields of a post."""

import re
from collections.abc import Sequence
from typing import Annotated

import strawberry
from strawberry import ID, UNSET, Parent

from resolvers.access import granted_roles, require_member
from resolvers.arguments import Inclusive, Latest, Oldest, PageLimit, checked_text, page_range, text_or_none
from resolvers.chat.messages import proxied_preview
from resolvers.context import Info
from resolvers.feed.responses import new_parent
from resolvers.files.attachments import checked_attachments
from resolvers.idempotency import input_key
from resolvers.inputs import CreatePostInput
from storage.chat.roles import Moderator
from storage.errors import BadUserInput, NotFound
from storage.feed.changes import NewPost
from storage.feed.edits import NewText
from storage.feed.records import FanOutState, Post, PostVersion
from storage.files.link_previews import MAX_URL_CHARS, LinkPreview, first_url
from storage.identity.mentions import MAX_HASHTAG_CHARS, find_hashtags, find_mentioned, normalize_hashtag
from storage.identity.records import User
from storage.identity.roles import Role
from storage.ids import post_key
from storage.redis.queue import FAN_OUT, PREVIEWS
from storage.timeline import TimelinePage

MAX_TEXT_CHARS = 4000
MAX_MEDIA = 10
_MEDIA_URL = re.compile(r"https?://[^\s/\\]+[^\s\\]*", re.IGNORECASE)

Hashtag = Annotated[str, strawberry.argument(description="The hashtag, with or without #. Case is ignored.")]
PostId = Annotated[ID, strawberry.argument(description="Id of the post.")]


async def create_post(
    info: Info, input: Annotated[CreatePostInput, strawberry.argument(description="The new post.")]
) -> Post:
    """Creates a post."""
    viewer = require_member(info)
    media = [_checked_media_url(url) for url in input.media_urls]
    if len(media) > MAX_MEDIA:
        raise BadUserInput("mediaUrls", f"at most {MAX_MEDIA} addresses; there are {len(media)}")
    attachments = await checked_attachments(info, input.attachments)
    body = checked_text("text", input.text, 0 if media or attachments else 1, MAX_TEXT_CHARS)
    parent = await new_parent(info, text_or_none(input.in_reply_to), text_or_none(input.quote_of))
    key = input_key(viewer, "createPost", input)
    mentions = await find_mentioned(info.context.stores.users, viewer.organization_id, body)
    new_post = NewPost(
        viewer.organization_id, viewer.id, body, media, mentions, find_hashtags(body), None, attachments, parent
    )
    posted = await info.context.stores.posts.create(new_post, key)
    await enqueue_jobs(info, posted)
    return posted


async def edit_post(
    info: Info,
    id: PostId,
    text: Annotated[
        str,
        strawberry.argument(
            description="New text, at most 4000 characters; empty only if the post has pictures or files."
        ),
    ],
) -> Post:
    """Replaces the text of the viewer's own post."""
    viewer = require_member(info)
    body = checked_text("text", text, 0, MAX_TEXT_CHARS)
    key = (await post(info, id)).key
    mentions = await find_mentioned(info.context.stores.users, viewer.organization_id, body)
    edited = await info.context.stores.post_edits.edit(key, viewer.id, NewText(body, mentions, find_hashtags(body)))
    await enqueue_jobs(info, edited)
    return edited


async def versions(root: Parent[Post], info: Info) -> list[PostVersion]:
    """Returns the earlier texts of a post, oldest first."""
    return [] if root.edited_at is None else await info.context.stores.post_edits.versions(root.key)


async def enqueue_jobs(info: Info, posted: Post) -> None:
    """Enqueues the fan-out and the link preview, unless a repeated request finds them done."""
    queue, key = info.context.stores.queue, posted.key
    fan_out = await info.context.stores.fan_outs.find(key)
    if fan_out is not None and fan_out.state is FanOutState.PENDING:
        await queue.enqueue(FAN_OUT, "feed.fan_out", key.organization_id, key.timestamp)
    if first_url(posted.text) is not None and posted.link_preview is None:
        await queue.enqueue(PREVIEWS, "feed.preview_link", key.organization_id, key.timestamp)


async def delete_post(info: Info, id: PostId) -> Post:
    """Deletes a post, which removes it from every feed."""
    viewer = require_member(info)
    key = post_key(viewer.organization_id, id)
    deleter = Moderator(viewer.id, Role.ADMIN in granted_roles(info.context), info.context.actor)
    deleted = await info.context.stores.posts.delete(key, deleter)
    await info.context.stores.queue.enqueue(FAN_OUT, "feed.fan_out", key.organization_id, key.timestamp)
    return deleted


async def post(info: Info, id: PostId) -> Post:
    """Returns a post that the viewer may see. Raises: NotFound."""
    viewer = require_member(info)
    post = await info.context.stores.posts.get(post_key(viewer.organization_id, id))
    if post.author_id in (await info.context.viewer_blocks()).blocked:
        raise NotFound("post", id)
    return post


async def local_feed(
    info: Info, oldest: Oldest = UNSET, latest: Latest = UNSET, limit: PageLimit = 50, inclusive: Inclusive = True
) -> TimelinePage[Post]:
    """Returns a page of the organization's posts, without those of blocked and muted authors."""
    viewer = require_member(info)
    range_ = page_range(oldest, latest, limit, inclusive)
    hidden = (await info.context.hidden_subjects()).users
    return await info.context.stores.posts.all_posts(viewer.organization_id, range_, hidden)


async def posts(
    info: Info,
    author_id: Annotated[ID, strawberry.argument(description="Id of the author.")],
    oldest: Oldest = UNSET,
    latest: Latest = UNSET,
    limit: PageLimit = 50,
    inclusive: Inclusive = True,
) -> TimelinePage[Post]:
    """Returns a page of one author's posts, with replies and reposts; empty if the viewer blocked the author."""
    viewer = require_member(info)
    range_ = page_range(oldest, latest, limit, inclusive)
    stores = info.context.stores
    author = await stores.users.get(viewer.organization_id, author_id)
    blocked = (await info.context.viewer_blocks()).blocked
    if author.id in blocked:
        return TimelinePage([], [], False, False, None, None)
    return await stores.posts.posts_of_author(viewer.organization_id, author.id, range_, blocked)


async def hashtag_posts(
    info: Info,
    tag: Hashtag,
    oldest: Oldest = UNSET,
    latest: Latest = UNSET,
    limit: PageLimit = 50,
    inclusive: Inclusive = True,
) -> TimelinePage[Post]:
    """Returns a page of posts with a hashtag, without those of blocked and muted authors."""
    viewer = require_member(info)
    range_ = page_range(oldest, latest, limit, inclusive)
    hashtag = checked_hashtag(tag)
    hidden = (await info.context.hidden_subjects()).users
    return await info.context.stores.posts.posts_with_hashtag(viewer.organization_id, hashtag, range_, hidden)


async def author(root: Parent[Post], info: Info) -> User:
    """Returns the author."""
    return await info.context.stores.users.get(require_member(info).organization_id, root.author_id)


async def authors(posts: Sequence[Post], info: Info) -> list[User]:
    """Returns the author of each post."""
    return await info.context.stores.users.get_all(
        require_member(info).organization_id, [post.author_id for post in posts]
    )


async def mentions(root: Parent[Post], info: Info) -> list[User]:
    """Returns the mentioned users."""
    return await info.context.stores.users.find_many(require_member(info).organization_id, root.mention_ids)


async def mentions_of_many(posts: Sequence[Post], info: Info) -> list[list[User]]:
    """Returns the mentioned users of each post."""
    ids = [post.mention_ids for post in posts]
    return await info.context.stores.users.find_each(require_member(info).organization_id, ids)


async def media_urls(root: Parent[Post], info: Info) -> list[str]:
    """Returns the URLs of the post's images on this server's image proxy."""
    return [info.context.sign_image(url) for url in root.media]


async def media_urls_of_many(posts: Sequence[Post], info: Info) -> list[list[str]]:
    """Returns the URLs of each post's images on this server's image proxy."""
    return [[info.context.sign_image(url) for url in post.media] for post in posts]


async def link_preview(root: Parent[Post], info: Info) -> LinkPreview | None:
    """Returns the link preview, with its image on this server's image proxy."""
    return proxied_preview(root.link_preview, info)


async def link_previews(posts: Sequence[Post], info: Info) -> list[LinkPreview | None]:
    """Returns the link preview of each post."""
    return [proxied_preview(post.link_preview, info) for post in posts]


def checked_hashtag(tag: str) -> str:
    """Returns the normalized hashtag. Raises: BadUserInput."""
    return checked_text("tag", normalize_hashtag(tag.strip().lstrip("#＃﹟")), 1, MAX_HASHTAG_CHARS)


def _checked_media_url(url: str) -> str:
    if len(url) > MAX_URL_CHARS or not _MEDIA_URL.fullmatch(url) or not url.isprintable():
        raise BadUserInput("mediaUrls", f"http or https addresses of at most {MAX_URL_CHARS} characters")
    return url

"""Publishes to internal targets (topic, home feed): checks the author's rights, then commits one transaction."""

import asyncio

from storage.chat.changes import NewMessage
from storage.feed.changes import NewPost
from storage.identity.mentions import find_hashtags, find_mentioned
from storage.identity.records import User
from storage.identity.roles import Role, with_included
from storage.ids import message_key, post_key
from storage.link_previews import first_url
from storage.publishing.records import Publication, ScheduledPost, TopicTarget
from storage.publishing.transitions import TOO_LATE, ClaimLost, DeadlinePassed, MarkFailed, NotYetDue
from storage.queue import FAN_OUT, PREVIEWS
from storage.stores import Stores

FORBIDDEN = "FORBIDDEN"


async def publish_internal(stores: Stores, publication: Publication, post: ScheduledPost) -> Publication | None:
    """Publishes, or fails the publication, and returns its new state.

    Returns None when the claim was lost meanwhile. Raises: Unavailable.
    """
    try:
        author, refusal = await _check_rights(stores, publication)
        if refusal is not None:
            return await _fail(stores, publication, FORBIDDEN, refusal)
        mentions = await find_mentioned(stores.users, publication.organization_id, post.text)
        while True:
            try:
                done = await _publish(stores, publication, post, author, mentions)
                await _enqueue_follow_ups(stores, done, post.text)
                return done
            except NotYetDue as early:
                # The clocks of two hosts differ by a millisecond or two.
                await asyncio.sleep(early.wait_s)
            except DeadlinePassed:
                message = "Publishing could not start within maxLatenessS after dueAt, because the service was down."
                return await _fail(stores, publication, TOO_LATE, message)
    except ClaimLost:
        return None


async def _check_rights(stores: Stores, publication: Publication) -> tuple[User, str | None]:
    """Returns the author, and the reason why the author may not publish there now, if any."""
    target = publication.target
    author = await stores.users.get(publication.organization_id, publication.author_id)
    if Role.MEMBER not in with_included(author.roles):
        return author, "The author no longer has the role MEMBER."
    if isinstance(target, TopicTarget) and not await stores.communities.is_member(target.community_id, author.id):
        return author, "The author has left the topic's community."
    return author, None


async def _publish(
    stores: Stores, publication: Publication, post: ScheduledPost, author: User, mentions: list[str]
) -> Publication:
    target = publication.target
    if isinstance(target, TopicTarget):
        message = NewMessage(target.topic_id, target.community_id, author.id, post.text, None, mentions)
        return await stores.scheduled_posts.publish_message(publication, message)
    media = [each.url for each in post.media]
    new = NewPost(publication.organization_id, author.id, post.text, media, mentions, find_hashtags(post.text))
    return await stores.scheduled_posts.publish_post(publication, new)


async def _enqueue_follow_ups(stores: Stores, done: Publication, text: str) -> None:
    """Enqueues the fan-out and the link preview. Sweepers find what a lost queue entry leaves undone."""
    queue, has_link = stores.queue, first_url(text) is not None
    assert done.external_id is not None
    if isinstance(done.target, TopicTarget):
        if has_link:
            key = message_key(done.external_id)
            await queue.enqueue(PREVIEWS, "chat.preview_link", key.topic_id, key.timestamp)
        return
    post = post_key(done.organization_id, done.external_id)
    await queue.enqueue(FAN_OUT, "feed.fan_out", post.organization_id, post.timestamp)
    if has_link:
        await queue.enqueue(PREVIEWS, "feed.preview_link", post.organization_id, post.timestamp)


async def _fail(stores: Stores, publication: Publication, code: str, message: str) -> Publication:
    return await stores.scheduled_posts.apply(MarkFailed(publication, code, message))

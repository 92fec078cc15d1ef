"""Publishes to internal targets (topic, home feed): checks the author's rights, then commits one transaction."""

import asyncio

from jobs.publishing.author_rights import author_and_missing_role
from storage.chat.changes import NewMessage
from storage.errors import Forbidden
from storage.feed.changes import NewPost
from storage.files.link_previews import first_url
from storage.identity.mentions import find_hashtags, find_mentioned
from storage.identity.records import User
from storage.identity.roles import Role
from storage.ids import message_key, post_key
from storage.publishing.records import Publication, ScheduledPost, TopicTarget
from storage.publishing.transitions import TOO_LATE, ClaimLost, DeadlinePassed, MarkFailed, NotYetDue
from storage.redis.queue import FAN_OUT, PREVIEWS
from storage.stores import Stores

FORBIDDEN = "FORBIDDEN"


async def publish_internal(stores: Stores, publication: Publication, post: ScheduledPost) -> Publication | None:
    """Publishes the post, or fails the publication. Returns the changed publication.

    Returns None if the claim was lost, or if the post is held because its author is deactivated. Raises: Unavailable.
    """
    try:
        author, refusal = await _check_rights(stores, publication)
        if author.is_deactivated:
            await stores.held_posts.hold(post.organization_id, post.id, author.id)
            return None
        if refusal is not None:
            return await _fail(stores, publication, FORBIDDEN, refusal)
        mentions = await find_mentioned(stores.users, publication.organization_id, post.text)
        while True:
            try:
                published = await _publish(stores, publication, post, author, mentions)
                await _enqueue_follow_ups(stores, published, post.text)
                return published
            except NotYetDue as error:
                # The database's clock may be a millisecond or two behind the clock of this host.
                await asyncio.sleep(error.wait_s)
            except Forbidden as error:
                return await _fail(stores, publication, FORBIDDEN, error.message)
            except DeadlinePassed:
                message = "Publishing could not start within maxLatenessS after dueAt, because the service was down."
                return await _fail(stores, publication, TOO_LATE, message)
    except ClaimLost:
        return None


async def _check_rights(stores: Stores, publication: Publication) -> tuple[User, str | None]:
    """Returns the author, and a reason if the author may not publish to the target now."""
    target = publication.target
    author, reason = await author_and_missing_role(stores.users, publication, Role.MEMBER)
    if reason is not None:
        return author, reason
    if isinstance(target, TopicTarget) and not await stores.communities.is_member(target.community_id, author.id):
        return author, "The author has left the topic's community."
    return author, None


async def _publish(
    stores: Stores, publication: Publication, post: ScheduledPost, author: User, mentions: list[str]
) -> Publication:
    target = publication.target
    if isinstance(target, TopicTarget):
        topic = (target.topic_id, target.community_id)
        message = NewMessage(*topic, author.id, post.text, None, mentions, ignores_slow_mode=True)
        return await stores.scheduled_posts.publish_message(publication, message)
    media = [each.url for each in post.media]
    new_post = NewPost(publication.organization_id, author.id, post.text, media, mentions, find_hashtags(post.text))
    return await stores.scheduled_posts.publish_post(publication, new_post)


async def _enqueue_follow_ups(stores: Stores, published: Publication, text: str) -> None:
    """Enqueues the fan-out and the link preview. If a queue entry is lost, a sweeper does the work later."""
    queue, has_link = stores.queue, first_url(text) is not None
    assert published.external_id is not None
    if isinstance(published.target, TopicTarget):
        if has_link:
            key = message_key(published.external_id)
            await queue.enqueue(PREVIEWS, "chat.preview_link", key.topic_id, key.timestamp)
        return
    post = post_key(published.organization_id, published.external_id)
    await queue.enqueue(FAN_OUT, "feed.fan_out", post.organization_id, post.timestamp)
    if has_link:
        await queue.enqueue(PREVIEWS, "feed.preview_link", post.organization_id, post.timestamp)


async def _fail(stores: Stores, publication: Publication, code: str, message: str) -> Publication:
    return await stores.scheduled_posts.apply(MarkFailed(publication, code, message))

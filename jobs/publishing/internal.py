"""Publications to targets inside, at their due moment: rights are looked at again, then one transaction does it all."""

import asyncio

from storage.chat.changes import NewMessage
from storage.feed.changes import NewPost
from storage.identity.mentions import find_hashtags, find_mentioned
from storage.identity.records import Role, User, with_included
from storage.link_previews import first_url
from storage.publishing.records import Publication, ScheduledPost, TopicTarget
from storage.publishing.transitions import TOO_LATE, ClaimLost, DeadlinePassed, MarkFailed, NotYetDue
from storage.queue import FAN_OUT, PREVIEWS
from storage.references import message_key, post_key
from storage.stores import Stores

FORBIDDEN = "FORBIDDEN"


async def publish_internal(stores: Stores, publication: Publication, post: ScheduledPost) -> Publication | None:
    """The publication as it is then; None when it was somebody else's by then. Raises: Unavailable."""
    try:
        author, refused = await _look(stores, publication)
        if refused is not None:
            return await _fail(stores, publication, FORBIDDEN, refused)
        mentions = await find_mentioned(stores.users, publication.organization_id, post.text)
        while True:
            try:
                done = await _publish(stores, publication, post, author, mentions)
                await _wake(stores, done, post.text)
                return done
            except NotYetDue as early:
                # The clocks of two hosts; what it waits for is a millisecond or two.
                await asyncio.sleep(early.wait_s)
            except DeadlinePassed:
                return await _fail(stores, publication, TOO_LATE, "The service was down at that time, for too long.")
    except ClaimLost:
        return None


async def _look(stores: Stores, publication: Publication) -> tuple[User, str | None]:
    """The author, and why it must not be published now, if so."""
    target = publication.target
    author = await stores.users.get(publication.organization_id, publication.author_id)
    if Role.MEMBER not in with_included(author.roles):
        return author, "The author has no longer the role MEMBER."
    if isinstance(target, TopicTarget) and not await stores.communities.is_member(target.community_id, author.id):
        return author, "The author left the topic's community."
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


async def _wake(stores: Stores, done: Publication, text: str) -> None:
    """Those who go on with it: a fan-out, a link's preview. Hints; sweepers find what these lose."""
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

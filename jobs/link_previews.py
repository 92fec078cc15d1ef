"""Link previews: a job for each message or post with a link, and the sweeper that finds lost jobs."""

from contextlib import suppress
from typing import Any

import structlog
from arq import Retry

from jobs.context import JobContext
from jobs.providers.egress import EgressFailed
from jobs.providers.link_preview import Preview, fetch_preview
from storage.errors import NotFound
from storage.ids import MessageKey, PostKey
from storage.link_previews import LinkPreview, first_url
from storage.redis.queue import PREVIEWS

MAX_TRIES = 3
RETRY_DELAY_STEP_S = 5
"""The n-th retry is delayed by n times this."""

LOST_AFTER_S = 20
"""How long a message or post waits for its preview before its job counts as lost."""

SWEEP_LIMIT = 100

log = structlog.get_logger(__name__)


async def preview_message_link(ctx: dict[str, Any], topic_id: str, timestamp: int) -> None:
    """Fetches the preview of a message's first link and stores it as an edit.

    Does nothing for a message that does not exist, was deleted or has no link.
    """
    jobs: JobContext = ctx["jobs"]
    key = MessageKey(topic_id, timestamp)
    message = await jobs.stores.messages.find(key)
    url = None if message is None or message.deleted_at is not None else first_url(message.text)
    if url is None:
        return
    preview = await _fetch(ctx, url)
    with suppress(NotFound):
        await jobs.stores.messages.set_preview(key, url, preview)


async def preview_post_link(ctx: dict[str, Any], organization_id: str, timestamp: int) -> None:
    """Fetches the preview of a post's first link and stores it, without an event.

    Does nothing for a post that does not exist, was deleted or has no link.
    """
    jobs: JobContext = ctx["jobs"]
    key = PostKey(organization_id, timestamp)
    post = await jobs.stores.posts.find(key)
    url = None if post is None else first_url(post.text)
    if url is not None:
        await jobs.stores.posts.set_preview(key, url, await _fetch(ctx, url))


async def _fetch(ctx: dict[str, Any], url: str) -> LinkPreview | None:
    """Returns the preview of a page, or None if the page has none or every try failed.

    Raises: Retry if this try failed and tries are left.
    """
    jobs: JobContext = ctx["jobs"]
    try:
        return _link_preview(await fetch_preview(jobs.egress, url))
    except EgressFailed as error:
        if ctx["job_try"] < MAX_TRIES:
            raise Retry(defer=RETRY_DELAY_STEP_S * ctx["job_try"]) from error
        return None


def _link_preview(metadata: Preview | None) -> LinkPreview | None:
    if metadata is None:
        return None
    return LinkPreview(metadata.url, metadata.title, metadata.description, metadata.image_url, metadata.site_name)


async def find_lost_previews(jobs: JobContext) -> int:
    """Enqueues jobs for at most 100 messages and 100 posts that have waited over 20 s. Returns how many."""
    queue = jobs.stores.queue
    messages = await jobs.stores.messages.awaiting_preview(LOST_AFTER_S, SWEEP_LIMIT)
    for message in messages:
        await queue.enqueue(PREVIEWS, "chat.preview_link", message.topic_id, message.timestamp)
    posts = await jobs.stores.posts.awaiting_preview(LOST_AFTER_S, SWEEP_LIMIT)
    for post in posts:
        await queue.enqueue(PREVIEWS, "feed.preview_link", post.organization_id, post.timestamp)
    return len(messages) + len(posts)

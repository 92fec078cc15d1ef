"""Link previews: a job for each message or post with a link, and the sweeper that finds lost jobs.

The job also stores a copy of the page's image, in the bytes that the decoder of pictures writes.
"""

import asyncio
from contextlib import suppress
from dataclasses import replace
from typing import Any

import structlog
from arq import Retry

from jobs.context import JobContext
from jobs.pictures.results import PREVIEW, RefusedPicture
from jobs.providers.egress import EgressFailed, EgressRefused
from jobs.providers.images import fetch_image
from jobs.providers.link_preview import Preview, fetch_preview
from storage.errors import NotFound, Unavailable
from storage.files.link_previews import LinkPreview, PreviewPicture, first_url
from storage.files.pictures import DecodedPicture
from storage.ids import MessageKey, PostKey
from storage.redis.queue import PREVIEWS

MAX_TRIES = 3
RETRY_DELAY_STEP_S = 5
"""The n-th retry is delayed by n times this."""

IMAGE_TIMEOUT_S = 10.0
"""How long a preview waits for the copy of its image: the fetch, the decoder, and the images before it."""

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
    topic = (await jobs.stores.topics.find_many([topic_id])).get(topic_id)
    if topic is None:
        return
    preview = await _fetch(ctx, topic.organization_id, url)
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
        await jobs.stores.posts.set_preview(key, url, await _fetch(ctx, organization_id, url))


async def _fetch(ctx: dict[str, Any], organization_id: str, url: str) -> LinkPreview | None:
    """Returns the preview of a page, or None if the page has none or every try failed.

    Raises: Retry if this try failed and tries are left.
    """
    jobs: JobContext = ctx["jobs"]
    try:
        preview = _link_preview(await fetch_preview(jobs.egress, url))
    except EgressFailed as error:
        if ctx["job_try"] < MAX_TRIES:
            raise Retry(defer=RETRY_DELAY_STEP_S * ctx["job_try"]) from error
        return None
    return None if preview is None else await _with_picture(jobs, organization_id, preview)


async def _with_picture(jobs: JobContext, organization_id: str, preview: LinkPreview) -> LinkPreview:
    """Returns the preview with the stored copy of its image, which is fetched unless a fresh copy exists.

    An image that is refused is removed from the preview. After any other failure, the preview keeps its image without a
    copy, and browsers get the image through the image proxy.
    """
    if preview.image_url is None:
        return preview
    try:
        async with asyncio.timeout(IMAGE_TIMEOUT_S), jobs.image_fetches:
            return replace(preview, picture=await _picture(jobs, organization_id, preview.image_url))
    except EgressRefused as error:
        log.info("preview_image_refused", reason=str(error))
        return replace(preview, image_url=None)
    except (EgressFailed, TimeoutError, Unavailable) as error:
        log.info("preview_image_not_stored", error=type(error).__name__)
        return preview


async def _picture(jobs: JobContext, organization_id: str, url: str) -> PreviewPicture | None:
    """Returns the stored copy of the image at an address; None if there is no room for it.

    Raises: EgressRefused, also for a body that is no picture; EgressFailed; Unavailable.
    """
    pictures = jobs.stores.preview_pictures
    fresh = await pictures.find_fresh(organization_id, url)
    if fresh is not None and fresh.picture is not None:
        return PreviewPicture(url, fresh.picture.width, fresh.picture.height, fresh.picture.blurhash)
    decoded = await jobs.pictures.decode(await fetch_image(jobs.egress, url), PREVIEW)
    if isinstance(decoded, RefusedPicture):
        raise EgressRefused(decoded.message)
    is_stored = await pictures.store(organization_id, url, decoded)
    return _record(url, decoded) if is_stored else None


def _record(url: str, decoded: DecodedPicture) -> PreviewPicture:
    return PreviewPicture(url, decoded.picture.width, decoded.picture.height, decoded.blurhash)


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

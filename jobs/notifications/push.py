"""The sweepers that find new notifications of people who are offline, and push them to their devices.

A worker claims a device, pushes, and then records it. If the worker is killed in between, the next worker pushes the
same topic and id again, which replaces the first push on the device.
"""

import asyncio

import orjson
import structlog

from jobs.context import JobContext
from jobs.notifications.texts import shown_notification
from jobs.notifications.unread import unread_items
from jobs.providers.web_push import MAX_PLAINTEXT_BYTES, PushDelayed, PushGone, PushMessage, PushRefused, WebPush
from storage.notifications.arrivals import NotificationArrivals
from storage.notifications.channels import MAX_TRIES, ClaimedChannel
from storage.notifications.settings import NotificationSettings, NotificationWay

BATCH_SIZE = 20
PAUSE_S = 30.0
"""The shortest time between two pushes to a device. What arrives meanwhile is one push."""

FIRST_RETRY_S = 30.0
LONGEST_RETRY_S = 3600.0

log = structlog.get_logger(__name__)


async def find_arrivals(jobs: JobContext) -> int:
    """Makes devices and mail addresses of people with new notifications due. Returns how many."""
    arrivals = NotificationArrivals(jobs.stores.mongo, jobs.stores.notification_channels)
    return await arrivals.sweep(jobs.push_delay_s, jobs.digest_delay_s)


async def send_pushes(jobs: JobContext) -> int:
    """Pushes to devices that are due, and returns how many were due. Does nothing without a VAPID key."""
    if jobs.web_push is None:
        return 0
    count = 0
    while channels := await jobs.stores.notification_channels.claim(NotificationWay.PUSH, BATCH_SIZE):
        count += len(channels)
        await asyncio.gather(*(_push_or_log(jobs, jobs.web_push, each) for each in channels))
    return count


async def _push_or_log(jobs: JobContext, web_push: WebPush, channel: ClaimedChannel) -> None:
    """Pushes to a device. After an unexpected failure, the device is due again when its claim ends."""
    try:
        await _push(jobs, web_push, channel)
    except Exception as error:
        log.exception("push_failed", error=type(error).__name__)


async def _push(jobs: JobContext, web_push: WebPush, channel: ClaimedChannel) -> None:
    stores, channels = jobs.stores, jobs.stores.notification_channels
    if channel.subscription is None or not await _is_active(jobs, channel):
        await channels.remove(channel)
        return
    settings = await stores.notification_settings.get(channel.owner)
    hours = settings.quiet_hours
    quiet_until = None if hours is None else hours.end_after(await stores.clock.now())
    if quiet_until is not None:
        await channels.postpone(channel, quiet_until)
        return
    message = await _message(jobs, channel, settings)
    if message is not None:
        try:
            await web_push.send(channel.subscription, message)
        except PushGone:
            await channels.remove(channel)
            return
        except PushDelayed as error:
            log.warning("push_delayed", error=str(error))
            if channel.tries + 1 < MAX_TRIES:
                backoff_s = min(FIRST_RETRY_S * 2**channel.tries, LONGEST_RETRY_S)
                await channels.postpone(channel, None, max(backoff_s, error.retry_s or 0.0))
                return
        except PushRefused as error:
            log.warning("push_refused", error=str(error))
    await channels.finish(channel, PAUSE_S if message is not None else 0.0)


async def _is_active(jobs: JobContext, channel: ClaimedChannel) -> bool:
    """Returns whether the person has access, and the session that registered the device has not ended."""
    user = await jobs.stores.users.find(*channel.owner)
    if user is None or user.is_deactivated or user.is_erased:
        return False
    return channel.session_id is None or await jobs.stores.sessions.is_open(channel.session_id)


async def _message(jobs: JobContext, channel: ClaimedChannel, settings: NotificationSettings) -> PushMessage | None:
    """Returns the push; None if the person has read everything, or wants nothing of it."""
    items = await unread_items(jobs.stores, channel, settings)
    if not items:
        return None
    shown = shown_notification(items, settings.language)
    tag = channel.sending_id if shown.tag is None else shown.tag
    id_and_keys = {"id": channel.sending_id, "keys": shown.keys}
    content = {"title": shown.title, "body": shown.body, "place": shown.place, "tag": tag, **id_and_keys}
    plaintext = orjson.dumps(content)
    if len(plaintext) > MAX_PLAINTEXT_BYTES:
        plaintext = orjson.dumps({**content, "body": "", "keys": []})
    return PushMessage(plaintext, channel.sending_id)

"""The sweeper that mails digests of unread notifications. A notification is in at most one digest.

A worker records a digest after the SMTP server has accepted the recipient, and immediately before it transfers the
content. So a worker that is killed before sends nothing, and another worker sends the digest. A worker that is killed
afterwards has transferred it, unless the database's answer was still on its way.
"""

import asyncio
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import structlog

from jobs.context import JobContext
from jobs.notifications.digest_texts import DigestLinks, digest_mail
from jobs.notifications.unread import UnreadItem, unread_items
from jobs.providers.mailer import Mail, MailDelayed, MailRefused, MailUncertain
from storage.errors import Unavailable
from storage.identity.records import User
from storage.ids import UserKey
from storage.mail.records import DeliveryEvent
from storage.notifications.channels import MAX_TRIES, ClaimedChannel
from storage.notifications.digests import next_digest_at
from storage.notifications.settings import DigestPeriod, NotificationSettings, NotificationWay
from storage.secrets.unsubscribe_links import UnsubscribeLinks, UnsubscribeTarget, unsubscribe_links
from storage.timeline import timeline_range

BATCH_SIZE = 5
FIRST_RETRY_S = 60.0
LONGEST_RETRY_S = 3600.0
DRAIN_S = 10.0
"""How long a worker that stops waits for the answer of the mail server."""

SOURCE = "digests"
"""Source of the delivery events about refused digests."""

_STATUS = re.compile(r"[245]\.\d{1,3}\.\d{1,3}", re.ASCII)

log = structlog.get_logger(__name__)


class _ClaimEnded(Exception):
    """Another worker may send the digest, so this one does not."""


async def send_digests(jobs: JobContext) -> int:
    """Mails the digests that are due, and returns how many were due."""
    count = 0
    while channels := await jobs.stores.notification_channels.claim(NotificationWay.MAIL, BATCH_SIZE):
        count += len(channels)
        links = await unsubscribe_links(jobs.stores.mongo, jobs.base_url)
        sending = asyncio.gather(*(_send_or_log(jobs, links, each) for each in channels))
        try:
            await asyncio.shield(sending)
        except asyncio.CancelledError:
            # Digests that were recorded are transferred.
            await asyncio.wait([sending], timeout=DRAIN_S)
            raise
    return count


async def _send_or_log(jobs: JobContext, links: UnsubscribeLinks, channel: ClaimedChannel) -> None:
    """Sends a digest. After an unexpected failure, it is due again when its claim ends."""
    try:
        await _send(jobs, links, channel)
    except Unavailable as error:
        log.warning("digest_delayed", error=error.message)
    except Exception as error:
        log.exception("digest_failed", error=type(error).__name__)


async def _send(jobs: JobContext, links: UnsubscribeLinks, channel: ClaimedChannel) -> None:
    stores, channels = jobs.stores, jobs.stores.notification_channels
    settings, now = await stores.notification_settings.get(channel.owner), await stores.clock.now()
    if settings.digest is DigestPeriod.NEVER:
        await channels.remove(channel)
        return
    hours = settings.quiet_hours
    quiet_until = None if hours is None else hours.end_after(now)
    if quiet_until is not None:
        await channels.postpone(channel, quiet_until)
        return
    recipient = await digest_recipient(jobs, channel.owner)
    items = [] if recipient is None else await unread_items(stores, channel, settings)
    if recipient is None or not items:
        await channels.finish(channel, 0.0)
        return
    waits_until = await _oldest(jobs, channel, items) + timedelta(seconds=jobs.digest_delay_s)
    if waits_until > now:
        await channels.postpone(channel, waits_until)
        return
    user, address = recipient
    unsubscribe = links.link(UnsubscribeTarget(channel.owner, address, settings.language.value))
    mail = digest_mail(user.name, address, items, settings.language, DigestLinks(jobs.base_url, unsubscribe))
    await _mail(jobs, channel, replace(mail, recipient=channel.owner), _pause_s(settings, now))


async def digest_recipient(jobs: JobContext, owner: UserKey) -> tuple[User, str] | None:
    """Returns the person and the address; None if the person gets no digest or summary now.

    That is a person without access, without a verified address, or whose address the address book blocks.
    """
    stores = jobs.stores
    user, address = await stores.users.find(*owner), await stores.users.verified_address(owner)
    if user is None or user.is_deactivated or user.is_erased or address is None:
        return None
    (standing,) = await stores.address_book.look_up(owner.organization_id, [address])
    return None if standing.blocked else (user, address)


async def _oldest(jobs: JobContext, channel: ClaimedChannel, items: list[UnreadItem]) -> datetime:
    """Returns since when the items have waited. A conversation waits since its oldest unread message."""
    timestamps = [await _waits_since(jobs, channel, item) for item in items]
    return datetime.fromtimestamp(min(timestamps) / 1_000_000, UTC)


async def _waits_since(jobs: JobContext, channel: ClaimedChannel, item: UnreadItem) -> int:
    if item.notification is not None:
        return item.notification.timestamp
    assert item.message is not None
    topic_id = item.message.topic_id
    read_up_to = await jobs.stores.topics.read_up_to(topic_id, channel.owner.user_id) or 0
    unread = timeline_range(oldest=max(read_up_to, channel.after) + 1, limit=1)
    page = await jobs.stores.messages.page(topic_id, unread)
    return page.items[0].timestamp if page.items else item.message.timestamp


def _pause_s(settings: NotificationSettings, now: datetime) -> float:
    zone = "UTC" if settings.quiet_hours is None else settings.quiet_hours.time_zone
    return (next_digest_at(now, settings.digest, zone) - now).total_seconds()


async def _mail(jobs: JobContext, channel: ClaimedChannel, mail: Mail, pause_s: float) -> None:
    channels = jobs.stores.notification_channels

    async def record() -> None:
        if not await channels.finish(channel, pause_s):
            raise _ClaimEnded

    try:
        await jobs.mailer.send(mail, channel.sending_id, record)
    except _ClaimEnded:
        log.info("digest_left_to_another_worker")
    except MailUncertain as error:
        # A repetition could be a second digest, so the digest counts as sent.
        log.warning("digest_uncertain", error=str(error))
    except MailDelayed as error:
        log.warning("digest_delayed", error=str(error))
        await _try_again(jobs, channel)
    except MailRefused as error:
        log.warning("digest_refused", error=str(error))
        await record_refusal(jobs, channel.owner, f"digest {channel.sending_id}", mail, error)
        await channels.finish(channel, pause_s)


async def _try_again(jobs: JobContext, channel: ClaimedChannel) -> None:
    """Makes the channel due again, unless this was the last try: then its notifications are in no digest."""
    channels = jobs.stores.notification_channels
    if channel.tries + 1 >= MAX_TRIES:
        await channels.finish(channel, 0.0)
        return
    retry_s = min(FIRST_RETRY_S * 2**channel.tries, LONGEST_RETRY_S)
    if not await channels.postpone(channel, None, retry_s):
        await channels.reopen(channel, retry_s)


async def record_refusal(jobs: JobContext, owner: UserKey, message_id: str, mail: Mail, error: MailRefused) -> None:
    """Adds the reply to the mail ledger, from which the address book learns of addresses that do not exist."""
    if error.code is None or mail.to_address is None:
        return
    status = _STATUS.match(error.reply)
    event = DeliveryEvent(
        message_id,
        mail.to_address,
        await jobs.stores.mongo.now(),
        smtp_code=error.code,
        enhanced_status=None if status is None else status[0],
        diagnostic=error.reply,
    )
    await jobs.stores.ledger.record(owner.organization_id, SOURCE, [event])

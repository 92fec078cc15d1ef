"""The sweeper that mails the team of an organization a daily summary of publications that may need a person.

A worker records a summary after the SMTP server has accepted the recipient, and immediately before it transfers the
content, as with digests. So a person gets one summary a day at most, also when workers are killed.
"""

import hashlib
from dataclasses import replace
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import orjson
import structlog

from jobs.context import JobContext
from jobs.notifications.digest_texts import DigestLinks
from jobs.notifications.digests import digest_recipient, record_refusal
from jobs.notifications.publication_summary_texts import SummaryPosts, summary_mail
from jobs.providers.mailer import Mail, MailDelayed, MailRefused, MailUncertain
from storage.errors import Unavailable
from storage.ids import UserKey
from storage.notifications.settings import NotificationCategory, NotificationSettings
from storage.publishing.reports.summaries import OrganizationProblems, SummaryContent, next_morning
from storage.secrets.unsubscribe_links import UnsubscribeLinks, UnsubscribeTarget, unsubscribe_links

LONGEST_LOOK_BACK = timedelta(days=2)
"""A summary leaves out what ended earlier. An organization without anything since then is closed."""

log = structlog.get_logger(__name__)


class _AlreadySent(Exception):
    """Another worker has recorded the summary of this day."""


async def send_publication_summaries(jobs: JobContext) -> int:
    """Mails the summaries that are due. Returns how many organizations were looked at."""
    count, store = 0, jobs.stores.publication_summaries
    while (problems := await store.claim()) is not None:
        count += 1
        now = await jobs.stores.clock.now()
        links = await unsubscribe_links(jobs.stores.mongo, jobs.base_url)
        for person in await store.team(problems.organization_id, now):
            await _send_or_log(jobs, links, problems, person)
        if (await store.content(problems.organization_id, now - LONGEST_LOOK_BACK)).is_empty:
            await store.close(problems)
    return count


async def _send_or_log(
    jobs: JobContext, links: UnsubscribeLinks, problems: OrganizationProblems, person: UserKey
) -> None:
    """Sends a summary if one is due. After an unexpected failure, the next round tries again."""
    try:
        await _send(jobs, links, problems, person)
    except Unavailable as error:
        log.warning("summary_delayed", error=error.message)
    except Exception as error:
        log.exception("summary_failed", error=type(error).__name__)


async def _send(jobs: JobContext, links: UnsubscribeLinks, problems: OrganizationProblems, person: UserKey) -> None:
    stores, now = jobs.stores, await jobs.stores.clock.now()
    settings = await stores.notification_settings.get(person)
    last = await stores.publication_summaries.last_sent(person)
    since = problems.since if last is None else max(last, problems.since)
    if not _is_due(settings, since, now):
        return
    recipient = await digest_recipient(jobs, person)
    if recipient is None:
        return
    since = max(now - LONGEST_LOOK_BACK, problems.since if last is None else last)
    content = await stores.publication_summaries.content(person.organization_id, since)
    if content.is_empty:
        return
    user, address = recipient
    language = settings.language
    unsubscribe = links.link(UnsubscribeTarget(person, address, language.value))
    posts = await _posts(jobs, content)
    mail = summary_mail(user.name, address, posts, language, DigestLinks(jobs.base_url, unsubscribe))
    await _mail(jobs, replace(mail, recipient=person), _local_day(settings, now), now, last)


def _is_due(settings: NotificationSettings, since: datetime, now: datetime) -> bool:
    """Returns whether the person wants mails about publications, and a morning has come that is not quiet."""
    if not settings.ways_by_category[NotificationCategory.PUBLICATION].mail:
        return False
    hours = settings.quiet_hours
    if hours is not None and hours.end_after(now) is not None:
        return False
    return next_morning(since, _zone(settings)) <= now


def _zone(settings: NotificationSettings) -> str:
    return "UTC" if settings.quiet_hours is None else settings.quiet_hours.time_zone


def _local_day(settings: NotificationSettings, now: datetime) -> str:
    return now.astimezone(ZoneInfo(_zone(settings))).date().isoformat()


async def _posts(jobs: JobContext, content: SummaryContent) -> SummaryPosts:
    """Returns the content with the posts of the publications."""
    posts = {}
    for reason, publications in content.publications.items():
        ids = list(dict.fromkeys(each.scheduled_post_id for each in publications))
        posts[reason] = await jobs.stores.scheduled_posts.get_many(ids)
    return SummaryPosts(posts, content.accounts)


async def _mail(jobs: JobContext, mail: Mail, day: str, now: datetime, last: datetime | None) -> None:
    assert mail.recipient is not None
    person, store = mail.recipient, jobs.stores.publication_summaries
    id_ = f"summary-{hashlib.sha256(orjson.dumps([*person, day])).hexdigest()[:32]}"

    async def record() -> None:
        if not await store.record(person, day, now):
            raise _AlreadySent

    try:
        await jobs.mailer.send(mail, id_, record)
    except _AlreadySent:
        log.info("summary_left_to_another_worker")
    except MailUncertain as error:
        # A repetition could be a second summary, so the summary counts as sent.
        log.warning("summary_uncertain", error=str(error))
    except MailDelayed as error:
        log.warning("summary_delayed", error=str(error))
        await store.reopen(person, day, last)
    except MailRefused as error:
        log.warning("summary_refused", error=str(error))
        await record_refusal(jobs, person, id_, mail, error)
        await store.record(person, day, now)

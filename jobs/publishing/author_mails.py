"""Mails authors about posts that failed, wait, are unknown or late.

The publication stores the mail until it is sent, so a crash loses none.
"""

import structlog

from jobs.context import JobContext
from jobs.providers.mailer import MailDelayed, MailRefused
from jobs.publishing.author_mail_texts import ReportedPost, TargetText, author_mail
from storage.publishing.records import AccountTarget, Publication, TopicTarget
from storage.publishing.reports.records import ReportMail

BATCH_SIZE = 20

log = structlog.get_logger(__name__)


async def send_author_mails(jobs: JobContext) -> int:
    """Sends due mails, and returns how many were due. A mail that is delayed is tried again after 2 minutes."""
    mails = await jobs.stores.claims.claim_mails(BATCH_SIZE)
    for mail in mails:
        try:
            await _send(jobs, mail)
        except MailDelayed as error:
            log.warning("mail_delayed", publication=mail.publication.id, error=str(error))
            continue
        except MailRefused as error:
            log.warning("mail_refused", publication=mail.publication.id, error=str(error))
        await jobs.stores.claims.mark_mailed(mail)
    return len(mails)


async def _send(jobs: JobContext, mail: ReportMail) -> None:
    """Sends a mail in the author's language, unless the publication has changed since it was reported."""
    if not mail.is_current:
        return
    publication, stores = mail.publication, jobs.stores
    author = await stores.users.get(publication.organization_id, publication.author_id)
    post = await stores.scheduled_posts.get(publication.organization_id, publication.scheduled_post_id)
    language = (await stores.notification_settings.get(author.key)).language
    reported = ReportedPost(mail.reason, publication, post, await _target(jobs, publication))
    await jobs.mailer.send(author_mail(author, reported, language, jobs.base_url), mail.id)


async def _target(jobs: JobContext, publication: Publication) -> TargetText:
    target, stores = publication.target, jobs.stores
    if isinstance(target, AccountTarget):
        account = await stores.accounts.get(publication.organization_id, target.account_id)
        return TargetText("ACCOUNT", f"{account.name} ({account.network.value})")
    if isinstance(target, TopicTarget):
        topic = await stores.topics.find(publication.organization_id, target.topic_id)
        return TargetText("TOPIC", topic.title) if topic else TargetText("REMOVED_TOPIC")
    return TargetText("HOME_FEED")

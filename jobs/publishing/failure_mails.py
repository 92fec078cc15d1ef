"""Mails the author of a failed publication. The publication stores when to send the mail, so a crash loses none."""

import structlog

from jobs.context import JobContext
from jobs.providers.mailer import Mail, MailDelayed, MailRefused
from storage.publishing.records import AccountTarget, Publication, TopicTarget

BATCH_SIZE = 20
EXCERPT_CHARS = 200

log = structlog.get_logger(__name__)


async def send_failure_mails(jobs: JobContext) -> int:
    """Sends due mails, and returns how many were due. A mail that is delayed is tried again after 2 minutes."""
    publications = await jobs.stores.claims.claim_mails(BATCH_SIZE)
    for publication in publications:
        try:
            await jobs.mailer.send(await _mail(jobs, publication), publication.id)
        except MailDelayed as error:
            log.warning("mail_delayed", publication=publication.id, error=str(error))
            continue
        except MailRefused as error:
            log.warning("mail_refused", publication=publication.id, error=str(error))
        await jobs.stores.claims.mark_mailed(publication)
    return len(publications)


async def _mail(jobs: JobContext, publication: Publication) -> Mail:
    organization_id, stores = publication.organization_id, jobs.stores
    author = await stores.users.get(organization_id, publication.author_id)
    post = await stores.scheduled_posts.get(organization_id, publication.scheduled_post_id)
    target = await _target_name(jobs, publication)
    error = publication.error
    lines = [
        f"Hello {author.name},",
        "",
        f"your post for {target}, due at {post.due_at:%Y-%m-%d %H:%M:%S} UTC, was not published.",
        "",
        f"Reason: {error.message if error else 'unknown'} ({error.code if error else 'UNKNOWN'})",
        f"Text: {post.text[:EXCERPT_CHARS]}",
        "",
        "The post will not be retried automatically.",
    ]
    subject = f"Not published: your post for {target}"
    return Mail(author.name, author.email, subject, "\n".join(lines), recipient=author.key)


async def _target_name(jobs: JobContext, publication: Publication) -> str:
    target, stores = publication.target, jobs.stores
    if isinstance(target, AccountTarget):
        account = await stores.accounts.get(publication.organization_id, target.account_id)
        return f"{account.name} ({account.network.value})"
    if isinstance(target, TopicTarget):
        topic = await stores.topics.find(publication.organization_id, target.topic_id)
        return f"the topic {topic.title}" if topic else "a topic"
    return "your followers"

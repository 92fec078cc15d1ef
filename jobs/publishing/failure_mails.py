"""The mail to an author whose publication failed. Kept due in the publication itself, so none is lost with a worker."""

import structlog

from jobs.context import JobContext
from jobs.providers.mailer import Mail, MailDelayed, MailRefused
from storage.publishing.records import AccountTarget, Publication, TopicTarget

AT_ONCE = 20
SHOWN = 200

log = structlog.get_logger(__name__)


async def send_failure_mails(jobs: JobContext) -> int:
    """Sends what is due, and returns how many. One that can't be sent now is tried again, up to a day."""
    publications = await jobs.stores.claims.claim_mails(AT_ONCE)
    for publication in publications:
        try:
            await jobs.mailer.send(await _mail(jobs, publication), publication.id)
        except MailDelayed as error:
            log.warning("mail_delayed", publication=publication.id, error=str(error))
            continue
        except MailRefused as error:
            log.warning("mail_refused", publication=publication.id, error=str(error))
        await jobs.stores.claims.mailed(publication)
    return len(publications)


async def _mail(jobs: JobContext, publication: Publication) -> Mail:
    organization_id, stores = publication.organization_id, jobs.stores
    author = await stores.users.get(organization_id, publication.author_id)
    post = await stores.scheduled_posts.get(organization_id, publication.scheduled_post_id)
    where = await _where(jobs, publication)
    error = publication.error
    lines = [
        f"Hello {author.name},",
        "",
        f"your post for {where}, due at {post.due_at:%Y-%m-%d %H:%M:%S} UTC, was not published.",
        "",
        f"Why: {error.message if error else 'unknown'} ({error.code if error else 'UNKNOWN'})",
        f"Text: {post.text[:SHOWN]}",
        "",
        "It will not be tried again by itself.",
    ]
    return Mail(author.name, author.email, f"Not published: your post for {where}", "\n".join(lines))


async def _where(jobs: JobContext, publication: Publication) -> str:
    target, stores = publication.target, jobs.stores
    if isinstance(target, AccountTarget):
        account = await stores.accounts.get(publication.organization_id, target.account_id)
        return f"{account.name} ({account.network.value})"
    if isinstance(target, TopicTarget):
        topic = await stores.topics.find(publication.organization_id, target.topic_id)
        return f"the topic {topic.title}" if topic else "a topic"
    return "your followers"

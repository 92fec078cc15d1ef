"""Mails the administrators of an organization that a webhook was disabled. The mail is due until it was sent."""

import structlog

from jobs.context import JobContext
from jobs.providers.mailer import Mail, MailDelayed, MailRefused
from storage.identity.administration import UserFilter
from storage.identity.records import User
from storage.identity.roles import Role
from storage.webhooks.records import DisabledReason, Webhook

BATCH_SIZE = 20
MAX_RECIPIENTS = 20

_REASONS = {
    DisabledReason.FAILING: "A message has failed for too long.",
    DisabledReason.GONE: "The address answered 410 Gone.",
    DisabledReason.KEY_ENDED: "Its service key was revoked or has expired.",
    DisabledReason.REQUESTED: "An administrator disabled it.",
}

log = structlog.get_logger(__name__)


async def send_webhook_notices(jobs: JobContext) -> int:
    """Sends due mails. Returns of how many webhooks. A mail that is delayed is tried again after 2 minutes."""
    webhooks = await jobs.stores.webhook_claims.claim_notices(BATCH_SIZE)
    for webhook in webhooks:
        if await _send(jobs, webhook):
            await jobs.stores.webhook_claims.end_notice(webhook)
    return len(webhooks)


async def _send(jobs: JobContext, webhook: Webhook) -> bool:
    """Returns whether no mail was delayed. The same mail has the same id, so that a repetition replaces it."""
    is_complete = True
    for person in await _administrators(jobs, webhook.organization_id):
        try:
            await jobs.mailer.send(_mail(jobs, webhook, person), f"webhook-{webhook.id}-{person.id}")
        except MailDelayed as error:
            log.warning("mail_delayed", webhook=webhook.id, error=str(error))
            is_complete = False
        except MailRefused as error:
            log.warning("mail_refused", webhook=webhook.id, error=str(error))
    return is_complete


async def _administrators(jobs: JobContext, organization_id: str) -> list[User]:
    active = UserFilter(role=Role.ADMIN, is_deactivated=False)
    found = await jobs.stores.user_administration.list_users(organization_id, active, None, MAX_RECIPIENTS)
    return [person for person in found if person.email is not None]


def _mail(jobs: JobContext, webhook: Webhook, person: User) -> Mail:
    reason = _REASONS[webhook.disabled_reason or DisabledReason.FAILING]
    lines = [
        f"Hello {person.name},",
        "",
        f"the webhook {webhook.name} was disabled. It sends no events until somebody enables it again.",
        "",
        f"Address: {webhook.url}",
        f"Reason: {reason}",
        f"Last error: {webhook.last_error or 'unknown'}",
        "",
        "Enable it as soon as the receiver works. The events that it missed are sent then, as far as they are kept.",
        f"{jobs.base_url}/#/adminWebhooks",
    ]
    return Mail(person.name, person.email, f"Webhook disabled: {webhook.name}", "\n".join(lines), recipient=person.key)

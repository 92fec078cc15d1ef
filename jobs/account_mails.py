"""Mails about accounts: the link that proves an address, the link that resets a password, and invitations.

Due mails are stored, so a crash loses no mail. A worker creates the token of the link when it sends the mail, and then
deletes the stored mail. If it dies before, the next worker sends the mail again, with another token.
"""

from collections.abc import Awaitable, Callable

import structlog

from jobs.account_mail_texts import ALREADY_REGISTERED, INVITATION, REGISTRATION, RESET, MailText, MailVariables
from jobs.context import JobContext
from jobs.providers.mailer import Mail, MailDelayed, MailRefused
from storage.errors import NotFound
from storage.identity.accounts.mails import AccountMail, AccountMailKind
from storage.identity.accounts.tokens import TokenPurpose, TokenSubject

BATCH_SIZE = 20

log = structlog.get_logger(__name__)


async def send_account_mails(jobs: JobContext) -> int:
    """Sends due mails, and returns their number. A mail that could not be sent is tried again after a minute."""
    mails = await jobs.stores.account_mails.claim(BATCH_SIZE)
    for mail in mails:
        try:
            await _send(jobs, mail)
        except MailDelayed as error:
            log.warning("mail_delayed", mail=mail.id, kind=mail.kind.value, error=str(error))
            continue
        except MailRefused as error:
            log.warning("mail_refused", mail=mail.id, kind=mail.kind.value, error=str(error))
        await jobs.stores.account_mails.finish(mail)
    return len(mails)


async def _send(jobs: JobContext, mail: AccountMail) -> None:
    content = await _PREPARE[mail.kind](jobs, mail)
    if content is None:
        return
    text, values = content
    subject, body = text.render(mail.language, values)
    await jobs.mailer.send(Mail(values.get("name", ""), mail.address, subject, body), mail.id)


MailContent = tuple[MailText, MailVariables]


async def _registration(jobs: JobContext, mail: AccountMail) -> MailContent | None:
    """Returns a link to finish the registration; for an address that has an account, a hint to sign in."""
    account = await jobs.stores.local_accounts.find(mail.organization_id, mail.address)
    if account is not None:
        return ALREADY_REGISTERED, {"link": f"{jobs.base_url}/"}
    subject = TokenSubject(mail.organization_id, None, mail.address, mail.invitation_id)
    token = await jobs.stores.account_tokens.issue(TokenPurpose.REGISTRATION, subject)
    return REGISTRATION, {"link": f"{jobs.base_url}/#verification={token}", "address": mail.address}


async def _reset(jobs: JobContext, mail: AccountMail) -> MailContent | None:
    """Returns a link to choose another password; None for an address without an account."""
    stores = jobs.stores
    account = await stores.local_accounts.find(mail.organization_id, mail.address)
    user = None if account is None else await stores.users.find(mail.organization_id, account.user_id)
    if user is None or user.is_deactivated:
        return None
    subject = TokenSubject(mail.organization_id, user.id, mail.address)
    token = await stores.account_tokens.issue(TokenPurpose.RESET, subject)
    return RESET, {"link": f"{jobs.base_url}/#reset={token}", "name": user.name}


async def _invitation(jobs: JobContext, mail: AccountMail) -> MailContent | None:
    """Returns a link to accept the invitation; None if the invitation is not open any more."""
    stores, organization_id = jobs.stores, mail.organization_id
    try:
        invitation_and_token = await stores.invitations.add_token(organization_id, mail.invitation_id or "")
    except NotFound:
        return None
    if invitation_and_token is None:
        return None
    invitation, token = invitation_and_token
    creator = await stores.users.find(organization_id, invitation.creator_id)
    return INVITATION, {
        "link": f"{jobs.base_url}/#invitation={token}",
        "creator": creator.name if creator is not None else "",
        "until": f"{invitation.expires_at:%Y-%m-%d %H:%M} UTC",
    }


_PREPARE: dict[AccountMailKind, Callable[[JobContext, AccountMail], Awaitable[MailContent | None]]] = {
    AccountMailKind.REGISTRATION: _registration,
    AccountMailKind.RESET: _reset,
    AccountMailKind.INVITATION: _invitation,
}

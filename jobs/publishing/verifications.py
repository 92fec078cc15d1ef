"""Verifies the credentials of connected accounts once a day, so that refusals are known before a post is due.

Only a refusal of the credentials counts. A network that is busy, not reached or failing is asked again after an hour.
Other refusals may be about the question, and change nothing.
"""

import structlog

from jobs.context import JobContext
from jobs.providers.social.verification import AccountVerifier, CredentialsInvalid
from storage.errors import CredentialsNotAccepted, Unavailable
from storage.publishing.credentials.verifications import ClaimedVerification
from storage.publishing.records import ConnectedAccount, VerifiedAccount
from storage.secrets.credentials import CredentialsLost

BATCH_SIZE = 20
RETRY_S = 3600.0
"""How long a worker waits before it asks a network again that gave no answer."""

log = structlog.get_logger(__name__)


async def verify_credentials(jobs: JobContext) -> int:
    """Verifies the credentials of accounts whose time has come, and returns how many accounts were due."""
    count = 0
    while jobs.account_verifier is not None and count < BATCH_SIZE:
        claimed = await jobs.stores.credential_verifications.claim(list(jobs.credential_renewers))
        if claimed is None:
            break
        await _verify(jobs, claimed, jobs.account_verifier)
        count += 1
    return count


async def _verify(jobs: JobContext, claimed: ClaimedVerification, verifier: AccountVerifier) -> None:
    verifications, account = jobs.stores.credential_verifications, claimed.account
    try:
        secret = jobs.stores.accounts.open(account, claimed.document["credentials"])
        owner = await verifier.verify(account.network, account.base_url, secret)
    except CredentialsLost as error:
        await _refuse(jobs, claimed, "CREDENTIALS_LOST", str(error))
    except CredentialsInvalid as refusal:
        text = f"{account.network.value} refuses the credentials ({refusal.details['reason']})."
        await _refuse(jobs, claimed, "UNAUTHORIZED", text)
    except CredentialsNotAccepted as refusal:
        await verifications.postpone(claimed)
        log.warning("verification_without_result", account=account.id, reason=refusal.details["reason"])
    except Unavailable as failure:
        await verifications.postpone(claimed, max(RETRY_S, _retry_after_s(failure)))
        log.info("verification_postponed", account=account.id)
    else:
        await _compare(jobs, claimed, owner)


async def _compare(jobs: JobContext, claimed: ClaimedVerification, owner: VerifiedAccount) -> None:
    """Accepts the credentials if they are of the same account as before, and refuses them otherwise."""
    account = claimed.account
    if account.network_id not in (None, owner.id):
        await _refuse(jobs, claimed, "UNAUTHORIZED", _other_account(account, owner))
    elif await jobs.stores.credential_verifications.accept(claimed, owner) and account.attention is not None:
        accepted = await jobs.stores.accounts.get(account.organization_id, account.id)
        await jobs.stores.scheduled_posts.resume_account(accepted)


def _other_account(account: ConnectedAccount, owner: VerifiedAccount) -> str:
    """Returns the reason for people, with the names that the network gives the two accounts."""
    return (
        f"The credentials belong to {owner.handle or owner.id} at {account.network.value}, and not to "
        f"{account.handle or account.network_id} any more."
    )


def _retry_after_s(failure: Unavailable) -> float:
    """Returns after how many seconds the network may be asked again, as it says."""
    milliseconds = failure.details["retryAfterMs"]
    return milliseconds / 1000 if isinstance(milliseconds, int) else 0.0


async def _refuse(jobs: JobContext, claimed: ClaimedVerification, code: str, message: str) -> None:
    if await jobs.stores.credential_verifications.refuse(claimed, code, message):
        log.warning("credentials_refused", account=claimed.account.id, code=code)

"""Renews the credentials of accounts before they end (ADR 105).

The claim stores that a call begins. So the next worker knows that an answer may have been lost, and calls again: a
network that has not received the first call, or that allows to repeat it, gives new credentials. If it refuses, the
account needs a person, and its mark says why.
"""

import asyncio

import structlog

from jobs.context import JobContext
from jobs.providers.social.network import OutcomeUncertain, PublishingRefused, RetryableFailure
from jobs.providers.social.oauth.authorization import CredentialRenewer, Grant
from storage.mongo import unavailable
from storage.publishing.credentials.renewals import ClaimedRenewal, CredentialRenewals
from storage.publishing.networks import BEHAVIOURS, Network
from storage.secrets.credentials import CredentialsLost

BATCH_SIZE = 20
TRIES_WITHIN_LEAD = 15
"""How many failed tries fit into the time between the first try and the end of the credentials."""

MAX_PAUSE_S = 3600.0
MAX_REASON_CHARS = 300
STORE_TRIES = 30
STORE_PAUSE_S = 1.0

log = structlog.get_logger(__name__)


async def renew_credentials(jobs: JobContext) -> int:
    """Renews credentials that end soon, and returns how many accounts were due."""
    networks, count = list(jobs.credential_renewers), 0
    while networks and count < BATCH_SIZE:
        renewal = await jobs.stores.credential_renewals.claim(networks)
        if renewal is None:
            break
        await _renew(jobs, renewal)
        count += 1
    return count


async def _renew(jobs: JobContext, renewal: ClaimedRenewal) -> None:
    renewals, network = jobs.stores.credential_renewals, renewal.account.network
    try:
        await _call(jobs, renewal, jobs.credential_renewers[network])
    except CredentialsLost as error:
        await renewals.refuse(renewal, "CREDENTIALS_LOST", str(error))
    except PublishingRefused as refusal:
        await _end(renewals, renewal, str(refusal))
        log.warning("renewal_refused", account=renewal.account.id, was_interrupted=renewal.was_interrupted)
    except RetryableFailure as failure:
        pause_s = max(_pause_s(network), failure.after_s or 0.0)
        await renewals.postpone(renewal, pause_s, had_no_effect=True)
        log.warning("renewal_postponed", account=renewal.account.id, reason=type(failure).__name__)
    except (OutcomeUncertain, ValueError) as failure:
        await renewals.postpone(renewal, _pause_s(network), had_no_effect=False)
        log.warning("renewal_unanswered", account=renewal.account.id, reason=type(failure).__name__)


async def _end(renewals: CredentialRenewals, renewal: ClaimedRenewal, reason: str) -> None:
    """Ends a renewal that the network refuses. Pasted credentials, whose end is not known, may still be valid."""
    if renewal.account.credentials_expire_at is None:
        await renewals.give_up(renewal)
    else:
        await renewals.refuse(renewal, "UNAUTHORIZED", _explanation(renewal, reason))


async def _call(jobs: JobContext, renewal: ClaimedRenewal, renewer: CredentialRenewer) -> None:
    """Calls the network, and stores its answer. Raises: as `CredentialRenewer.renew`; CredentialsLost."""
    secret, refresh_token = jobs.stores.credential_renewals.secrets(renewal)
    grant = await renewer.renew(renewal.account.base_url, secret, refresh_token)
    if not await _store(jobs, renewal, grant):
        log.info("renewal_superseded", account=renewal.account.id)
        return
    log.info("credentials_renewed", account=renewal.account.id)
    account = await jobs.stores.accounts.get(renewal.account.organization_id, renewal.account.id)
    await jobs.stores.scheduled_posts.resume_account(account)


async def _store(jobs: JobContext, renewal: ClaimedRenewal, grant: Grant) -> bool:
    """Stores the network's answer, which nobody else has, and tries again while the database does not answer.

    Returns False if the account has other credentials by now: also those of a try whose success was not known.
    """
    for _ in range(STORE_TRIES - 1):
        try:
            return await jobs.stores.credential_renewals.store(renewal, grant.secret, grant.lifetime)
        except Exception as error:
            if unavailable(error) is None:
                raise
            log.warning("renewal_not_stored", account=renewal.account.id, error=repr(error))
        await asyncio.sleep(STORE_PAUSE_S)
    return await jobs.stores.credential_renewals.store(renewal, grant.secret, grant.lifetime)


def _explanation(renewal: ClaimedRenewal, reason: str) -> str:
    """Returns why the account must be connected again, for people."""
    network, reason = renewal.account.network.value, reason[:MAX_REASON_CHARS].rstrip(".")
    if renewal.was_interrupted:
        return (
            f"{network} renewed the token, but its answer was lost, and it answers a refresh token once ({reason}). "
            "Connect the account again."
        )
    return f"{network} does not renew the token ({reason}). Connect the account again."


def _pause_s(network: Network) -> float:
    return min(MAX_PAUSE_S, BEHAVIOURS[network].renewal_lead_s / TRIES_WITHIN_LEAD)

"""Verification of credentials with their network, before they are stored."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from jobs.providers.social.network import (
    CredentialsRefused,
    OutcomeUncertain,
    PublishingAccount,
    PublishingRefused,
    RetryableFailure,
)
from jobs.providers.social.registry import NetworkClients
from storage.errors import CredentialsNotAccepted, Unavailable
from storage.publishing.networks import Network
from storage.publishing.records import VerifiedAccount

VERIFICATION_TIMEOUT_S = 8.0
"""Shorter than the time that a mutation has (`execution_timeout_s`), so that the client gets the precise error."""

RETRY_AFTER_S = 5.0
"""When the client may ask again, unless the network says so."""

MAX_HANDLE_CHARS = 500
MAX_REASON_CHARS = 300
MIN_SECRET_CHARS = 8
"""Secrets of networks are longer. A shorter text is left in a network's reason, where it is probably a word."""


class CredentialsInvalid(CredentialsNotAccepted):
    """The network refuses the credentials for every call. Other refusals may be about the question only."""


@dataclass(frozen=True, slots=True)
class AccountVerifier:
    """Asks networks whether they accept credentials."""

    networks: NetworkClients
    timeout_s: float = VERIFICATION_TIMEOUT_S

    async def verify(self, network: Network, base_url: str | None, secret: str) -> VerifiedAccount:
        """Returns the account that the network names for the credentials.

        Raises: CredentialsNotAccepted if it refuses them, as CredentialsInvalid if for every call; Unavailable if it
        does not answer in time, answers that it is too busy, or fails.
        """
        async with domain_errors(network, [secret, secret.partition(":")[2]], self.timeout_s):
            return _checked(await self.networks[network].verify(PublishingAccount("", base_url, secret)))


@asynccontextmanager
async def domain_errors(
    network: Network, secrets: Sequence[str], timeout_s: float = VERIFICATION_TIMEOUT_S
) -> AsyncIterator[None]:
    """Turns the failures of calls in the block into errors for the client, with reasons without the secrets.

    Raises: CredentialsInvalid if credentials are refused; CredentialsNotAccepted for another refusal, or an answer of
    another form; Unavailable for any other failure, or after `timeout_s` seconds.
    """
    try:
        async with asyncio.timeout(timeout_s):
            yield
    except CredentialsRefused as refusal:
        raise CredentialsInvalid(network.value, _presentable(refusal, secrets)) from None
    except PublishingRefused as refusal:
        raise CredentialsNotAccepted(network.value, _presentable(refusal, secrets)) from None
    except ValueError as error:
        raise CredentialsNotAccepted(network.value, f"no account ({error})") from None
    except RetryableFailure as failure:
        raise _unavailable(network, _presentable(failure, secrets), failure.after_s) from None
    except OutcomeUncertain as failure:
        raise _unavailable(network, _presentable(failure, secrets)) from None
    except TimeoutError:
        raise _unavailable(network, f"no answer within {timeout_s} s") from None


def _checked(account: VerifiedAccount) -> VerifiedAccount:
    """Returns the account. Raises: ValueError if its names are too long to be stored and shown."""
    if any(each is not None and len(each) > MAX_HANDLE_CHARS for each in (account.id, account.handle)):
        raise ValueError(f"a name of more than {MAX_HANDLE_CHARS} characters")
    return account


def _unavailable(network: Network, reason: str, after_s: float | None = None) -> Unavailable:
    message = f"{network.value} could not verify the credentials ({reason}). Nothing was stored. Try again."
    return Unavailable(message, round((RETRY_AFTER_S if after_s is None else after_s) * 1000))


def _presentable(error: Exception, secrets: Sequence[str]) -> str:
    """Returns the beginning of the network's reason without the credentials, which its answer may repeat."""
    reason = str(error)
    for part in secrets:
        if len(part) >= MIN_SECRET_CHARS:
            reason = reason.replace(part, "***")
    return reason[:MAX_REASON_CHARS].rstrip(".")

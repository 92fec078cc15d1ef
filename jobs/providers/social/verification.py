"""Verification of credentials with their network, before they are stored."""

import asyncio
from dataclasses import dataclass

from jobs.providers.social.network import OutcomeUncertain, PublishingAccount, PublishingRefused, RetryableFailure
from jobs.providers.social.registry import NetworkClients
from storage.errors import CredentialsNotAccepted, Unavailable
from storage.publishing.networks import Network
from storage.publishing.records import VerifiedAccount

VERIFICATION_TIMEOUT_S = 8.0
"""Shorter than the time that a mutation has (`execution_timeout_s`), so that the client gets the precise error."""

RETRY_AFTER_S = 5.0
"""When the client may ask again, unless the network says so."""

MIN_SECRET_CHARS = 8
"""Secrets of networks are longer. A shorter text is left in a network's reason, where it is probably a word."""


@dataclass(frozen=True, slots=True)
class AccountVerifier:
    """Asks networks whether they accept credentials."""

    networks: NetworkClients
    timeout_s: float = VERIFICATION_TIMEOUT_S

    async def verify(self, network: Network, base_url: str | None, secret: str) -> VerifiedAccount:
        """Returns the account that the network names for the credentials.

        Raises: CredentialsNotAccepted if it refuses them; Unavailable if it does not answer in time,
        answers that it is too busy, or fails.
        """
        account = PublishingAccount("", base_url, secret)
        try:
            async with asyncio.timeout(self.timeout_s):
                return await self.networks[network].verify(account)
        except PublishingRefused as refusal:
            reason = _without_secret(str(refusal), secret).rstrip(".")
            raise CredentialsNotAccepted(network.value, reason) from None
        except ValueError as error:
            raise CredentialsNotAccepted(network.value, f"no account ({error})") from None
        except RetryableFailure as failure:
            raise _unavailable(network, failure.after_s) from failure
        except (OutcomeUncertain, TimeoutError) as failure:
            raise _unavailable(network) from failure


def _unavailable(network: Network, after_s: float | None = None) -> Unavailable:
    retry_after_ms = round((RETRY_AFTER_S if after_s is None else after_s) * 1000)
    return Unavailable(
        f"{network.value} could not verify the credentials. Nothing was stored. Try again.", retry_after_ms
    )


def _without_secret(reason: str, secret: str) -> str:
    """Returns the reason without the credentials, which a network may repeat in its answer."""
    for part in (secret, secret.partition(":")[2]):
        if len(part) >= MIN_SECRET_CHARS:
            reason = reason.replace(part, "***")
    return reason

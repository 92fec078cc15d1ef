"""A call to a social network: what it needs, its lease, and why it cannot begin."""

from dataclasses import dataclass
from itertools import takewhile

from jobs.providers.social.network import OutgoingPost, PublishingAccount, SocialNetwork
from jobs.publishing.internal import FORBIDDEN
from storage.publishing.networks import NetworkBehaviour, ReconciliationMethod
from storage.publishing.records import AccountAttention, Publication, PublicationAttempt
from storage.publishing.transitions import CALL_LEASE_S, MANUAL, MANUAL_LEASE_S, ReconciliationPolicy

RECONCILE_S = (2.0, 5.0, 15.0, 60.0, 300.0, 1800.0)
"""Pauses before each reconciliation of an unknown outcome; the last one repeats."""


@dataclass(frozen=True, slots=True)
class NetworkCall:
    """A publication, and what its call to the network needs."""

    publication: Publication
    post: OutgoingPost
    account: PublishingAccount
    network: SocialNetwork
    behaviour: NetworkBehaviour
    key: str
    credentials_nonce: bytes
    """Identifies the credentials that the call uses."""

    attention: AccountAttention | None = None
    """Set if these credentials were refused before."""

    lease_requested_at_s: float = 0.0
    """When the change that began the lease was requested, by the loop's clock. The lease began then or later."""

    @property
    def reconciliation_method(self) -> ReconciliationMethod:
        """How the outcome of this call is found if its response is lost."""
        return self.network.reconciliation_method(self.account)

    @property
    def lease_s(self) -> float:
        """How long the claim lasts without a renewal during the call."""
        return MANUAL_LEASE_S if self.reconciliation_method is ReconciliationMethod.MANUAL else CALL_LEASE_S

    @property
    def reconciliation(self) -> ReconciliationPolicy:
        """When to reconcile the publication if the outcome of this call is unknown."""
        if self.reconciliation_method is ReconciliationMethod.MANUAL:
            return MANUAL
        unknown_attempts = len(list(takewhile(_is_unknown, reversed(self.publication.attempts))))
        pause_s = RECONCILE_S[min(unknown_attempts, len(RECONCILE_S) - 1)]
        return ReconciliationPolicy(max(pause_s, self.behaviour.query_delay_s), self.behaviour.retention_s)


def _is_unknown(attempt: PublicationAttempt) -> bool:
    return attempt.outcome == "UNKNOWN"


class PublishingForbidden(Exception):
    """The author may not publish to the account now, or the account's credentials cannot be used."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class CredentialsUnusable(PublishingForbidden):
    """The account's credentials can't be decrypted (`nonce` identifies them), or were refused before (None)."""

    def __init__(self, code: str, message: str, nonce: bytes | None) -> None:
        super().__init__(code, message)
        self.nonce = nonce


class AuthorDeactivated(PublishingForbidden):
    """The author is deactivated."""

    def __init__(self) -> None:
        super().__init__(FORBIDDEN, "The author is deactivated.")

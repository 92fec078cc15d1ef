"""The lifetime of an account's credentials: when they end, and when and by what a worker renews them."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from storage.mongo import Document
from storage.publishing.networks import BEHAVIOURS, Network
from storage.secrets.credentials import CredentialCipher

RENEWED_FIELDS = ("refresh_token", "expires_at", "renew_at", "renewal")
"""Fields of an account's document that are about its present credentials."""


@dataclass(frozen=True, slots=True)
class CredentialLifetime:
    """How long credentials last, as their network says. Empty for credentials whose lifetime is not known."""

    expires_in_s: float | None = None
    """Seconds until the credentials end. None: they do not, or the network did not say."""

    refresh_token: str | None = field(default=None, repr=False)
    """The secret that renews them. None: they renew themselves, or cannot be renewed."""

    is_renewable: bool = False
    """Whether a worker can renew them."""


UNKNOWN_LIFETIME = CredentialLifetime()


def refresh_token_subject(account_id: str) -> str:
    """Returns the subject for which the refresh token of an account is encrypted.

    It differs from that of the credentials, so that neither can be stored in place of the other.
    """
    return f"{account_id}:refresh"


def lifetime_fields(
    cipher: CredentialCipher, account_id: str, network: Network, lifetime: CredentialLifetime, now: datetime
) -> Document:
    """Returns the stored fields of a lifetime that begins now. Raises: Unavailable without encryption keys."""
    fields: Document = {}
    if lifetime.refresh_token is not None:
        fields["refresh_token"] = cipher.seal(lifetime.refresh_token, refresh_token_subject(account_id))
    if lifetime.expires_in_s is None:
        return fields
    fields["expires_at"] = now + timedelta(seconds=lifetime.expires_in_s)
    if lifetime.is_renewable:
        # A short lifetime is renewed after its half at the earliest. Otherwise workers would do nothing else.
        lead_s = min(BEHAVIOURS[network].renewal_lead_s, lifetime.expires_in_s / 2)
        fields["renew_at"] = fields["expires_at"] - timedelta(seconds=lead_s)
    return fields

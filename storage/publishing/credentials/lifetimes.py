"""The lifetime of an account's credentials: when they end, and when a worker renews them or warns of their end."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from storage.mongo import Document
from storage.publishing.networks import BEHAVIOURS, Network
from storage.secrets.credentials import CredentialCipher

RENEWED_FIELDS = ("refresh_token", "expires_at", "renew_at", "renewal", "warn_at", "warned_days")
"""Fields of an account's document that are about its present credentials."""

WARNING_DAYS = (14, 3, 0)
"""How many days before the end of credentials the person who gave them is warned; 0: they have ended."""

OVERDUE = timedelta(days=1)
"""How late a renewal is before the person is warned of the end of the credentials."""


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
    behaviour = BEHAVIOURS[network]
    if lifetime.refresh_token is not None:
        fields["refresh_token"] = cipher.seal(lifetime.refresh_token, refresh_token_subject(account_id))
    if lifetime.expires_in_s is None:
        if behaviour.first_renewal_s is not None:
            fields["renew_at"] = now + timedelta(seconds=behaviour.first_renewal_s)
        return fields
    fields["expires_at"] = now + timedelta(seconds=lifetime.expires_in_s)
    if lifetime.is_renewable:
        # A short lifetime is renewed after its half at the earliest. Otherwise workers would do nothing else.
        lead_s = min(behaviour.renewal_lead_s, lifetime.expires_in_s / 2)
        fields["renew_at"] = fields["expires_at"] - timedelta(seconds=lead_s)
    warn_at = _first_warning_at(fields["expires_at"], fields.get("renew_at"), now)
    return fields if warn_at is None else fields | {"warn_at": warn_at}


def _first_warning_at(expires_at: datetime, renew_at: datetime | None, now: datetime) -> datetime | None:
    """Returns when to warn first: of credentials that a worker renews, only after their renewal was missed."""
    if renew_at is None:
        return next_warning_at(expires_at, now)
    return max(expires_at - timedelta(days=WARNING_DAYS[0]), renew_at + OVERDUE)


def next_warning_at(expires_at: datetime, now: datetime) -> datetime | None:
    """Returns when the next warning after `now` is due, or None after the last one."""
    moments = [expires_at - timedelta(days=days) for days in WARNING_DAYS]
    return next((moment for moment in moments if moment > now), None)


def due_warning(expires_at: datetime, now: datetime) -> int | None:
    """Returns the most urgent warning whose time has come, in days before the end, or None."""
    return min((days for days in WARNING_DAYS if expires_at - timedelta(days=days) <= now), default=None)

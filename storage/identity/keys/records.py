"""Service keys as read from the database."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from storage.identity.documents import ServiceKeyDocument
from storage.identity.records import User


@dataclass(frozen=True, slots=True)
class NewServiceKey:
    """A validated key to create. `scopes` are sorted and distinct."""

    name: str
    scopes: Sequence[str]
    expires_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class ServiceKey:
    """A service key, without its secret. The id is also the id of its service account."""

    id: str
    organization_id: str
    name: str
    scopes: Sequence[str]
    created_at: datetime
    created_by_id: str
    expires_at: datetime | None
    revoked_at: datetime | None
    last_used_at: datetime | None
    previous_secret_until: datetime | None
    """The latest moment until which a secret from before a rotation is valid; None without such a secret."""

    issued_to_id: str
    """Id of the administrator who was shown the newest secret."""

    is_active: bool
    """Whether requests with the key were accepted when the key was read."""


@dataclass(frozen=True, slots=True)
class IssuedKey:
    """A key with a new secret. `secret` is None where it was issued before, because it is shown only once."""

    key: ServiceKey
    secret: str | None


@dataclass(frozen=True, slots=True)
class RecognizedKey:
    """The key of a request: its service account and scopes, and for how long it is valid."""

    account: User
    scopes: frozenset[str]
    valid_s: float
    """Seconds until the key or its secret ends; infinite if neither does."""


def key_record(document: ServiceKeyDocument, now: datetime) -> ServiceKey:
    """Returns the record of a stored key."""
    ends_at = document.get("ends_at")
    previous = [each["until"] for each in document["secrets"] if "until" in each and each["until"] > now]
    is_active = ends_at is None or ends_at > now
    return ServiceKey(
        id=document["_id"],
        organization_id=document["org"],
        name=document["name"],
        scopes=document["scopes"],
        created_at=document["created_at"],
        created_by_id=document["created_by"],
        expires_at=document.get("expires_at"),
        revoked_at=document.get("revoked_at"),
        last_used_at=document.get("used_at"),
        previous_secret_until=max(previous) if previous and is_active else None,
        issued_to_id=document["secrets"][0].get("by", document["created_by"]),
        is_active=is_active,
    )

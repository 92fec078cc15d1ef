"""Stored documents of passkeys. Instants are aware UTC datetimes, by the database's clock."""

from datetime import datetime
from typing import NotRequired, TypedDict


class PasskeyDocument(TypedDict):
    """A passkey, in `passkeys`. Deleted when the person removes it, or by an erasure."""

    _id: str
    """SHA-256 of the credential id, in hexadecimal digits."""

    org: str
    """Organization id."""

    user: str
    """Id of the user who signs in with the passkey."""

    credential: bytes
    """Credential id, which the authenticator chose; at most 1,023 bytes."""

    key: bytes
    """Public key, as a COSE_Key."""

    counter: int
    """Signature counter of the last use; 0 for authenticators that do not count."""

    synced: bool
    """Whether the authenticator may copy the passkey to other devices. The value never changes."""

    name: str
    """Name that the person gave the passkey."""

    at: datetime
    """When the passkey was added."""

    used_at: NotRequired[datetime]
    """When the person last signed in with the passkey; absent until then."""


class PasskeyChallengeDocument(TypedDict):
    """A challenge that was answered, in `passkey_challenges`. Expires an hour after `at`."""

    _id: str
    """SHA-256 of the challenge, in hexadecimal digits."""

    at: datetime
    """When the challenge was answered."""

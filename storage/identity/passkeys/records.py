"""Passkeys as read from the database, and new ones."""

import hashlib
from dataclasses import dataclass
from datetime import datetime

from storage.errors import BadUserInput, Unauthenticated
from storage.identity.passkeys.documents import PasskeyDocument
from storage.ids import UserKey

MAX_NAME_CHARS = 100


class WrongPasskey(Unauthenticated):
    """The answer signs nobody in. Clients do not see the reason."""

    def __init__(self) -> None:
        super().__init__("This passkey does not work here. Try again, or sign in another way.")


class CounterWentBack(WrongPasskey):
    """The signature counter did not rise, so there may be a copy of the authenticator. Clients see a WrongPasskey."""


class PasskeyRefused(BadUserInput):
    """The answer is not valid, or its challenge was answered before or is too old."""

    def __init__(self) -> None:
        message = "The browser's answer is not valid or has come too late. Try again."
        super().__init__("passkey", "the answer to a challenge of the last 5 minutes", message)


@dataclass(frozen=True, slots=True)
class NewPasskey:
    """A verified passkey to add."""

    challenge: bytes
    """The challenge that the authenticator answered. A challenge is accepted once."""

    credential: bytes
    key: bytes
    counter: int
    synced: bool
    name: str


@dataclass(frozen=True, slots=True)
class Passkey:
    """A passkey as read from the database. `id` is no secret."""

    id: str
    user: UserKey
    credential: bytes
    key: bytes
    counter: int
    synced: bool
    name: str
    created_at: datetime
    last_used_at: datetime | None


@dataclass(frozen=True, slots=True)
class PasskeyUse:
    """A verified signature of a passkey: the challenge that it answers, and the counter in it."""

    challenge: bytes
    counter: int


def passkey_id(credential: bytes) -> str:
    """Returns the id of the passkey with this credential id."""
    return hashlib.sha256(credential).hexdigest()


def user_handle(user: UserKey) -> bytes:
    """Returns the id by which authenticators know the user: 32 bytes that say nothing about the person."""
    return hashlib.sha256(f"{user.organization_id}\n{user.user_id}".encode()).digest()


def passkey_record(document: PasskeyDocument) -> Passkey:
    """Returns the record of a stored passkey."""
    return Passkey(
        id=document["_id"],
        user=UserKey(document["org"], document["user"]),
        credential=document["credential"],
        key=document["key"],
        counter=document["counter"],
        synced=document["synced"],
        name=document["name"],
        created_at=document["at"],
        last_used_at=document.get("used_at"),
    )

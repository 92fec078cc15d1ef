"""The protocol of social networks, and the outcomes of a call. Nothing here retries; callers decide that."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

from storage.publishing.networks import ReconciliationMethod
from storage.publishing.records import ScheduledMedia


class NetworkRefused(Exception):
    """The network refused for good, and nothing was published. `code` is for programs, the message for the author."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class NoEffect(Exception):
    """The call provably had no effect. It may be retried, after `after_s` seconds where the network says so."""

    def __init__(self, message: str, after_s: float | None = None) -> None:
        super().__init__(message)
        self.after_s = after_s


class OutcomeUncertain(Exception):
    """The effect is unknown: the response was lost, or does not show it."""


class UploadExpired(Exception):
    """The network does not know the uploaded media any more, and nothing was published. They must be uploaded again."""


class NotPublished(Exception):
    """The network reports that nothing was published so far; the same call may be repeated."""


@dataclass(frozen=True, slots=True)
class Account:
    """A connected account with its secret, which its representation hides."""

    id: str
    base_url: str | None
    secret: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Author:
    """The author of the post."""

    id: str
    handle: str
    name: str


@dataclass(frozen=True, slots=True)
class OutgoingPost:
    """The post to publish, identical on every attempt."""

    publication_id: str
    text: str
    media: Sequence[ScheduledMedia]
    due_at: datetime
    author: Author


@dataclass(frozen=True, slots=True)
class MediaUpload:
    """The network's references to the media, as JSON values, and how many seconds it keeps them."""

    references: Sequence[Any]
    expires_in_s: float | None


@dataclass(frozen=True, slots=True)
class PublishedPost:
    """A published post: its id and address at the network, where the network returns them."""

    external_id: str | None
    url: str | None


class SocialNetwork(Protocol):
    """One network. Methods raise NetworkRefused, NoEffect or OutcomeUncertain, and no other expected exception."""

    async def upload(self, account: Account, post: OutgoingPost) -> MediaUpload:
        """Uploads the post's media. Repeating it is harmless: unused media expire."""
        ...

    async def publish(self, account: Account, post: OutgoingPost, key: str, references: Sequence[Any]) -> PublishedPost:
        """Publishes the post. Networks with idempotency keys publish once per key. Also raises UploadExpired."""
        ...

    async def look_up(self, account: Account, references: Sequence[Any]) -> PublishedPost | None:
        """Returns an earlier call's outcome; None when nothing was or will be published. Also raises NotPublished."""
        ...

    def reconciliation_method(self, account: Account) -> ReconciliationMethod:
        """Returns how a lost response is resolved for this account."""
        ...

    def new_key(self, publication_id: str, due_at: datetime) -> str:
        """Returns the key of a publication. Once stored it is the same on every attempt."""
        ...

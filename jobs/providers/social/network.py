"""The protocol of social networks, and the outcomes of a call. Implementations do not retry; their callers do."""

from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

from storage.publishing.networks import ReconciliationMethod
from storage.publishing.records import ScheduledMedia, VerifiedAccount


class PublishingRefused(Exception):
    """The network refused for good, and nothing was published. Programs read `code`, the author reads the message."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class CredentialsRefused(PublishingRefused):
    """The network refused the credentials, and nothing was published. Other credentials may be accepted."""

    def __init__(self, message: str) -> None:
        super().__init__("UNAUTHORIZED", message)


class RetryableFailure(Exception):
    """The call provably had no effect, so it may be retried. `after_s`: when, in seconds, if the network says so."""

    def __init__(self, message: str, after_s: float | None = None) -> None:
        super().__init__(message)
        self.after_s = after_s


class OutcomeUncertain(Exception):
    """It is unknown whether the post was published: the response was lost, or does not show it."""


class UploadExpired(Exception):
    """Nothing was published, because the network has deleted the media. They must be uploaded again."""


class NotPublished(Exception):
    """The network reports that nothing was published so far; the same call may be repeated."""


@dataclass(frozen=True, slots=True)
class PublishingAccount:
    """A connected account with its secret, which `repr` omits."""

    id: str
    base_url: str | None
    secret: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class PostAuthor:
    """The author of the post."""

    id: str
    handle: str
    name: str


@dataclass(frozen=True, slots=True)
class UploadedMedium(ScheduledMedia):
    """A file of the post. `url` is a signed address of this server; empty for networks that fetch nothing."""

    content_type: str
    size: int
    """Number of bytes."""

    read: Callable[[], AsyncIterator[bytes]]
    """Yields the bytes. Raises: PublishingRefused if the file no longer exists; RetryableFailure."""


@dataclass(frozen=True, slots=True)
class OutgoingPost:
    """The post to publish, identical on every attempt."""

    publication_id: str
    text: str
    media: Sequence[ScheduledMedia]
    due_at: datetime
    author: PostAuthor


@dataclass(frozen=True, slots=True)
class MediaUpload:
    """The network's references to uploaded media, as JSON values. None for `expires_in_s`: they do not expire."""

    references: Sequence[Any]
    expires_in_s: float | None


@dataclass(frozen=True, slots=True)
class PublishedPost:
    """A published post: its id and address at the network, where the network returns them."""

    external_id: str | None
    url: str | None


class SocialNetwork(Protocol):
    """One network.

    Methods raise PublishingRefused, RetryableFailure, OutcomeUncertain, and what their docstrings name.
    """

    async def verify(self, account: PublishingAccount) -> VerifiedAccount:
        """Asks the network whose the credentials are. Raises ValueError too, if the answer has not the expected form.

        PublishingRefused has the network's reason as its message. A network that cannot be asked returns an empty
        account.
        """
        ...

    async def upload(self, account: PublishingAccount, post: OutgoingPost) -> MediaUpload:
        """Uploads the post's media. Repeating it is harmless: unused media expire."""
        ...

    async def publish(
        self, account: PublishingAccount, post: OutgoingPost, key: str, references: Sequence[Any]
    ) -> PublishedPost:
        """Publishes the post. Networks with idempotency keys publish once per key. Also raises UploadExpired."""
        ...

    async def look_up(self, account: PublishingAccount, references: Sequence[Any]) -> PublishedPost | None:
        """Returns the post of an earlier call, or None if none was or will be published. Also raises NotPublished."""
        ...

    def reconciliation_method(self, account: PublishingAccount) -> ReconciliationMethod:
        """Returns how the outcome of a call to this account is found after a lost response."""
        ...

    def new_key(self, publication_id: str, due_at: datetime) -> str:
        """Returns a key for a publication. The caller stores the key, and uses it for every attempt."""
        ...

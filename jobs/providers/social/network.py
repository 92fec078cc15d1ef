"""The protocol of social networks, and what can come of a call. Nothing here retries: who calls decides that."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

from storage.publishing.networks import Certainty
from storage.publishing.records import ScheduledMedia


class Refused(Exception):
    """The network said no, for good; nothing was published. `code` is for programs, the message for the author."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class NoEffect(Exception):
    """It provably had no effect, and may be tried again, after `after_s` where the network says so."""

    def __init__(self, message: str, after_s: float | None = None) -> None:
        super().__init__(message)
        self.after_s = after_s


class Uncertain(Exception):
    """Nobody knows whether it had an effect: the answer was lost, or says nothing."""


class UploadGone(Exception):
    """The network does not know the uploaded media any more; nothing was published. They have to be uploaded anew."""


class NotPublished(Exception):
    """The network was asked: nothing was published so far, and the same call may be made again."""


@dataclass(frozen=True, slots=True)
class Account:
    """An account with what opens it, which its representation does not show."""

    id: str
    base_url: str | None
    secret: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Author:
    """Who wrote the post."""

    id: str
    handle: str
    name: str


@dataclass(frozen=True, slots=True)
class OutgoingPost:
    """What is published. Everything of it is the same on every try."""

    publication_id: str
    text: str
    media: Sequence[ScheduledMedia]
    due_at: datetime
    author: Author


@dataclass(frozen=True, slots=True)
class Uploaded:
    """What the network calls the media, as JSON values, and for how many seconds it keeps them."""

    references: Sequence[Any]
    expires_in_s: float | None


@dataclass(frozen=True, slots=True)
class Published:
    """It is there. Where, if the network says so."""

    external_id: str | None
    url: str | None


class SocialNetwork(Protocol):
    """One network. Every method raises Refused, NoEffect or Uncertain, and nothing else that is expected."""

    async def upload(self, account: Account, post: OutgoingPost) -> Uploaded:
        """Uploads the post's media. Doing it twice is harmless: what is not used expires."""
        ...

    async def publish(self, account: Account, post: OutgoingPost, key: str, references: Sequence[Any]) -> Published:
        """Publishes. Networks that know keys publish once for the same key. Raises UploadGone too."""
        ...

    async def look_up(self, account: Account, references: Sequence[Any]) -> Published | None:
        """What became of an earlier call; None: nothing was published, nor ever will be. Raises NotPublished too."""
        ...

    def certainty(self, account: Account) -> Certainty:
        """How a lost answer is made up for."""
        ...

    def new_key(self, publication_id: str, due_at: datetime) -> str:
        """The key of a publication: the same on every try, once it is stored."""
        ...

"""New ids, the ids that name a type, and the keys by which areas refer to users, messages and posts."""

import hashlib
import secrets
import time
from dataclasses import dataclass
from typing import NamedTuple, TypedDict

from storage.errors import NotFound

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"


def new_id() -> str:
    """Returns a new id: a ULID in lower case, URL-safe and sortable by creation time to the millisecond."""
    value = (time.time_ns() // 1_000_000) << 80 | secrets.randbits(80)
    return "".join(_ALPHABET[value >> shift & 31] for shift in range(125, -1, -5))


TYPES_IN_IDS = frozenset(
    {
        "CallLimits",
        "CommunityWithoutOwner",
        "Conversation",
        "DomainStanding",
        "FanOut",
        "ServiceKey",
        "Thread",
        "Upload",
    }
)
"""The GraphQL types whose objects have the stored id of another object. Clients see it behind the name of the type."""


class IdOfType(str):
    """A stored id that a client sent with the name of its type."""

    __slots__ = ("type_name",)

    type_name: str


def id_with_type(type_name: str, id_: str) -> str:
    """Returns the id that clients see of an object of such a type, such as "FanOut:0f3a…"."""
    return f"{type_name}:{id_}"


def stored_id(id_: str) -> str:
    """Returns the stored id of an id that a client sent, with or without the name of a type."""
    type_name, _, rest = id_.partition(":")
    if type_name not in TYPES_IN_IDS:
        return id_
    typed = IdOfType(rest)
    typed.type_name = type_name
    return typed


class UserKey(NamedTuple):
    """The organization and the id that identify a user."""

    organization_id: str
    user_id: str


class MessageDocumentId(TypedDict):
    """The `_id` of a message. The topic's timeline is in the order of these ids."""

    t: str
    """Topic id."""

    ts: int
    """Timestamp in microseconds since the Unix epoch, unique within the topic."""


class PostDocumentId(TypedDict):
    """The `_id` of a post and of its fan-out. The organization's timeline is in the order of these ids."""

    o: str
    """Organization id."""

    ts: int
    """Timestamp in microseconds since the Unix epoch, unique within the organization."""


class MessageKey(NamedTuple):
    """The topic and the timestamp that identify a message. Clients see the id "topic-timestamp".

    A tuple, since creating and hashing one takes a third of a dataclass's time.
    """

    topic_id: str
    timestamp: int

    @property
    def id(self) -> str:
        """The id that clients see."""
        return f"{self.topic_id}-{self.timestamp}"

    @property
    def document_id(self) -> MessageDocumentId:
        """The message's `_id`."""
        return {"t": self.topic_id, "ts": self.timestamp}


def message_key(id_: str) -> MessageKey:
    """Returns the key of a public id. Raises: NotFound if the id is malformed."""
    topic_id, _, digits = id_.rpartition("-")
    if not (topic_id and digits.isascii() and digits.isdigit() and len(digits) <= 16):
        raise NotFound("message", id_)
    return MessageKey(topic_id, int(digits))


@dataclass(frozen=True, slots=True)
class PostKey:
    """The organization and the timestamp that identify a post."""

    organization_id: str
    timestamp: int

    @property
    def id(self) -> str:
        """The id that clients see. It contains a digest of the organization's id."""
        return f"{_digest(self.organization_id)}-{self.timestamp}"

    @property
    def document_id(self) -> PostDocumentId:
        """The `_id` of the post and of its fan-out."""
        return {"o": self.organization_id, "ts": self.timestamp}


def post_key(organization_id: str, id_: str) -> PostKey:
    """Returns the key of a public id. Raises: NotFound if it is malformed or of another organization."""
    digest, _, digits = id_.partition("-")
    if digest != _digest(organization_id) or not (digits.isascii() and digits.isdigit() and len(digits) <= 16):
        raise NotFound("post", id_)
    key = PostKey(organization_id, int(digits))
    if key.id != id_:
        raise NotFound("post", id_)
    return key


def _digest(organization_id: str) -> str:
    return hashlib.sha256(organization_id.encode()).hexdigest()[:12]

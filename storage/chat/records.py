"""Records of the chat area as read from the database.

Timestamps are microseconds since the Unix epoch; instants are aware UTC datetimes.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

from storage.chat.documents import MessageDocument
from storage.chat.roles import CommunityRole
from storage.chat.visibility import CommunityVisibility
from storage.ids import MessageKey
from storage.link_previews import LinkPreview
from storage.timeline import Timestamp


@dataclass(frozen=True, slots=True)
class Community:
    """A group of users of one organization, with topics."""

    id: str
    organization_id: str
    name: str
    description: str
    member_count: int
    visibility: CommunityVisibility = CommunityVisibility.PUBLIC
    archived_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class CommunityMember:
    """A member of a community, with the role there."""

    community_id: str
    user_id: str
    role: CommunityRole
    joined_at: datetime


@dataclass(frozen=True, slots=True)
class JoinRequest:
    """A request to join a community that waits for a decision."""

    community_id: str
    user_id: str
    message: str
    requested_at: datetime


@dataclass(frozen=True, slots=True)
class CommunityBan:
    """A ban from a community. `until` is None for a ban that does not end by itself."""

    community_id: str
    user_id: str
    banned_by_id: str
    reason: str
    banned_at: datetime
    until: datetime | None


@dataclass(frozen=True, slots=True)
class Topic:
    """A chat room of a community.

    `last_activity` is the timestamp of the last message, or of the creation if there is none. `heat` encodes the
    decayed posting rate (`storage.streams.heads`); it is None until the first post.
    """

    id: str
    organization_id: str
    community_id: str
    title: str
    created_at: datetime
    last_activity: Timestamp
    heat: float | None = None
    slow_mode_seconds: int = 0


@dataclass(frozen=True, slots=True)
class TrendingTopic:
    """A topic, its decayed posting rate, and how many people posted in the last half hour, at most 50."""

    topic: Topic
    messages_per_minute: float
    people: int


# Equivalent to MessageKey(topic_id, timestamp), but takes half the time.
_key: Callable[[tuple[str, int]], MessageKey] = partial(tuple.__new__, MessageKey)


# Not frozen: a page creates fifty messages, and a frozen dataclass takes three times as long to create.
@dataclass(slots=True)
class Message:
    """A message, or its tombstone, which has neither text nor stamp nor reactions.

    `reaction_counts` are pairs of emoji and count, in the order of first use. They include reactions of blocked users.
    """

    topic_id: str
    timestamp: Timestamp
    author_id: str
    text: str
    stamp_id: str | None
    mention_ids: tuple[str, ...]
    reaction_counts: tuple[tuple[str, int], ...]
    link_preview: LinkPreview | None
    edited_at: datetime | None
    deleted_at: datetime | None

    @property
    def key(self) -> MessageKey:
        """The topic and the timestamp that identify the message."""
        return _key((self.topic_id, self.timestamp))

    @property
    def id(self) -> str:
        """The id that clients see, unique across topics."""
        return f"{self.topic_id}-{self.timestamp}"


@dataclass(slots=True)
class Reaction:
    """An emoji of a message as one viewer sees it: reactions of users whom the viewer blocked are not counted."""

    message: MessageKey
    emoji: str
    count: int
    reacted: bool
    """Whether the viewer reacted with the emoji."""


@dataclass(frozen=True, slots=True)
class ReceivedReaction:
    """A reaction to one of the viewer's messages, on the viewer's own timeline. `user_id` is the user who reacted."""

    timestamp: Timestamp
    emoji: str
    user_id: str
    message: MessageKey


def message_record(document: MessageDocument) -> Message:
    """Returns the record of a stored message."""
    id_: Any = document["_id"]
    get: Callable[[str], Any] = document.get
    preview, mentions, reactions = get("preview"), get("mentions"), get("reactions")
    # Positional arguments: keyword arguments would double the cost.
    return Message(
        id_["t"],
        id_["ts"],
        document["author"],
        document["text"],
        get("stamp"),
        tuple(mentions) if mentions else (),
        tuple([(each["emoji"], each["count"]) for each in reactions]) if reactions else (),
        None if preview is None else LinkPreview(**preview),
        get("edited_at"),
        get("deleted_at"),
    )

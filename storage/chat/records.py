"""The records of the chat area, as read and not to be changed.

Timestamps are microseconds; instants are aware UTC datetimes.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from storage.link_previews import LinkPreview
from storage.mongo import Document
from storage.references import MessageKey
from storage.timeline import Timestamp


@dataclass(frozen=True, slots=True)
class Community:
    """A place with members and topics."""

    id: str
    organization_id: str
    name: str
    description: str
    member_count: int


@dataclass(frozen=True, slots=True)
class Topic:
    """A chat room of a community.

    `last_activity` is the last message's timestamp, or its own creation's; `heat` tells how often it is posted to.
    """

    id: str
    organization_id: str
    community_id: str
    title: str
    created_at: datetime
    last_activity: Timestamp
    heat: float | None = None


@dataclass(frozen=True, slots=True)
class TrendingTopic:
    """A topic and its decaying posting rate."""

    topic: Topic
    messages_per_minute: float


# What MessageKey(topic_id, timestamp) does, in half the time.
_key: Callable[[tuple[str, int]], MessageKey] = partial(tuple.__new__, MessageKey)


# Not frozen, as reactions are not: a page makes fifty, and freezing triples what one costs. Most tuples are empty.
@dataclass(slots=True)
class Message:
    """A message, or its tombstone: then without text, stamp and reactions. `reactions` counts everybody's."""

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
        """Where it is."""
        return _key((self.topic_id, self.timestamp))

    @property
    def id(self) -> str:
        """Unique across topics."""
        return f"{self.topic_id}-{self.timestamp}"


@dataclass(slots=True)
class Reaction:
    """One emoji under a message, as one viewer sees it: without those whom the viewer blocked."""

    message: MessageKey
    emoji: str
    count: int
    reacted: bool


@dataclass(frozen=True, slots=True)
class ReceivedReaction:
    """Somebody reacted to a message of the viewer's."""

    timestamp: Timestamp
    emoji: str
    user_id: str
    message: MessageKey


def message_record(document: Document) -> Message:
    """The record of a stored message."""
    id_, get = document["_id"], document.get
    preview, mentions, reactions = get("preview"), get("mentions"), get("reactions")
    # In the order of the fields: naming them costs as much as the record.
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

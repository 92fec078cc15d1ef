"""Records of the chat area as read from the database.

Timestamps are microseconds since the Unix epoch; instants are aware UTC datetimes.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from enum import Enum
from functools import partial
from typing import Any

from storage.chat.documents import MessageDocument
from storage.chat.roles import CommunityRole
from storage.chat.threads.documents import ShownReplyDocument, ThreadSummaryDocument
from storage.files.attachments import Attachment, attachment_record
from storage.files.link_previews import LinkPreview, preview_record
from storage.ids import MessageKey
from storage.timeline import Timestamp


class CommunityVisibility(Enum):
    """The visibility of a community: who sees it, and how people join it."""

    PUBLIC = "PUBLIC"
    LISTED = "LISTED"
    PRIVATE = "PRIVATE"


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
    picture_url: str | None = None
    """Path of the picture; None without one."""

    banner_url: str | None = None
    """Path of the banner; None without one."""


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
    """A chat room of a community, the messages of a conversation, or a thread.

    `last_activity` is the timestamp of the last message, or of the creation if there is none.
    """

    id: str
    organization_id: str
    community_id: str
    title: str
    created_at: datetime
    last_activity: Timestamp
    slow_mode_seconds: int = 0
    archived_at: datetime | None = None
    thread_parent: MessageKey | None = None
    """The message to which the messages of a thread reply; None for a topic that is no thread."""

    @property
    def is_conversation(self) -> bool:
        """Whether the topic is a conversation, or a thread in one. There is no community with its community id."""
        place = self.id if self.thread_parent is None else self.thread_parent.topic_id
        return self.community_id == place

    @property
    def parent_message_id(self) -> str | None:
        """The id of the message to which the messages of a thread reply; None for a topic that is no thread."""
        return None if self.thread_parent is None else self.thread_parent.id


@dataclass(frozen=True, slots=True)
class TrendingTopic:
    """A topic, its decayed posting rate, and how many people posted in the last half hour, at most 50."""

    topic: Topic
    messages_per_minute: float
    people: int


@dataclass(frozen=True, slots=True)
class ThreadSummary:
    """The number of replies to a message, and its last repliers with the timestamps of their replies, latest first."""

    replies: int
    repliers: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Thread:
    """The replies to a message as one viewer sees them. `id` is the id of the thread's topic."""

    id: str
    reply_count: int
    last_reply_at: Timestamp | None
    replier_ids: tuple[str, ...]
    """The last repliers, the latest first."""

    @property
    def topic_id(self) -> str:
        """The id of the thread's topic."""
        return self.id


@dataclass(frozen=True, slots=True)
class Quote:
    """A reference to a quoted message. People of the community or conversation may read the message."""

    key: MessageKey
    community_id: str


@dataclass(frozen=True, slots=True)
class ThreadReply:
    """The reply that a cross-post shows, and the message to which people reply."""

    key: MessageKey
    parent: MessageKey

    @property
    def thread_id(self) -> str:
        """The id of the thread's topic."""
        return self.key.topic_id


# Equivalent to MessageKey(topic_id, timestamp), but takes half the time.
_key: Callable[[tuple[str, int]], MessageKey] = partial(tuple.__new__, MessageKey)


# Not frozen: a page creates fifty messages, and a frozen dataclass takes three times as long to create.
@dataclass(slots=True)
class Message:
    """A message, or its tombstone, which has no text, stamp, reactions and attachments.

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
    attachments: tuple[Attachment, ...] = ()
    thread_summary: ThreadSummary | None = None
    """The replies; None before the first one."""

    quote: Quote | None = None
    """The message that this message quotes; None without a quote, and for a tombstone."""

    thread_reply: ThreadReply | None = None
    """The reply that a cross-post shows; None for all other messages, and for a tombstone."""

    also_in_topic: bool = False
    """Whether this is a reply that was also sent to the topic of its thread."""

    @property
    def key(self) -> MessageKey:
        """The topic and the timestamp that identify the message."""
        return _key((self.topic_id, self.timestamp))

    @property
    def id(self) -> str:
        """The id that clients see, unique across topics."""
        return f"{self.topic_id}-{self.timestamp}"

    @property
    def content_key(self) -> MessageKey:
        """The key of the message that has the content: for a cross-post the reply, otherwise the message itself."""
        return self.key if self.thread_reply is None else self.thread_reply.key

    def showing(self, reply: "Message") -> "Message":
        """Returns the cross-post with the present content of its reply, which may be a tombstone."""
        return replace(
            self,
            text=reply.text,
            stamp_id=reply.stamp_id,
            mention_ids=reply.mention_ids,
            link_preview=reply.link_preview,
            edited_at=reply.edited_at,
            deleted_at=reply.deleted_at,
            attachments=reply.attachments,
            quote=reply.quote,
            thread_reply=self.thread_reply if reply.deleted_at is None else None,
        )

    def without_content(self) -> "Message":
        """Returns the message without what its author and others have added to it, except the replies."""
        return Message(
            self.topic_id,
            self.timestamp,
            self.author_id,
            "",
            None,
            (),
            (),
            None,
            self.edited_at,
            self.deleted_at,
            thread_summary=self.thread_summary,
        )


@dataclass(frozen=True, slots=True)
class FollowedThread:
    """A thread that a viewer follows."""

    thread: Topic

    @property
    def parent(self) -> MessageKey:
        """The key of the parent message."""
        assert self.thread.thread_parent is not None
        return self.thread.thread_parent


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
    attachments, thread, quote, reply = get("attachments"), get("thread"), get("quote"), get("reply")
    # Positional arguments: keyword arguments would double the cost.
    return Message(
        id_["t"],
        id_["ts"],
        document["author"],
        document["text"],
        get("stamp"),
        tuple(mentions) if mentions else (),
        tuple([(each["emoji"], each["count"]) for each in reactions]) if reactions else (),
        None if preview is None else preview_record(preview, get("preview_picture")),
        get("edited_at"),
        get("deleted_at"),
        tuple([attachment_record(each) for each in attachments]) if attachments else (),
        None if thread is None else thread_summary(thread),
        None if quote is None else Quote(MessageKey(quote["t"], quote["ts"]), quote["c"]),
        None if reply is None else shown_reply(id_["t"], reply),
        "also_in_topic" in document,
    )


def shown_reply(topic_id: str, reply: ShownReplyDocument) -> ThreadReply:
    """Returns the record of the reply that a cross-post of the topic shows."""
    return ThreadReply(MessageKey(reply["t"], reply["ts"]), MessageKey(topic_id, reply["parent"]))


def thread_summary(thread: ThreadSummaryDocument) -> ThreadSummary:
    """Returns the record of a stored summary."""
    return ThreadSummary(thread["replies"], tuple([(each["u"], each["ts"]) for each in thread["repliers"]]))

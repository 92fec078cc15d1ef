"""Stored parts of threads: in the topic of a thread, and in its parent message."""

from typing import NotRequired, TypedDict


class ThreadFields(TypedDict):
    """The parent of a thread and its number of replies, in the thread's document in `topics`."""

    topic: str
    """Id of the topic of the parent message."""

    ts: int
    """Timestamp of the parent message."""

    direct: NotRequired[bool]
    """True if the parent message is in a conversation; absent otherwise."""

    replies: int
    """Number of replies that are not deleted."""

    followers: NotRequired[list[str]]
    """Ids of the people who follow the thread, at most 100; absent in threads of an earlier release."""


class ShownReplyDocument(TypedDict):
    """The reply that a cross-post shows, and the message to which people reply."""

    t: str
    """Id of the thread."""

    ts: int
    """Timestamp of the reply."""

    parent: int
    """Timestamp of the parent message, which is in the topic of the cross-post."""


class ReplierDocument(TypedDict):
    """A person who has replied, and the person's last reply that is not deleted."""

    u: str
    """User id."""

    ts: int
    """Timestamp of the reply."""


class ThreadSummaryDocument(TypedDict):
    """The state of its thread that a message shows, in `messages`."""

    replies: int
    """Number of replies that are not deleted."""

    repliers: list[ReplierDocument]
    """The last 10 people who have replied, the latest first, among the authors of the last 100 replies."""

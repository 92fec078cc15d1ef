"""Stored documents of event streams and notifications. Instants are aware UTC datetimes by the database's clock."""

from datetime import datetime
from typing import Any, NotRequired, TypedDict

from bson import ObjectId

from storage.timeline import Timestamp


class PreviousHead(TypedDict):
    """The values of a head before the last batch. Fields that the head did not have are absent."""

    last: NotRequired[int]
    """Last timestamp, in microseconds."""

    heat: NotRequired[float]
    """Heat; topics only."""


class HeadFields(TypedDict):
    """The fields of a stream's head. The head of a topic's stream is the topic's own document, with further fields."""

    n: int
    """Number of the last event; 0 before the first event."""

    floor: NotRequired[int]
    """Number of the last event that was pruned; absent until events were pruned."""

    epoch: str
    """Random identifier of this incarnation. A stream that is created again gets a new epoch, so old cursors expire."""

    last: NotRequired[int]
    """Last allocated timestamp, in microseconds since the Unix epoch; absent until a timestamp was allocated."""

    committed_at: NotRequired[datetime]
    """When the numbers of the last batch were allocated; absent until the first batch."""

    before: NotRequired[PreviousHead]
    """The values that are restored if no change of the batch takes a timestamp."""


class StreamDocument(HeadFields):
    """The head of a stream, in `streams`. Created with the first event or subscription, and kept for good.

    Heads with `subscribed_at` expire 72 h after it: the last event was added at most 27 h after it, and was kept 24 h.
    """

    _id: str
    """Name of the stream: its kind, a colon, its id."""

    subscribed_at: NotRequired[datetime]
    """When somebody was last subscribed, to the hour. Only the streams of the local feed and of hashtags have it."""


class EventDocumentId(TypedDict):
    """The `_id` of an event; its order is the order of the stream."""

    s: str
    """Name of the stream."""

    n: int
    """Number of the event in its stream. Numbers start at 1 and have no gaps."""


class EventDocument(TypedDict):
    """An event, in `events`. Pruned after 24 hours."""

    _id: EventDocumentId
    kind: str
    """Also the name of the event's GraphQL type."""

    ref: Any
    """Refers to the changed object: an id or a timestamp, depending on the kind of the event."""

    at: datetime
    """When the event was committed."""


class OutboxDocument(TypedDict):
    """A row for another stream, in `outbox`. Deleted when its relay has applied it to that stream."""

    _id: ObjectId
    stream: str
    """Name of the stream that the row is for."""

    kind: str
    """Key of its relay in `OUTBOX_RELAYS`."""

    ref: Any
    """Argument of the relay: an id, a timestamp or a document."""

    at: datetime
    """When the row was written."""

    due: NotRequired[datetime]
    """When to relay a row that has to wait; absent until its relay has deferred it."""


class NotificationContent(TypedDict):
    """The content of a notification. Its outbox row has it as `ref`, before the notification is stored.

    Fields that its kind does not use are None or absent.
    """

    kind: str
    """Value of `NotificationKind`."""

    actor: str | None
    """Id of the user who caused the notification."""

    topic: str | None
    """Id of the message's topic."""

    ts: int | None
    """Timestamp of the message in its topic, in microseconds."""

    post: int | None
    """Timestamp of the post in its organization, in microseconds."""

    publication: str | None
    """Id of the publication."""

    emoji: NotRequired[str]
    """The emoji of a reaction, or the name of a stamp between colons. Absent for other kinds, and in documents of
    earlier releases."""

    report: NotRequired[str]
    """Id of the content report; absent for other kinds."""

    attempt: NotRequired[int]
    """Number of attempts of the publication, which tells its second unknown outcome or failure from its first.

    Absent for other kinds, and in documents of earlier releases.
    """

    community: NotRequired[str | None]
    """Id of the message's community, or of the community that the notified user was added to.

    None for other notifications, and in decisions and warnings about a topic that the notified user can't read. An
    outbox row has it only for an added member. Documents of earlier releases lack it; a migration adds it to documents
    about messages.
    """

    membership: NotRequired[str]
    """Id of the membership that the notified user was given; absent for other kinds."""

    account: NotRequired[str]
    """Id of the connected account; absent for other kinds."""

    occasion: NotRequired[str]
    """A text that differs between notifications of a kind about the account; absent for other kinds."""

    pack: NotRequired[str]
    """Id of the pack of stamps that the notified user earned or was given; absent for other kinds."""

    subject: NotRequired[int]
    """Timestamp of the notified user's post, of a reply or quote. Absent for other kinds, and in documents of earlier
    releases."""

    root: NotRequired[int]
    """Timestamp of the first post of the conversation: of the notified user's post, or for a mention of the post with
    it. Absent for kinds without a post, and in documents of earlier releases."""

    parent_topic: NotRequired[str]
    """Id of the topic of the parent, if the message is in a thread; absent otherwise, and in outbox rows."""


class NotificationDocumentId(TypedDict):
    """The `_id` of a notification; its order is the user's timeline."""

    o: str
    """Organization id."""

    u: str
    """Id of the owner."""

    ts: Timestamp
    """Timestamp in the owner's stream, in microseconds."""


class NotificationDocument(NotificationContent):
    """A notification, in `notifications`. Deleted with the reaction, reply or quote that it is about, or by an erasure.

    Those about a conversation are deleted when it was read, accepted, declined or left.
    """

    _id: NotificationDocumentId
    about: str
    """The content as one string. A user has only one notification with the same string."""


class NotificationMarkDocument(TypedDict):
    """A user's read mark, in `notification_marks`. Deleted by an erasure. Its `_id` has the keys `o` and `u`."""

    ts: int
    """Timestamp of the last notification that was read, in microseconds."""

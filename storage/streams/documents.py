"""Stored documents of event streams. Instants are aware UTC datetimes by the database's clock."""

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
    """Random identifier of this incarnation. A stream that is created again has another one, so old cursors expire."""

    last: NotRequired[int]
    """Last allocated timestamp, in microseconds since the Unix epoch; absent until a timestamp was allocated."""

    committed_at: NotRequired[datetime]
    """When the last batch was allocated; absent until the first batch."""

    before: NotRequired[PreviousHead]
    """The values that are restored if no change of the batch takes a timestamp."""


class StreamDocument(HeadFields):
    """The head of a stream, in `streams`. Created with the first event or subscription, never deleted."""

    _id: str
    """Name of the stream: its kind, a colon, its id."""


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
    """Refers to the changed object: an id or a timestamp, depending on the kind of the stream."""

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


class NotificationRef(TypedDict):
    """Content of a notification, and the `ref` of its outbox row. Fields that its kind does not have are None."""

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

    report: NotRequired[str]
    """Id of the content report; absent for other kinds."""


class NotificationDocumentId(TypedDict):
    """The `_id` of a notification; its order is the user's timeline."""

    o: str
    """Organization id."""

    u: str
    """Id of the owner."""

    ts: Timestamp
    """Timestamp in the owner's stream, in microseconds."""


class NotificationDocument(NotificationRef):
    """A notification, in `notifications`. Never deleted, except together with a reaction that it is about."""

    _id: NotificationDocumentId
    about: str
    """The content as one string. A user has only one notification with the same string."""


class NotificationMarkDocument(TypedDict):
    """A user's read mark, in `notification_marks`. Never deleted. Its `_id` has the keys `o` and `u`."""

    ts: int
    """Timestamp of the last notification that was read, in microseconds."""

"""Stored documents of webhooks. Instants are aware UTC datetimes by the database's clock."""

from datetime import datetime
from typing import NotRequired, TypedDict

from storage.secrets.credentials import SealedSecret


class WebhookSecret(TypedDict):
    """A secret that signs requests."""

    secret: SealedSecret
    until: NotRequired[datetime]
    """When a secret from before a rotation ends; absent for the newest secret."""


class WebhookScan(TypedDict):
    """A search of the log for events of one webhook: after a replay was requested, or when it was enabled again."""

    since: datetime
    """Events before this instant are not searched."""

    rewinds: bool
    """Whether streams go back to the instant. Otherwise they continue after the last event that was delivered."""


class WebhookDocument(TypedDict):
    """A webhook, in `webhooks`. Deleted by an administrator, or by the service key that created it."""

    _id: str
    org: str
    """Organization id."""

    name: str
    url: str
    """Address that receives the events."""

    key: str
    """Id of the service key whose account may read the events."""

    types: list[str]
    """Types of the events that are sent, sorted; keys of `EVENT_TYPES`."""

    communities: list[str]
    """Ids of communities. If one of the three lists is not empty, only events of what they name are sent."""

    topics: list[str]
    """Ids of topics, whose threads count as well."""

    jobs: list[str]
    """Ids of call jobs and scheduled posts."""

    format: NotRequired[str]
    """Value of `WebhookFormat`; absent means EVENT."""

    secrets: list[WebhookSecret]
    """The newest one first."""

    created_at: datetime
    created_by: str
    """Id of the user or of the service account that created the webhook."""

    start: datetime
    """In a stream that has no position yet, events before this instant are not sent."""

    marks: int
    """Number of times that events were found for the webhook."""

    due: NotRequired[datetime]
    """When a worker sends next; absent if nothing waits, and while the webhook is disabled."""

    claim: NotRequired[str]
    """Token of the claim of the worker that is sending (`storage.mongo.leases.claim_token`); absent if none is."""

    scan: NotRequired[WebhookScan]
    """Absent if no search was requested."""

    failing_since: NotRequired[datetime]
    """When the message failed first that was not delivered since; absent if no such message waits."""

    failing_message: NotRequired[str]
    """The header `webhook-id` of that message."""

    error: NotRequired[str]
    """The last failure; absent if no message waits that has failed."""

    delivered_at: NotRequired[datetime]
    """When an event was last delivered; absent before the first one."""

    disabled_at: NotRequired[datetime]
    """When the webhook was disabled; absent while it is enabled."""

    disabled_reason: NotRequired[str]
    """Value of `DisabledReason`; absent while the webhook is enabled."""

    notice_due: NotRequired[datetime]
    """When a worker mails the administrators that the webhook was disabled; absent if there is nothing to mail."""


class WebhookPositionId(TypedDict):
    """The `_id` of a position."""

    w: str
    """Id of the webhook."""

    s: str
    """Name of the stream."""


class WebhookPositionDocument(TypedDict):
    """How far a webhook has read a stream, in `webhook_positions`. Expires five days after `at`."""

    _id: WebhookPositionId
    digest: str
    """Short text that identifies the stream in cursors."""

    epoch: str
    """Incarnation of the stream."""

    n: int
    """Number of the last event that was delivered, or left out."""

    last: int
    """Number of the last event that was found."""

    waiting_since: NotRequired[datetime]
    """Instant of the first event that waits; absent if none does."""

    at: datetime
    """When the document was last changed."""


class WebhookDeliveryDocument(TypedDict):
    """A try to deliver an event, in `webhook_deliveries`. Expires three days after `at`."""

    _id: str
    org: str
    """Organization id."""

    webhook: str
    """Id of the webhook."""

    stream: NotRequired[str]
    """Name of the event's stream; absent for a test."""

    n: NotRequired[int]
    """Number of the event in its stream; absent for a test."""

    message: str
    """The header `webhook-id`: the same for each try of an event."""

    type: str
    """Type of the event."""

    at: datetime
    """When the request ended, or when it was asked for."""

    outcome: str
    """Value of `DeliveryOutcome`."""

    body: NotRequired[bytes]
    """The beginning of the request's body, at most 16 KiB; absent until the request was sent."""

    status: NotRequired[int]
    """Status of the answer; absent without an answer."""

    answer: NotRequired[str]
    """The beginning of the answer, or what went wrong; absent until the request was sent."""

    ms: NotRequired[int]
    """Duration of the request in milliseconds; absent until the request was sent."""


class WebhookSearchDocument(TypedDict):
    """Up to when the log was searched for events of webhooks, in `webhook_searches`. One document, never deleted."""

    _id: str
    """The value of `SEARCH_ID`."""

    at: datetime
    """All events up to this instant have been found."""

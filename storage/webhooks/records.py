"""Webhooks as read from the database."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import Enum

from storage.streams.log import Stream, StreamPosition
from storage.webhooks.documents import WebhookDeliveryDocument, WebhookDocument, WebhookScan


class DisabledReason(Enum):
    """Why a webhook is disabled. The value is stored."""

    REQUESTED = "REQUESTED"
    FAILING = "FAILING"
    GONE = "GONE"
    KEY_ENDED = "KEY_ENDED"


class WebhookFormat(Enum):
    """The form of the body of a message. The value is stored."""

    EVENT = "EVENT"
    SLACK = "SLACK"
    DISCORD = "DISCORD"


class DeliveryOutcome(Enum):
    """How a try to deliver an event ended. The value is stored."""

    WAITING = "WAITING"
    DELIVERED = "DELIVERED"
    FAILED = "FAILED"


@dataclass(frozen=True, slots=True)
class WebhookFilter:
    """The events that a webhook sends: of certain types, and only of certain places if a list of ids is not empty."""

    types: Sequence[str]
    community_ids: Sequence[str] = ()
    topic_ids: Sequence[str] = ()
    job_ids: Sequence[str] = ()

    @property
    def is_limited(self) -> bool:
        """Whether only events of certain communities, topics or jobs are sent."""
        return bool(self.community_ids or self.topic_ids or self.job_ids)

    def includes_place(self, community_id: str | None, topic_ids: Sequence[str]) -> bool:
        """Returns whether events of a topic or a community are sent. `topic_ids` has a thread and its topic."""
        if not self.is_limited:
            return True
        return community_id in self.community_ids or not set(self.topic_ids).isdisjoint(topic_ids)


@dataclass(frozen=True, slots=True)
class NewWebhook:
    """A validated webhook to create."""

    name: str
    url: str
    key_id: str
    filter: WebhookFilter
    format: WebhookFormat = WebhookFormat.EVENT


@dataclass(frozen=True, slots=True)
class Webhook:
    """A webhook, without its secrets."""

    id: str
    organization_id: str
    name: str
    url: str
    key_id: str
    filter: WebhookFilter
    format: WebhookFormat
    created_at: datetime
    created_by_id: str
    failing_since: datetime | None
    last_error: str | None
    next_try_at: datetime | None
    """When a worker sends next, if the last request failed."""

    last_delivered_at: datetime | None
    disabled_at: datetime | None
    disabled_reason: DisabledReason | None
    previous_secret_until: datetime | None
    """The latest moment until which requests are also signed by a secret from before a rotation; None without one."""

    @property
    def event_types(self) -> Sequence[str]:
        """Types of the events that are sent, sorted."""
        return self.filter.types

    @property
    def community_ids(self) -> Sequence[str]:
        """Ids of the communities whose events are sent."""
        return self.filter.community_ids

    @property
    def topic_ids(self) -> Sequence[str]:
        """Ids of the topics whose events are sent."""
        return self.filter.topic_ids

    @property
    def job_ids(self) -> Sequence[str]:
        """Ids of the call jobs and scheduled posts whose events are sent."""
        return self.filter.job_ids


@dataclass(frozen=True, slots=True)
class IssuedWebhook:
    """A webhook with a new secret. `secret` is None where it was issued before, because it is shown only once."""

    webhook: Webhook
    secret: str | None


@dataclass(frozen=True, slots=True)
class WebhookDelivery:
    """A try to deliver an event, or a test."""

    id: str
    webhook_id: str
    event_type: str
    message_id: str
    at: datetime
    outcome: DeliveryOutcome
    request: str | None
    status: int | None
    answer: str | None
    duration_ms: int | None
    stream: Stream | None
    event_number: int | None


@dataclass(frozen=True, slots=True)
class ClaimedWebhook:
    """A webhook for which this worker sends events. `secrets` sign each request, the newest one first.

    Without secrets, they cannot be decrypted, and nothing is sent.
    """

    webhook: Webhook
    secrets: Sequence[str]
    claim: str
    marks: int
    start: datetime
    scan: WebhookScan | None
    failing_message: str
    """The `webhook-id` of the message that failed and was not delivered since; empty if there is none."""

    @property
    def id(self) -> str:
        """The webhook's id."""
        return self.webhook.id


@dataclass(frozen=True, slots=True)
class WaitingStream:
    """A stream with events that wait, and the position after the last event that was delivered."""

    stream: Stream
    position: StreamPosition


def webhook_record(document: WebhookDocument, now: datetime) -> Webhook:
    """Returns the record of a stored webhook."""
    previous = [each["until"] for each in document["secrets"] if "until" in each and each["until"] > now]
    reason, failing_since = document.get("disabled_reason"), document.get("failing_since")
    return Webhook(
        id=document["_id"],
        organization_id=document["org"],
        name=document["name"],
        url=document["url"],
        key_id=document["key"],
        filter=WebhookFilter(document["types"], document["communities"], document["topics"], document["jobs"]),
        format=WebhookFormat(document.get("format", "EVENT")),
        created_at=document["created_at"],
        created_by_id=document["created_by"],
        failing_since=failing_since,
        last_error=document.get("error"),
        next_try_at=None if failing_since is None else document.get("due"),
        last_delivered_at=document.get("delivered_at"),
        disabled_at=document.get("disabled_at"),
        disabled_reason=None if reason is None else DisabledReason(reason),
        previous_secret_until=max(previous, default=None),
    )


def delivery_record(document: WebhookDeliveryDocument, stream: Stream | None) -> WebhookDelivery:
    """Returns the record of a stored delivery."""
    body = document.get("body")
    return WebhookDelivery(
        id=document["_id"],
        webhook_id=document["webhook"],
        event_type=document["type"],
        message_id=document["message"],
        at=document["at"],
        outcome=DeliveryOutcome(document["outcome"]),
        request=None if body is None else body.decode(errors="replace"),
        status=document.get("status"),
        answer=document.get("answer"),
        duration_ms=document.get("ms"),
        stream=stream,
        event_number=document.get("n"),
    )

"""Reads the webhooks of Postmark into delivery events (table in docs/mail.md). Postmark signs nothing.

https://postmarkapp.com/developer/webhooks/webhooks-overview
https://postmarkapp.com/developer/api/bounce-api
"""

from typing import Any

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, ValidationError

from jobs.mail.inlets.answers import MAX_DIAGNOSTIC_CHARS, failure, first_fault, success
from jobs.mail.inlets.read_events import ReadEvents
from storage.mail.records import DeliveryEvent, DeliveryEventKind

IGNORED_RECORDS = frozenset({"Open", "Click", "SubscriptionChange"})

BOUNCES: dict[str, str | None] = {
    "HardBounce": "5.1.1",
    "SoftBounce": "4.2.0",
    "BadEmailAddress": "5.1.3",
    "DnsError": "4.4.3",
    "SpamNotification": "5.7.1",
    "Blocked": "5.7.1",
    "DMARCPolicy": "5.7.1",
    "VirusNotification": "5.6.0",
    "Unknown": "5.0.0",
    "Transient": None,
    "Unsubscribe": None,
    "Subscribe": None,
    "AutoResponder": None,
    "AddressChange": None,
    "OpenRelayTest": None,
    "ChallengeVerification": None,
    "ManuallyDeactivated": None,
    "Unconfirmed": None,
    "SMTPApiError": None,
    "InboundError": None,
    "TemplateRenderingFailed": None,
}
"""The status of a bounce without codes, by its type. None: such a bounce shows no outcome of a delivery."""


class _Record(BaseModel):
    model_config = ConfigDict(extra="ignore", hide_input_in_errors=True)

    message: str = Field(alias="MessageID", min_length=1)
    details: str | None = Field(default=None, alias="Details")


class _Delivery(_Record):
    address: str = Field(alias="Recipient")
    at: AwareDatetime = Field(alias="DeliveredAt")


class _Bounce(_Record):
    id: int = Field(alias="ID")
    type: str = Field(alias="Type")
    address: str = Field(alias="Email")
    at: AwareDatetime = Field(alias="BouncedAt")


def read_postmark(content: Any) -> ReadEvents:
    """Returns the events of one webhook. Its index is 0."""
    read = ReadEvents()
    type_ = content.get("RecordType") if isinstance(content, dict) else None
    try:
        match type_:
            case "Delivery":
                read.add(0, _delivery(_Delivery.model_validate(content)))
            case "Bounce":
                _read_bounce(_Bounce.model_validate(content), read)
            case "SpamComplaint":
                read.add(0, _complaint(_Bounce.model_validate(content)))
            case str() if type_ in IGNORED_RECORDS:
                read.ignore()
            case _:
                read.reject(0, f"RecordType: unknown type {str(type_)[:100]!r}.")
    except ValidationError as error:
        read.reject(0, first_fault(error), str(content.get("ID", ""))[:100])
    return read


def _delivery(delivery: _Delivery) -> DeliveryEvent:
    codes = success(delivery.details or "")
    return DeliveryEvent(
        event_id=f"postmark:delivery:{delivery.message}:{delivery.address}",
        address=delivery.address,
        at=delivery.at,
        smtp_code=codes.smtp_code,
        enhanced_status=codes.enhanced_status,
        message_id=delivery.message,
    )


def _complaint(bounce: _Bounce) -> DeliveryEvent:
    return DeliveryEvent(_event_id(bounce), bounce.address, bounce.at, DeliveryEventKind.COMPLAINT)


def _read_bounce(bounce: _Bounce, read: ReadEvents) -> None:
    if bounce.type == "SpamComplaint":
        read.add(0, _complaint(bounce))
        return
    if bounce.type not in BOUNCES:
        read.reject(0, f"Type: unknown type {bounce.type[:100]!r}.", _event_id(bounce))
        return
    class_status, text = BOUNCES[bounce.type], bounce.details or ""
    if class_status is None:
        read.ignore()
        return
    codes = failure(text, None, class_status)
    event = DeliveryEvent(
        event_id=_event_id(bounce),
        address=bounce.address,
        at=bounce.at,
        smtp_code=codes.smtp_code,
        enhanced_status=codes.enhanced_status,
        diagnostic=text[:MAX_DIAGNOSTIC_CHARS],
        message_id=bounce.message,
    )
    read.add(0, event)


def _event_id(bounce: _Bounce) -> str:
    return f"postmark:bounce:{bounce.id}:{bounce.message}:{bounce.type}"

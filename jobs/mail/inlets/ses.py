"""Reads notifications and events of Amazon SES into delivery events (table in docs/mail.md).

https://docs.aws.amazon.com/ses/latest/dg/notification-contents.html
"""

import json
from collections.abc import Iterator
from typing import Any

import orjson
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, ValidationError

from jobs.mail.inlets.answers import MAX_DIAGNOSTIC_CHARS, failure, first_fault, success
from jobs.mail.inlets.read_events import ReadEvents
from jobs.mail.reports import COMPLAINT_TYPES
from storage.mail.records import DeliveryEvent, DeliveryEventKind

IGNORED_TYPES = frozenset(
    {
        "Send",
        "Reject",
        "Open",
        "Click",
        "Rendering Failure",
        "DeliveryDelay",
        "Subscription",
        "AmazonSnsSubscriptionSucceeded",
    }
)
TOPIC_VALIDATED = "Successfully validated SNS topic for Amazon SES event publishing."

BOUNCES: dict[tuple[str, str], str | None] = {
    ("Undetermined", "Undetermined"): "5.0.0",
    ("Permanent", "General"): "5.0.0",
    ("Permanent", "NoEmail"): "5.1.1",
    ("Permanent", "Suppressed"): None,
    ("Permanent", "OnAccountSuppressionList"): None,
    ("Transient", "General"): None,
    ("Transient", "MailboxFull"): "4.2.2",
    ("Transient", "MessageTooLarge"): "5.3.4",
    ("Transient", "ContentRejected"): "5.6.0",
    ("Transient", "AttachmentRejected"): "5.6.0",
}
"""The status of a bounce without codes, by its type and subtype. None: such a bounce is no answer of a mail server."""

SUPPRESSED = {"Suppressed", "OnAccountSuppressionList"}
"""Subtypes of mail that SES did not send. Their codes are made up."""

IGNORED_COMPLAINT_TYPES = {"auth-failure", "not-spam", "virus"}


class _Part(BaseModel):
    model_config = ConfigDict(extra="ignore", hide_input_in_errors=True)


class _Mail(_Part):
    message_id: str = Field(alias="messageId")


class _BouncedRecipient(_Part):
    address: str = Field(alias="emailAddress")
    action: str | None = None
    status: str | None = None
    diagnostic: str | None = Field(default=None, alias="diagnosticCode")


class _Bounce(_Part):
    type: str = Field(alias="bounceType")
    subtype: str = Field(alias="bounceSubType")
    recipients: list[_BouncedRecipient] = Field(alias="bouncedRecipients")
    at: AwareDatetime = Field(alias="timestamp")


class _ComplainedRecipient(_Part):
    address: str = Field(alias="emailAddress")


class _Complaint(_Part):
    subtype: str | None = Field(default=None, alias="complaintSubType")
    type: str | None = Field(default=None, alias="complaintFeedbackType")
    recipients: list[_ComplainedRecipient] = Field(alias="complainedRecipients")
    at: AwareDatetime = Field(alias="timestamp")


class _Delivery(_Part):
    recipients: list[str]
    response: str = Field(default="", alias="smtpResponse")
    at: AwareDatetime = Field(alias="timestamp")


class _Bounced(_Part):
    mail: _Mail
    bounce: _Bounce


class _Complained(_Part):
    mail: _Mail
    complaint: _Complaint


class _Delivered(_Part):
    mail: _Mail
    delivery: _Delivery


def read_ses(message: str) -> ReadEvents:
    """Returns the events of one notification, one for each recipient. Its index is 0."""
    read = ReadEvents()
    content = _decoded(message)
    if message == TOPIC_VALIDATED:
        read.ignore()
    elif not isinstance(content, dict):
        read.reject(0, "Message: expected a notification of Amazon SES.")
    else:
        _read_notification(content, read)
    return read


def _read_notification(content: dict[str, Any], read: ReadEvents) -> None:
    type_ = content.get("eventType") or content.get("notificationType")
    try:
        match type_:
            case "Bounce":
                _read_bounce(_Bounced.model_validate(content), read)
            case "Complaint":
                _read_complaint(_Complained.model_validate(content), read)
            case "Delivery":
                for event in _deliveries(_Delivered.model_validate(content)):
                    read.add(0, event)
            case str() if type_ in IGNORED_TYPES:
                read.ignore()
            case _:
                read.reject(0, f"eventType: unknown type {str(type_)[:100]!r}.")
    except ValidationError as error:
        read.reject(0, first_fault(error))


def _read_bounce(bounced: _Bounced, read: ReadEvents) -> None:
    bounce, message = bounced.bounce, bounced.mail.message_id
    class_ = (bounce.type, bounce.subtype)
    if class_ not in BOUNCES:
        read.reject(0, f"bounceSubType: unknown class {' '.join(class_)[:100]!r}.")
        return
    for recipient in bounce.recipients:
        event = _bounce_of(recipient, bounce, message)
        if event is None:
            read.ignore()
        else:
            read.add(0, event)


def _bounce_of(recipient: _BouncedRecipient, bounce: _Bounce, message: str) -> DeliveryEvent | None:
    """Returns the event of a recipient; None if no mail server has refused the recipient."""
    class_status, text = BOUNCES[bounce.type, bounce.subtype], recipient.diagnostic or ""
    has_answer = bool(recipient.status or text)
    # Delays are no outcomes (RFC 3464, 2.3.3). SES also calls automatic replies bounces, which have no codes.
    if (
        bounce.subtype in SUPPRESSED
        or (recipient.action or "failed") != "failed"
        or (class_status is None and not has_answer)
    ):
        return None
    codes = failure(text, recipient.status, class_status or "4.0.0")
    return DeliveryEvent(
        event_id=_event_id(message, "bounce", recipient.address, bounce.at.isoformat()),
        address=recipient.address,
        at=bounce.at,
        smtp_code=codes.smtp_code,
        enhanced_status=codes.enhanced_status,
        diagnostic=text[:MAX_DIAGNOSTIC_CHARS],
        message_id=message,
    )


def _read_complaint(complained: _Complained, read: ReadEvents) -> None:
    complaint, message = complained.complaint, complained.mail.message_id
    type_, subtype = complaint.type or "abuse", complaint.subtype
    if type_ not in COMPLAINT_TYPES | IGNORED_COMPLAINT_TYPES or subtype not in (None, *SUPPRESSED):
        read.reject(0, f"complaintFeedbackType: unknown class {type_[:100]!r} {(subtype or '')[:100]!r}.")
        return
    for recipient in complaint.recipients:
        if subtype is not None or type_ in IGNORED_COMPLAINT_TYPES:
            read.ignore()
            continue
        event_id = _event_id(message, "complaint", recipient.address, complaint.at.isoformat())
        read.add(0, DeliveryEvent(event_id, recipient.address, complaint.at, DeliveryEventKind.COMPLAINT))


def _deliveries(delivered: _Delivered) -> Iterator[DeliveryEvent]:
    delivery, message = delivered.delivery, delivered.mail.message_id
    codes = success(delivery.response)
    for address in delivery.recipients:
        yield DeliveryEvent(
            event_id=_event_id(message, "delivery", address, delivery.at.isoformat()),
            address=address,
            at=delivery.at,
            smtp_code=codes.smtp_code,
            enhanced_status=codes.enhanced_status,
            message_id=message,
        )


def _event_id(message: str, type_: str, address: str, at: str) -> str:
    return f"ses:{message}:{type_}:{address}:{at}"


def _decoded(message: str) -> Any:
    """Returns the value of the notification, which may have lone surrogates in the subject of a mail; None without."""
    try:
        return orjson.loads(message)
    except (orjson.JSONDecodeError, UnicodeEncodeError):
        try:
            return json.loads(message)
        except (ValueError, RecursionError):
            return None

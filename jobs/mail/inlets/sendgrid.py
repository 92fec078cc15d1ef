"""Reads the events of SendGrid's Event Webhook into delivery events (table in docs/mail.md), and verifies signatures.

https://www.twilio.com/docs/sendgrid/for-developers/tracking-events/event
https://www.twilio.com/docs/sendgrid/for-developers/tracking-events/getting-started-event-webhook-security-features
"""

import base64
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ec import ECDSA, EllipticCurvePublicKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import load_der_public_key
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from jobs.mail.inlets.answers import MAX_DIAGNOSTIC_CHARS, failure, first_fault, success
from jobs.mail.inlets.read_events import ReadEvents
from jobs.providers.signed_webhooks import SignatureRefused
from storage.mail.records import DeliveryEvent, DeliveryEventKind

SIGNATURE, TIMESTAMP = "X-Twilio-Email-Event-Webhook-Signature", "X-Twilio-Email-Event-Webhook-Timestamp"

IGNORED_EVENTS = frozenset(
    {
        "processed",
        "deferred",
        "dropped",
        "open",
        "click",
        "unsubscribe",
        "group_unsubscribe",
        "group_resubscribe",
        "account_status_change",
    }
)

CLASSIFICATIONS = {
    "Invalid Address": "5.1.1",
    "Mailbox Unavailable": "4.2.0",
    "Content": "5.6.0",
    "Reputation": "5.7.1",
    "Frequency or Volume Too High": "5.7.0",
    "Technical Failure": "5.0.0",
    "Unclassified": "5.0.0",
}
"""The status of a bounce without a status of its own, by SendGrid's `bounce_classification`."""


class _Event(BaseModel):
    model_config = ConfigDict(extra="ignore", hide_input_in_errors=True)

    id: str = Field(alias="sg_event_id", min_length=1)
    address: str = Field(alias="email")
    timestamp: float = Field(ge=0, le=253_402_300_799)
    message: str | None = Field(default=None, alias="sg_message_id")
    reason: str | None = None
    response: str | None = None
    status: str | None = None
    classification: str | None = Field(default=None, alias="bounce_classification")

    @property
    def at(self) -> datetime:
        """When the event happened."""
        return datetime.fromtimestamp(self.timestamp, UTC)


def sendgrid_key(text: str) -> EllipticCurvePublicKey:
    """Returns a public key, which SendGrid shows as base64. Raises: ValueError."""
    try:
        key = load_der_public_key(base64.b64decode(text, validate=True))
    except UnsupportedAlgorithm as error:
        raise ValueError("expected an ECDSA public key") from error
    if not isinstance(key, EllipticCurvePublicKey):
        raise ValueError("expected an ECDSA public key")
    return key


def verify_sendgrid(keys: Iterable[str], headers: Mapping[str, str], body: bytes) -> None:
    """Verifies a request by any of the public keys. Raises: SignatureRefused.

    The age of a request is not limited, since a repeated event changes nothing.
    """
    signed = headers.get(TIMESTAMP, "").encode() + body
    try:
        signature = base64.b64decode(headers.get(SIGNATURE, ""), validate=True)
    except ValueError:
        signature = b""
    if not any(_matches(sendgrid_key(key), signature, signed) for key in keys):
        raise SignatureRefused(f"{SIGNATURE} does not match the body and {TIMESTAMP}")


def _matches(key: EllipticCurvePublicKey, signature: bytes, signed: bytes) -> bool:
    try:
        key.verify(signature, signed, ECDSA(SHA256()))
    except InvalidSignature:
        return False
    return True


def read_sendgrid(items: Iterable[tuple[int, Any]]) -> ReadEvents:
    """Returns the events of decoded objects with their indexes."""
    read = ReadEvents()
    for index, content in items:
        _read_event(index, content, read)
    return read


def _read_event(index: int, content: Any, read: ReadEvents) -> None:
    type_ = content.get("event") if isinstance(content, dict) else None
    if isinstance(type_, str) and type_ in IGNORED_EVENTS:
        read.ignore()
        return
    if type_ not in ("delivered", "bounce", "spamreport"):
        read.reject(index, f"event: unknown type {str(type_)[:100]!r}.")
        return
    try:
        event = _Event.model_validate(content)
    except ValidationError as error:
        read.reject(index, first_fault(error), str(content.get("sg_event_id", ""))[:100])
        return
    delivery = _delivery_event(type_, event)
    if delivery is None:
        read.reject(index, f"bounce_classification: unknown class {(event.classification or '')[:100]!r}.", event.id)
    else:
        read.add(index, delivery)


def _delivery_event(type_: str, event: _Event) -> DeliveryEvent | None:
    """Returns the event; None for a bounce whose only reason is an unknown class."""
    id_ = f"sendgrid:{event.id}"
    if type_ == "spamreport":
        return DeliveryEvent(id_, event.address, event.at, DeliveryEventKind.COMPLAINT)
    class_status = CLASSIFICATIONS.get(event.classification or "Unclassified")
    if type_ == "delivered":
        codes, text = success(event.response or ""), None
    else:
        text = event.reason or ""
        codes = failure(text, event.status, class_status or "5.0.0")
        if class_status is None and codes.smtp_code is None and codes.enhanced_status == "5.0.0":
            return None
    return DeliveryEvent(
        event_id=id_,
        address=event.address,
        at=event.at,
        smtp_code=codes.smtp_code,
        enhanced_status=codes.enhanced_status,
        diagnostic=text and text[:MAX_DIAGNOSTIC_CHARS],
        message_id=event.message,
    )

"""Reads the webhooks of Mailgun into delivery events (table in docs/mail.md), and verifies signatures.

https://documentation.mailgun.com/docs/mailgun/user-manual/webhooks/webhook-payloads
https://documentation.mailgun.com/docs/mailgun/user-manual/webhooks/securing-webhooks
"""

import hmac
from collections.abc import Iterable
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from jobs.mail.inlets.answers import MAX_DIAGNOSTIC_CHARS, failure, first_fault, success
from jobs.mail.inlets.read_events import ReadEvents
from jobs.providers.signed_webhooks import SignatureRefused
from storage.mail.records import DeliveryEvent, DeliveryEventKind

MAX_AGE_S = 86_400
"""How old a signature may be. Mailgun repeats a request for 8 hours."""

MAX_AHEAD_S = 300

IGNORED_EVENTS = frozenset({"accepted", "rejected", "opened", "clicked", "unsubscribed", "stored"})
SUPPRESSED = frozenset({"suppress-bounce", "suppress-complaint", "suppress-unsubscribe", "hardfail"})
SUPPRESSED_CODES = frozenset({605, 606, 607})

REASONS = {
    "bounce": "5.0.0",
    "delayed-bounce": "5.0.0",
    "generic": "5.0.0",
    "espblock": "5.7.1",
    "blacklisted": "5.7.1",
    "greylisted": "4.7.1",
    "old": "4.4.7",
}
"""The status of a permanent failure without codes, by its reason."""

OWN_CODES = {498: "4.4.4", 499: "4.4.1", 602: "4.4.7"}
"""The statuses of codes that Mailgun gives itself: no MX, no connection, too old."""


class _Part(BaseModel):
    model_config = ConfigDict(extra="ignore", hide_input_in_errors=True)


class _Signature(_Part):
    timestamp: str = Field(pattern=r"^[0-9]{1,12}$")
    token: str = Field(max_length=200)
    signature: str


class _Signed(_Part):
    signature: _Signature


class _Status(_Part):
    code: int | None = None
    status: str | None = Field(default=None, alias="enhanced-code")
    message: str | None = None
    description: str | None = None


class _Headers(_Part):
    message_id: str | None = Field(default=None, alias="message-id")


class _Message(_Part):
    headers: _Headers = _Headers()


class _Event(_Part):
    event: str
    id: str = Field(min_length=1)
    timestamp: float = Field(ge=0, le=253_402_300_799)
    address: str = Field(alias="recipient")
    severity: str | None = None
    reason: str | None = None
    status: _Status = Field(default=_Status(), alias="delivery-status")
    message: _Message = _Message()

    @property
    def at(self) -> datetime:
        """When the event happened."""
        return datetime.fromtimestamp(self.timestamp, UTC)

    @property
    def event_id(self) -> str:
        """Id of the event. Mailgun's own is unique within a day."""
        return f"mailgun:{self.id}:{self.timestamp:.6f}"


def verify_mailgun(keys: Iterable[str], content: Any, now_s: float) -> None:
    """Verifies the signature of a webhook by any of the keys. Raises: SignatureRefused.

    It does not sign the event: the service key of the request protects it.
    """
    try:
        signed = _Signed.model_validate(content).signature
    except ValidationError:
        raise SignatureRefused("signature is missing or malformed") from None
    if not -MAX_AHEAD_S <= now_s - int(signed.timestamp) <= MAX_AGE_S:
        raise SignatureRefused("timestamp of the signature is more than a day ago, or ahead")
    text = f"{signed.timestamp}{signed.token}".encode("utf-8", "surrogatepass")
    found = signed.signature.encode("utf-8", "surrogatepass")
    digests = [hmac.new(key.encode(), text, sha256).hexdigest().encode() for key in keys]
    if not any(hmac.compare_digest(digest, found) for digest in digests):
        raise SignatureRefused("signature does not match timestamp and token")


def read_mailgun(content: Any) -> ReadEvents:
    """Returns the event of one webhook. Its index is 0."""
    read = ReadEvents()
    data = content.get("event-data") if isinstance(content, dict) else None
    type_ = data.get("event") if isinstance(data, dict) else None
    if isinstance(type_, str) and type_ in IGNORED_EVENTS:
        read.ignore()
    elif type_ not in ("delivered", "failed", "complained"):
        read.reject(0, f"event: unknown type {str(type_)[:100]!r}.")
    else:
        try:
            _read_event(_Event.model_validate(data), read)
        except ValidationError as error:
            read.reject(0, first_fault(error))
    return read


def _read_event(event: _Event, read: ReadEvents) -> None:
    match event.event, event.severity:
        case "complained", _:
            read.add(0, DeliveryEvent(event.event_id, event.address, event.at, DeliveryEventKind.COMPLAINT))
        case "delivered", _:
            codes = success(str(event.status.code or ""))
            read.add(0, _delivery_event(event, codes.smtp_code, codes.enhanced_status, None))
        case "failed", "temporary":
            read.ignore()
        case "failed", "permanent":
            _read_failure(event, read)
        case _:
            read.reject(0, f"severity: unknown {(event.severity or '')[:100]!r}.", event.event_id)


def _read_failure(event: _Event, read: ReadEvents) -> None:
    code, reason = event.status.code or 0, event.reason or "generic"
    if reason in SUPPRESSED or code in SUPPRESSED_CODES:
        read.ignore()
        return
    text = " ".join(each for each in (event.status.message, event.status.description) if each)
    is_reply_code = 400 <= code <= 599 and code not in OWN_CODES
    if reason not in REASONS and code not in OWN_CODES and not is_reply_code:
        read.reject(0, f"reason: unknown {reason[:100]!r}.", event.event_id)
        return
    codes = failure(text, event.status.status, OWN_CODES.get(code) or REASONS.get(reason, "5.0.0"))
    read.add(0, _delivery_event(event, code if is_reply_code else None, codes.enhanced_status, text))


def _delivery_event(event: _Event, code: int | None, status: str | None, text: str | None) -> DeliveryEvent:
    return DeliveryEvent(
        event_id=event.event_id,
        address=event.address,
        at=event.at,
        smtp_code=code,
        enhanced_status=status,
        diagnostic=text and text[:MAX_DIAGNOSTIC_CHARS],
        message_id=event.message.headers.message_id,
    )

"""Parses mails that report on other mails into delivery events: DSNs (RFC 3464) and complaints (ARF, RFC 5965).

In nonstandard bounces, flufl.bounce finds the addresses. The first SMTP code and enhanced status in the text are used.
"""

import email.utils
import logging
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from email import message_from_bytes
from email.message import Message
from email.policy import compat32
from email.utils import parsedate_to_datetime
from hashlib import sha256
from typing import Any

from flufl.bounce import all_failures

from storage.mail.records import DeliveryEvent, DeliveryEventKind

COMPLAINT_TYPES = {"abuse", "fraud", "virus", "other", "opt-out", "opt-out-list"}
"""Values of Feedback-Type that are complaints; `not-spam` and `auth-failure` are not."""

MAX_DIAGNOSTIC_CHARS = 4000
MAX_SEARCHED_CHARS = 16_000
# Later versions of Python return nothing for a malformed header, as spam often has, unless strict is False.
LENIENT: dict[str, Any] = {"strict": False} if getattr(email.utils, "supports_strict_parsing", False) else {}

_SMTP_CODE = re.compile(r"(?:^|[\s;:>])([245]\d\d)[ -]")
_STATUS = re.compile(r"(?<![\d.])([245]\.\d{1,3}\.\d{1,3})(?![\d.])")


# flufl.bounce logs its errors together with text of the message, which may hold addresses.
logging.getLogger("flufl.bounce").setLevel(logging.CRITICAL + 1)


class NotADeliveryReport(Exception):
    """The message is not a DSN, an ARF report or a nonstandard bounce."""


def delivery_events(content: bytes, now: datetime) -> list[DeliveryEvent]:
    """Returns the events of a report. A report of anything but a delivery, bounce or complaint has no events.

    Raises: NotADeliveryReport.
    """
    message = message_from_bytes(content, policy=compat32)
    report_id = sha256((message.get("Message-ID") or "").encode(errors="replace") or content).hexdigest()
    reported_at = _parsed_date(message.get("Date"), now)
    for part in message.walk():
        match part.get_content_type():
            case "message/delivery-status":
                return list(_dsn_events(part, message, report_id, reported_at))
            case "message/feedback-report":
                return list(_complaint_events(part, message, report_id, reported_at))
    return _nonstandard_events(message, content, report_id, reported_at)


def _dsn_events(part: Message, message: Message, report_id: str, reported_at: datetime) -> Iterator[DeliveryEvent]:
    """Yields an event for each recipient whose Action is failed or delivered. Other actions are no outcomes."""
    groups = _field_groups(part)
    message_fields = groups[0] if groups else Message()
    queue_id = message_fields.get("X-Postfix-Queue-ID") or message_fields.get("Original-Envelope-Id")
    message_id = queue_id or _original_id(message)
    for number, recipient in enumerate(groups[1:]):
        action = (recipient.get("Action") or "").strip().lower()
        address = _address(recipient.get("Original-Recipient")) or _address(recipient.get("Final-Recipient"))
        if address is None or action not in ("failed", "delivered"):
            continue
        text = _single_line(recipient.get("Diagnostic-Code"))
        status = _STATUS.search(recipient.get("Status") or "")
        yield DeliveryEvent(
            event_id=f"dsn:{report_id}:{number}",
            address=address,
            at=_parsed_date(recipient.get("Last-Attempt-Date"), reported_at),
            smtp_code=_smtp_code(text),
            enhanced_status=status[1] if status else ("2.0.0" if action == "delivered" else "5.0.0"),
            diagnostic=text[:MAX_DIAGNOSTIC_CHARS],
            message_id=message_id and message_id.strip(),
        )


def _field_groups(part: Message) -> list[Message]:
    """Returns the groups of fields of a report part: in a DSN, one of the message, then one of each recipient."""
    payload = part.get_payload()
    return [each for each in payload if isinstance(each, Message) and each.keys()] if isinstance(payload, list) else []


def _complaint_events(
    part: Message, message: Message, report_id: str, reported_at: datetime
) -> Iterator[DeliveryEvent]:
    """Yields an event for each recipient that the complaint names, or else for each of the original message."""
    fields = next(iter(_field_groups(part)), None)
    if fields is None:
        text = part.get_payload(decode=True)
        fields = message_from_bytes(text if isinstance(text, bytes) else b"")
    if (fields.get("Feedback-Type") or "").strip().lower() not in COMPLAINT_TYPES:
        return
    reported = [each for each in map(_address, fields.get_all("Original-Rcpt-To", [])) if each]
    for number, address in enumerate(reported or _original_recipients(message)):
        yield DeliveryEvent(
            event_id=f"arf:{report_id}:{number}",
            address=address,
            at=reported_at,  # Arrival-Date and Received-Date are the times of the original message.
            kind=DeliveryEventKind.COMPLAINT,
        )


def _nonstandard_events(message: Message, content: bytes, report_id: str, reported_at: datetime) -> list[DeliveryEvent]:
    """Returns an event for each address that flufl.bounce finds. Raises: NotADeliveryReport when there is none."""
    temporary, permanent = _failed_addresses(message)
    addresses = sorted({each.decode("ascii", "replace") for each in {*temporary, *permanent}})
    if not addresses:
        raise NotADeliveryReport("The message is not a delivery report: expected a DSN, an ARF complaint or a bounce.")
    # Only the end of a long message is searched.
    text = content.decode("utf-8", "replace")[-MAX_SEARCHED_CHARS:]
    status = _STATUS.search(text)
    code = _smtp_code(text) or (550 if permanent else 450)
    return [
        DeliveryEvent(
            event_id=f"bounce:{report_id}:{number}",
            address=address,
            at=reported_at,
            smtp_code=code,
            enhanced_status=status[1] if status else None,
            diagnostic=text,
        )
        for number, address in enumerate(addresses)
    ]


def _failed_addresses(message: Message) -> tuple[set[bytes], set[bytes]]:
    """Returns the addresses that failed temporarily, and those that failed permanently."""
    try:
        temporary, permanent = all_failures(message)
    except (LookupError, TypeError, ValueError, AttributeError):
        return set(), set()  # flufl.bounce raises these for missing or malformed headers.
    return set(temporary), set(permanent)


def _address(field: str | None) -> str | None:
    """Returns the address in "rfc822; ann@example.org", "<ann@example.org>" or "ann@example.org"."""
    _, _, untyped = (field or "").rpartition(";")
    address = _single_line(untyped).strip("<> ")
    return address if "@" in address else None


def _original_message(message: Message) -> Message | None:
    """Returns the message that the report is about, possibly with its headers only, or None if it is not attached."""
    for part in message.walk():
        payload = part.get_payload()
        if part.get_content_type() == "message/rfc822" and isinstance(payload, list) and payload:
            first = payload[0]
            return first if isinstance(first, Message) else None
        if part.get_content_type() == "text/rfc822-headers" and isinstance(payload, str):
            return message_from_bytes(payload.encode(errors="replace"))
    return None


def _original_id(message: Message) -> str | None:
    original = _original_message(message)
    return original.get("Message-ID") if original is not None else None


def _original_recipients(message: Message) -> list[str]:
    original = _original_message(message)
    values = [] if original is None else original.get_all("To", [])
    return [each for _, each in email.utils.getaddresses(values, **LENIENT) if "@" in each]


def _smtp_code(text: str) -> int | None:
    match = _SMTP_CODE.search(text)
    return int(match[1]) if match else None


def _parsed_date(field: str | None, default: datetime) -> datetime:
    try:
        parsed = parsedate_to_datetime(field or "")
        return parsed.replace(tzinfo=UTC) if parsed.tzinfo is None else parsed.astimezone(UTC)
    except (ValueError, TypeError, OverflowError):
        return default


def _single_line(field: object) -> str:
    return " ".join(str(field or "").split())

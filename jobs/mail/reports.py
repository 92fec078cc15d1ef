"""Parses reports that arrive by mail, DSNs (RFC 3464) and complaints (ARF, RFC 5965), into delivery events.

For nonstandard bounces a library guesses the addresses, and the code and status come from the text.
"""

import logging
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from email import message_from_bytes
from email.message import Message
from email.policy import compat32
from email.utils import getaddresses, parsedate_to_datetime
from hashlib import sha256

from flufl.bounce import all_failures

from storage.mail.records import DeliveryEvent, DeliveryEventKind

COMPLAINTS = {"abuse", "fraud", "virus", "other", "opt-out", "opt-out-list"}
MAX_TEXT = 4000

_SMTP_CODE = re.compile(r"(?:^|[\s;:>])([245]\d\d)[ -]")
_STATUS = re.compile(r"(?<![\d.])([245]\.\d{1,3}\.\d{1,3})(?![\d.])")


# The library logs its failures with content of the message.
logging.getLogger("flufl.bounce").setLevel(logging.CRITICAL + 1)


class NotADeliveryReport(Exception):
    """The message is not a DSN, an ARF report or a nonstandard bounce."""


def delivery_events(content: bytes, now: datetime) -> list[DeliveryEvent]:
    """Returns the events of a report; empty when nothing counts, such as a delay.

    Raises: NotADeliveryReport.
    """
    message = message_from_bytes(content, policy=compat32)
    id_ = sha256((message.get("Message-ID") or "").encode(errors="replace") or content).hexdigest()
    at = _date(message.get("Date"), now)
    for part in message.walk():
        match part.get_content_type():
            case "message/delivery-status":
                return list(_dsn_events(part, message, id_, at))
            case "message/feedback-report":
                return list(_complaint_events(part, message, id_, at))
    return _nonstandard_events(message, content, id_, at)


def _dsn_events(part: Message, message: Message, id_: str, at: datetime) -> Iterator[DeliveryEvent]:
    """Yields an event per recipient with a final result. Delayed, relayed and expanded are not final."""
    blocks = _blocks(part)
    header = blocks[0] if blocks else Message()
    queue_id = header.get("X-Postfix-Queue-ID") or header.get("Original-Envelope-Id") or _original_id(message)
    for number, block in enumerate(blocks[1:]):
        action = (block.get("Action") or "").strip().lower()
        address = _recipient(block.get("Original-Recipient")) or _recipient(block.get("Final-Recipient"))
        if address is None or action not in ("failed", "delivered"):
            continue
        text = _single_line(block.get("Diagnostic-Code"))
        status = _STATUS.search(block.get("Status") or "")
        yield DeliveryEvent(
            event_id=f"dsn:{id_}:{number}",
            address=address,
            at=_date(block.get("Last-Attempt-Date"), at),
            smtp_code=_smtp_code(text),
            enhanced_status=status[1] if status else ("2.0.0" if action == "delivered" else "5.0.0"),
            diagnostic=text[:MAX_TEXT],
            message_id=queue_id and queue_id.strip(),
        )


def _blocks(part: Message) -> list[Message]:
    """Returns the groups of fields of a report part: first those of the message, then those of each recipient."""
    payload = part.get_payload()
    return [each for each in payload if isinstance(each, Message) and each.keys()] if isinstance(payload, list) else []


def _complaint_events(part: Message, message: Message, id_: str, at: datetime) -> Iterator[DeliveryEvent]:
    fields = next(iter(_blocks(part)), None)
    if fields is None:
        text = part.get_payload(decode=True)
        fields = message_from_bytes(text if isinstance(text, bytes) else b"")
    if (fields.get("Feedback-Type") or "").strip().lower() not in COMPLAINTS:
        return
    named = [each for each in map(_recipient, fields.get_all("Original-Rcpt-To", [])) if each]
    for number, address in enumerate(named or _original_recipients(message)):
        yield DeliveryEvent(
            event_id=f"arf:{id_}:{number}",
            address=address,
            at=at,  # the date of the complaint; Arrival-Date and Received-Date are of the original message
            kind=DeliveryEventKind.COMPLAINT,
        )


def _nonstandard_events(message: Message, content: bytes, id_: str, at: datetime) -> list[DeliveryEvent]:
    """Returns events for the addresses that a library finds, with the code and status from the text."""
    temporary, permanent = _failures(message)
    found = sorted({each.decode("ascii", "replace") for each in {*temporary, *permanent}})
    if not found:
        raise NotADeliveryReport("The message is not a delivery report: expected a DSN, an ARF complaint or a bounce.")
    text = content.decode("utf-8", "replace")[-MAX_TEXT * 4 :]
    status = _STATUS.search(text)
    code = _smtp_code(text) or (550 if permanent else 450)
    return [
        DeliveryEvent(
            event_id=f"bounce:{id_}:{number}",
            address=address,
            at=at,
            smtp_code=code,
            enhanced_status=status[1] if status else None,
            diagnostic=text,
        )
        for number, address in enumerate(found)
    ]


def _failures(message: Message) -> tuple[set[bytes], set[bytes]]:
    try:
        temporary, permanent = all_failures(message)
    except (LookupError, TypeError, ValueError, AttributeError):
        return set(), set()  # the library fails on missing or malformed headers
    return set(temporary), set(permanent)


def _recipient(field: str | None) -> str | None:
    """Returns the address of "rfc822; ann@example.org", "<ann@example.org>" or "ann@example.org"."""
    _, _, after = (field or "").rpartition(";")
    address = _single_line(after).strip("<> ")
    return address if "@" in address else None


def _original(message: Message) -> Message | None:
    """Returns the reported message, or its headers."""
    for part in message.walk():
        payload = part.get_payload()
        if part.get_content_type() == "message/rfc822" and isinstance(payload, list) and payload:
            first = payload[0]
            return first if isinstance(first, Message) else None
        if part.get_content_type() == "text/rfc822-headers" and isinstance(payload, str):
            return message_from_bytes(payload.encode(errors="replace"))
    return None


def _original_id(message: Message) -> str | None:
    original = _original(message)
    return original.get("Message-ID") if original is not None else None


def _original_recipients(message: Message) -> list[str]:
    original = _original(message)
    return [] if original is None else [each for _, each in getaddresses(original.get_all("To", [])) if "@" in each]


def _smtp_code(text: str) -> int | None:
    found = _SMTP_CODE.search(text)
    return int(found[1]) if found else None


def _date(field: str | None, default: datetime) -> datetime:
    try:
        at = parsedate_to_datetime(field or "")
        return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
    except (ValueError, TypeError, OverflowError):
        return default


def _single_line(field: object) -> str:
    return " ".join(str(field or "").split())

"""Parses mails that report on other mails into delivery events: DSNs (RFC 3464), complaints (ARF, RFC 5965), bounces.

Only the report itself is read, never a report in a message that is attached to it.
"""

import email.utils
import re
from collections.abc import Iterator
from datetime import datetime
from email.message import Message
from hashlib import sha256

from jobs.mail.delivery_status import original_message_id, parsed_delivery_status, recipient_events
from jobs.mail.nonstandard_bounces import nonstandard_events
from jobs.mail.report_fields import (
    LENIENT,
    field,
    parsed_date,
    parsed_fields,
    recipient_address,
    single_line,
    without_comments,
)
from jobs.mail.report_parts import (
    DELIVERY_STATUS_TYPES,
    FEEDBACK_REPORT_TYPE,
    decoded_text,
    original_message,
    parsed_report,
)
from storage.mail.records import DeliveryEvent, DeliveryEventKind

COMPLAINT_TYPES = {"abuse", "fraud", "other", "opt-out", "opt-out-list"}
"""Values of Feedback-Type that are complaints of the recipient; `not-spam`, `auth-failure` and `virus` are not."""

_FINAL_RECIPIENT = re.compile(r"^Final-Recipient[ \t]*:", re.IGNORECASE | re.MULTILINE)


class NotADeliveryReport(Exception):
    """The message is not a DSN, an ARF report or a nonstandard bounce."""


def delivery_events(content: bytes, now: datetime) -> list[DeliveryEvent]:
    """Returns the events of a report. A report of anything but a delivery, bounce or complaint has no events.

    Raises: NotADeliveryReport.
    """
    try:
        report = parsed_report(content)
        events = _events(report, content, now)
    except RecursionError:
        raise NotADeliveryReport("The parts of the message are nested too deeply for a delivery report.") from None
    if events is None:
        raise NotADeliveryReport("The message is not a delivery report: expected a DSN, an ARF complaint or a bounce.")
    return events


def _events(report: Message, content: bytes, now: datetime) -> list[DeliveryEvent] | None:
    report_id = sha256(str(report.get("Message-ID") or "").encode(errors="replace") or content).hexdigest()
    reported_at = parsed_date(report.get("Date"), now)
    if status_parts := _delivery_status_parts(report):
        return list(_dsn_events(status_parts, report, report_id, reported_at))
    for part in report.walk():
        if part.get_content_type() == FEEDBACK_REPORT_TYPE:
            return list(_complaint_events(part, report, report_id, reported_at))
    return nonstandard_events(report, report_id, reported_at)


def _delivery_status_parts(report: Message) -> list[Message]:
    """Returns the delivery-status parts. Some servers call the part of a multipart/report text/plain."""
    parts = [part for part in report.walk() if part.get_content_type() in DELIVERY_STATUS_TYPES]
    if parts or report.get_content_type() != "multipart/report":
        return parts
    texts = [part for part in report.walk() if part.get_content_type() == "text/plain"]
    return [part for part in texts[1:] if _FINAL_RECIPIENT.search(decoded_text(part))]


def _dsn_events(
    parts: list[Message], report: Message, report_id: str, reported_at: datetime
) -> Iterator[DeliveryEvent]:
    statuses = [parsed_delivery_status(decoded_text(part)) for part in parts]
    recipients = [each for status in statuses for each in status.recipients]
    message_ids = (original_message_id(status) for status in statuses)
    message_id = next(filter(None, message_ids), None) or _original_id(report)
    return recipient_events(recipients, message_id, report_id, reported_at)


def _complaint_events(part: Message, report: Message, report_id: str, reported_at: datetime) -> Iterator[DeliveryEvent]:
    """Yields an event for each recipient that the complaint names, or else for each of the original message."""
    fields = [each for group in parsed_fields(decoded_text(part)) for each in group]
    if without_comments(field(fields, "feedback-type")).lower() not in COMPLAINT_TYPES:
        return
    named = [recipient_address(value) for name, value in fields if name == "original-rcpt-to"]
    reported = [each for each in named if each is not None]
    for number, address in enumerate(reported or _original_recipients(report)):
        yield DeliveryEvent(
            event_id=f"arf:{report_id}:{number}",
            address=address,
            at=reported_at,  # Arrival-Date and Received-Date are the times of the original message.
            kind=DeliveryEventKind.COMPLAINT,
        )


def _original_id(report: Message) -> str | None:
    original = original_message(report)
    return None if original is None else single_line(original.get("Message-ID")) or None


def _original_recipients(report: Message) -> list[str]:
    original = original_message(report)
    values = [] if original is None else [str(each) for each in original.get_all("To", [])]
    return [each for _, each in email.utils.getaddresses(values, **LENIENT) if "@" in each]

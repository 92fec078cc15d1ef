"""Reads the parts of DSNs for programs: message/delivery-status (RFC 3464) and its form in UTF-8 (RFC 6533)."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from jobs.mail.reply_codes import failure_codes, failure_statuses, is_specific
from jobs.mail.report_fields import (
    Fields,
    comment,
    field,
    parsed_date,
    parsed_fields,
    recipient_address,
    without_comments,
)
from storage.mail.records import DeliveryEvent

MAX_DIAGNOSTIC_CHARS = 4000

_RECIPIENT_FIELDS = ("original-recipient", "final-recipient")
_OUTCOME_FIELDS = ("action", "status")
_KEY_FIELDS = (*_RECIPIENT_FIELDS, *_OUTCOME_FIELDS)
_STATUS = re.compile(r"(?<![\d.])([245]\.\d{1,3}\.\d{1,3})(?!\d|\.\d)")
_SUCCESS_CODE = re.compile(r"(?:[\w-]+\s*;)?\s*(2\d\d)(?!\w)")
_TYPED_CODE = re.compile(r"(?:smtp\s*;)?\s*([45]\d\d)(?!\d)", re.IGNORECASE)


class _Group:
    """Fields that stand together, and their names."""

    def __init__(self, *fields: tuple[str, str]) -> None:
        self.fields, self.names = [*fields], {name for name, _ in fields}

    @property
    def has_recipient(self) -> bool:
        return not self.names.isdisjoint(_RECIPIENT_FIELDS)

    @property
    def has_outcome(self) -> bool:
        return not self.names.isdisjoint(_OUTCOME_FIELDS)

    def extend(self, other: "_Group") -> None:
        self.fields += other.fields
        self.names |= other.names


@dataclass(frozen=True, slots=True)
class DeliveryStatus:
    """A delivery-status part: all its fields, and the fields of each recipient."""

    fields: Fields
    recipients: list[Fields]


def parsed_delivery_status(text: str) -> DeliveryStatus:
    """Returns the groups of a part, also if blank lines between them are missing or too many."""
    groups = [group for block in parsed_fields(text) for group in _split(block)]
    recipients: list[_Group] = []
    for group in groups:
        # Fields of the message precede those of the recipients. Later, an extra blank line cut a group in two.
        is_of_recipient = group.has_recipient or group.has_outcome
        if recipients and (not is_of_recipient or _continues(recipients[-1], group)):
            recipients[-1].extend(group)
        elif is_of_recipient:
            recipients.append(_Group(*group.fields))
    return DeliveryStatus([each for group in groups for each in group.fields], [each.fields for each in recipients])


def original_message_id(status: DeliveryStatus) -> str | None:
    """Returns the queue id, the envelope id or the Message-ID of the reported message, as far as the part holds it."""
    names = ("x-postfix-queue-id", "original-envelope-id", "original-message-id", "x-original-message-id")
    return field(status.fields, *names)


def recipient_events(
    recipients: list[Fields], message_id: str | None, report_id: str, reported_at: datetime
) -> Iterator[DeliveryEvent]:
    """Yields an event for each recipient whose Action is failed or delivered. Other actions are no outcomes."""
    seen: set[tuple[str, bool]] = set()
    for number, fields in enumerate(recipients):
        address = recipient_address(field(fields, "original-recipient")) or recipient_address(
            field(fields, "final-recipient")
        )
        is_failure = _is_failure(fields)
        # Several parts may repeat a recipient.
        if address is None or is_failure is None or (address.lower(), is_failure) in seen:
            continue
        seen.add((address.lower(), is_failure))
        diagnostic = _diagnostic(fields)
        status = field(fields, "status")
        yield DeliveryEvent(
            event_id=f"dsn:{report_id}:{number}",
            address=address,
            at=parsed_date(field(fields, "last-attempt-date"), reported_at),
            smtp_code=_failure_code(diagnostic) if is_failure else _success_code(diagnostic),
            enhanced_status=_failure_status(status, diagnostic) if is_failure else _success_status(status),
            diagnostic=diagnostic,
            message_id=message_id,
        )


def _split(block: Fields) -> Iterator[_Group]:
    """Yields the groups of a block in which blank lines are missing: a group has each field once."""
    group = _Group()
    is_joined = sum(name == "final-recipient" for name, _ in block) > 1
    for name, value in block:
        is_next_recipient = name in _RECIPIENT_FIELDS and group.has_recipient and group.has_outcome
        if is_joined and name in _KEY_FIELDS and (name in group.names or is_next_recipient):
            yield group
            group = _Group()
        group.extend(_Group((name, value)))
    yield group


def _continues(group: _Group, following: _Group) -> bool:
    """Returns whether a group has what the preceding group lacks: its recipient or its outcome."""
    is_complete = group.has_recipient and "action" in group.names
    repeats = any(name in group.names and name in following.names for name in _KEY_FIELDS)
    return not repeats and not (is_complete and following.has_recipient)


def _is_failure(fields: Fields) -> bool | None:
    """Returns whether delivery failed (True) or succeeded (False), or None if the report is not about an outcome."""
    action = without_comments(field(fields, "action")).lower()
    if not action:
        return True if without_comments(field(fields, "status")).startswith("5") else None
    if action.startswith(("fail", "error")):  # OpenSMTPD writes "error".
        return True
    return False if re.match(r"delivered\b", action) else None


def _diagnostic(fields: Fields) -> str:
    """Returns Diagnostic-Code. If it has no specific status, further texts of the group follow."""
    text = (field(fields, "diagnostic-code") or "")[:MAX_DIAGNOSTIC_CHARS]
    if any(is_specific(each) for each in failure_statuses(text)):
        return text
    supplements = [field(fields, "x-supplementary-info")]
    if not text:
        supplements += [comment(field(fields, name)) for name in _OUTCOME_FIELDS]
    return " ".join(each for each in (text, *supplements) if each)[:MAX_DIAGNOSTIC_CHARS]


def _failure_code(diagnostic: str) -> int | None:
    typed = _TYPED_CODE.match(diagnostic)
    return int(typed[1]) if typed else failure_codes(diagnostic).smtp_code


def _failure_status(reported: str | None, diagnostic: str) -> str:
    """Returns the reported status, or the one in the diagnostic if that says more."""
    found = _STATUS.search(without_comments(reported)) or _STATUS.search(reported or "")
    status = found[1] if found and found[1][0] != "2" else None
    others = [each for each in failure_statuses(diagnostic) if is_specific(each)]
    if status is None or not is_specific(status):
        return next(iter(others), status or "5.0.0")
    subject, _, detail = status.rpartition(".")
    refined = [each for each in others if each.rpartition(".")[0] == subject] if detail == "0" else []
    return next((each for each in refined if not each.endswith(".0")), status)


def _success_code(diagnostic: str) -> int | None:
    found = _SUCCESS_CODE.match(diagnostic)
    return int(found[1]) if found else None


def _success_status(reported: str | None) -> str:
    found = _STATUS.search(reported or "")
    return found[1] if found and found[1][0] == "2" else "2.0.0"

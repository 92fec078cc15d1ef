"""Reads bounces without a delivery-status part. flufl.bounce finds the addresses in the bounce's own text."""

import logging
import re
from dataclasses import dataclass
from datetime import datetime
from email.message import Message

from flufl.bounce import all_failures

from jobs.mail.bounce_text import before_separator, body_text, own_text
from jobs.mail.delivery_notices import is_delay_notice, is_from_mail_server
from jobs.mail.reply_codes import ReplyCodes, failure_codes, is_specific
from storage.mail.records import DeliveryEvent

MAX_DIAGNOSTIC_CHARS = 4000

_CONTENT_FIELDS = ("content-type", "content-transfer-encoding", "content-description", "content-disposition")
_ADDRESS = re.compile(r"""(?<![^\s<>"',;:=()\[\]*`])[^\s<>"',;:()\[\]*`@]+@[\w.-]+""")
_TEXT = re.compile(r"[^\W\d_]{3,}")

# flufl.bounce logs its errors together with text of the message, which may hold addresses.
logging.getLogger("flufl.bounce").setLevel(logging.CRITICAL + 1)


@dataclass(frozen=True, slots=True)
class _Bounce:
    """The addresses in the own text of a bounce. `permanent` is empty for a notice of delay."""

    text: str
    permanent: list[str]
    temporary: list[str]


def nonstandard_events(message: Message, report_id: str, reported_at: datetime) -> list[DeliveryEvent] | None:
    """Returns an event for each address of a bounce, none for a notice of delay, or None for any other message."""
    bounce = _parsed_bounce(message)
    if not (bounce.permanent or bounce.temporary):
        return [] if is_from_mail_server(message) and is_delay_notice(message, bounce.text) else None
    if not bounce.permanent or is_delay_notice(message, bounce.text):
        return []
    reasons = _reasons(bounce.text, bounce.permanent)
    codes = {reason: failure_codes(reason) for reason in {*reasons.values()}}  # Many addresses may share a reason.
    return [
        _event(f"bounce:{report_id}:{number}", address, reasons[address], codes[reasons[address]], reported_at)
        for number, address in enumerate(bounce.permanent)
    ]


def _event(event_id: str, address: str, reason: str, codes: ReplyCodes, reported_at: datetime) -> DeliveryEvent:
    return DeliveryEvent(
        event_id=event_id,
        address=address,
        at=reported_at,
        smtp_code=_smtp_code(codes),
        enhanced_status=codes.enhanced_status,
        diagnostic=reason[:MAX_DIAGNOSTIC_CHARS],
    )


def _smtp_code(codes: ReplyCodes) -> int | None:
    """Returns the code of the text. A text with neither a code nor a specific status is a permanent failure."""
    if codes.smtp_code is not None or is_specific(codes.enhanced_status):
        return codes.smtp_code
    return 450 if (codes.enhanced_status or "").startswith("4") else 550


def _parsed_bounce(message: Message) -> _Bounce:
    """Finds the addresses in the text before the original message. Some bounces list them like header fields."""
    text = body_text(message)
    for own in (own_text(text), before_separator(text)):
        temporary, permanent = _failed_addresses(_copy_with_text(message, own))
        if temporary or permanent:
            return _Bounce(own, permanent, temporary)
    return _Bounce(own_text(text), [], [])


def _copy_with_text(message: Message, text: str) -> Message:
    """Returns a message of the same form with a decoded text. Detectors of flufl.bounce depend on the form."""
    copy, text_part = Message(), Message()
    for name, value in message.items():
        if name.lower() not in _CONTENT_FIELDS:
            copy[name] = str(value)
    text_part["Content-Type"] = "text/plain"
    text_part["Content-Description"] = _description(message)
    text_part.set_payload(text)
    copy["Content-Type"] = message.get_content_type() if message.is_multipart() else "text/plain"
    # Some detectors do not read the last part, which holds the original message.
    copy.set_payload([text_part, Message()] if message.is_multipart() else text)
    return copy


def _description(message: Message) -> str:
    """Returns the Content-Description of the first text: Postfix calls it a notification."""
    texts = (part for part in message.walk() if part.get_content_type() == "text/plain")
    return next((str(part.get("Content-Description", "")) for part in texts), "")


def _failed_addresses(message: Message) -> tuple[list[str], list[str]]:
    """Returns the sorted addresses that failed temporarily, and those that failed permanently."""
    try:
        temporary, permanent = all_failures(message)
    except (LookupError, TypeError, ValueError, AttributeError):
        return [], []  # flufl.bounce raises these for missing or malformed headers.
    return _mail_addresses(temporary), _mail_addresses(permanent)


def _mail_addresses(found: frozenset[bytes]) -> list[str]:
    decoded = {each.decode("ascii", "replace").strip() for each in found}
    return sorted(each for each in decoded if re.fullmatch(r"[^\s@]+@[^\s@]+", each))


def _reasons(text: str, addresses: list[str]) -> dict[str, str]:
    """Returns the text about each address: its lines and those after them, or else the whole text."""
    groups = _lines_by_address(text, addresses)
    return {address: _reason("\n".join(groups[address]), text, len(addresses) > 1) for address in addresses}


def _reason(group: str, text: str, has_others: bool) -> str:
    """Returns a group if it holds a reason. A code outside the group may be another address's."""
    codes = failure_codes(group)
    has_words = has_others and _TEXT.search(_ADDRESS.sub(" ", group)) is not None
    return group if codes.smtp_code is not None or codes.enhanced_status is not None or has_words else text


def _lines_by_address(text: str, addresses: list[str]) -> dict[str, list[str]]:
    """Returns the lines of each address: a line that names an address begins its group or continues it."""
    groups: dict[str, list[str]] = {address: [] for address in addresses}
    by_spelling = {address.lower(): group for address, group in groups.items()}
    current: list[str] = []
    for line in text.split("\n"):
        named = (by_spelling.get(each[0].lower().rstrip(".")) for each in _ADDRESS.finditer(line))
        current = next((group for group in named if group is not None), current)
        current.append(line)
    return groups

"""Parses reports into parts. Attached messages and the parts for programs are not parsed further, but read as text."""

from email.message import Message
from email.parser import BytesParser
from email.policy import compat32

from jobs.mail.report_fields import without_comments

DELIVERY_STATUS_TYPES = ("attached/delivery-status", "attached/global-delivery-status")
FEEDBACK_REPORT_TYPE = "attached/feedback-report"
HEADER_TYPES = ("text/rfc822-headers", "attached/global-headers")
MESSAGE_TYPES = ("attached/rfc822", "attached/global")


class ReportPart(Message):
    """A report or a part of it. Types `message/*` are called `attached/*`, so that the parser keeps their text.

    Otherwise, the standard parser loses the fields of a part with a transfer encoding, and reads RFC 6533's parts as
    mails. The parts of attached messages are no parts of the report.
    """

    def get_content_type(self) -> str:
        """Returns the type in lower case, without comments."""
        kind = without_comments(super().get_content_type())
        return kind.replace("message/", "attached/", 1) if kind.startswith("message/") else kind


def parsed_report(content: bytes) -> Message:
    """Returns the parsed report. Raises: RecursionError if parts are nested too deeply."""
    has_lines = b"\n" in content  # Files of old Macintoshes have CR only, which the decoders do not know.
    return BytesParser(ReportPart, policy=compat32).parsebytes(content if has_lines else content.replace(b"\r", b"\n"))


def is_attached_message(part: Message) -> bool:
    """Returns whether a part holds another message, its header, or fields for programs."""
    return part.get_content_maintype() == "attached" or part.get_content_type() in HEADER_TYPES


def original_message(report: Message) -> Message | None:
    """Returns the header of the message that the report is about, or None if it is not attached."""
    attached = (part for part in report.walk() if part.get_content_type() in (*HEADER_TYPES, *MESSAGE_TYPES))
    first = next(attached, None)
    return None if first is None else BytesParser(policy=compat32).parsebytes(content_bytes(first), headersonly=True)


def decoded_text(part: Message) -> str:
    """Returns the content of a part without its transfer encoding, in whichever character set it is."""
    content, charset = content_bytes(part), part.get_content_charset("utf-8")
    try:
        return content.decode("utf-8" if charset == "us-ascii" else charset, "replace")
    except (LookupError, ValueError):
        return content.decode("utf-8", "replace")


def content_bytes(part: Message) -> bytes:
    """Returns the content of a part without its transfer encoding. A multipart has none."""
    content = part.get_payload(decode=True)
    return content if isinstance(content, bytes) else b""

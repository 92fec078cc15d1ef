"""Reads the fields of report parts: names, comments, addresses and dates (RFC 3464, 2.1; RFC 5965; RFC 6533)."""

import email.utils
import re
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

LENIENT: dict[str, Any] = {"strict": False} if getattr(email.utils, "supports_strict_parsing", False) else {}
"""Later versions of Python return nothing for a malformed header, as spam often has, unless strict is False."""

MAX_FIELD_CHARS = 2000
"""Longest field in which comments and an address are searched."""

Fields = list[tuple[str, str]]
"""Names in lower case, and values in one line."""

_FIELD = re.compile(r"([A-Za-z][A-Za-z0-9-]*)[ \t]*:(.*)")
_QUOTED_OR_COMMENT = re.compile(r'("(?:[^"\\]|\\.)*")|\((?:[^()\\]|\\.)*\)')
_ADDRESS_TYPES = re.compile(r"(?:\s*[\w-]+\s*;)+")
_ADDRESS = re.compile(r'(?:"(?:[^"\\]|\\.)*"|[^\s<>",;:()\[\]@]+)@[^\s<>",;:()@]+(?=[\s<>",;:()]|$)')
_MALFORMED_ADDRESS = re.compile(r"[^\s@]@")
_EMBEDDED_UNICODE = re.compile(r"\\x\{([0-9A-Fa-f]{2,6})\}")
_XTEXT_SIGN = re.compile(r"\+(?:2B|3D)")


def parsed_fields(text: str) -> list[Fields]:
    """Returns the groups of fields that blank lines separate. Folded lines are unfolded."""
    groups: list[list[tuple[str, list[str]]]] = [[]]
    for line in text.splitlines():
        found = _FIELD.match(line)
        if not line.strip():
            groups.append([])
        elif found is not None:
            groups[-1].append((found[1].lower(), [found[2]]))
        elif groups[-1]:
            # Some servers do not indent the further lines of a field.
            groups[-1][-1][1].append(line)
    return [[(name, single_line(" ".join(lines))) for name, lines in group] for group in groups if group]


def field(fields: Fields, *names: str) -> str | None:
    """Returns the value of the first of `names` that the fields hold, unless it is empty."""
    values = (value for name in names for each, value in fields if each == name and value)
    return next(values, None)


def without_comments(value: str | None) -> str:
    """Removes comments in parentheses, which may be nested, from a field. Quoted strings are kept."""
    text, changes = (value or "")[:MAX_FIELD_CHARS], 1
    while changes:
        replaced = _QUOTED_OR_COMMENT.sub(lambda found: found[1] or " ", text)
        changes, text = replaced != text, replaced
    return text.strip()


def comment(value: str | None) -> str:
    """Returns the comment at the end of a field: of `failed (no user)`, `no user`."""
    _, _, rest = (value or "").partition("(")
    return rest.strip(" ()")


def recipient_address(value: str | None) -> str | None:
    """Returns the address in "rfc822; ann@example.org", "<ann@example.org>", "Ann <ann@example.org>" and the like.

    A malformed address is returned as it is, so that the ledger rejects it. None if the field holds no address.
    """
    untyped = _ADDRESS_TYPES.sub("", without_comments(value), count=1)
    unescaped = _EMBEDDED_UNICODE.sub(_character, untyped)
    in_brackets = re.search(r"<([^<>]*@[^<>]*)>", unescaped)
    written = in_brackets[1] if in_brackets else unescaped.replace('"', "", _outer_quotes(unescaped))
    found = _ADDRESS.search(written)
    if found is None:
        return written.strip() if _MALFORMED_ADDRESS.search(written) else None
    # ORCPT is in xtext (RFC 3461, 4), which some servers copy into Original-Recipient.
    return _XTEXT_SIGN.sub(lambda sign: "+" if sign[0] == "+2B" else "=", found[0]).rstrip(".'")


def parsed_date(value: object, default: datetime) -> datetime:
    """Returns a date of a field in UTC, or `default` if the field is missing or malformed."""
    try:
        parsed = parsedate_to_datetime(str(value or ""))
        return parsed.replace(tzinfo=UTC) if parsed.tzinfo is None else parsed.astimezone(UTC)
    except (ValueError, TypeError, OverflowError, LookupError, AttributeError):
        return default


def single_line(value: object) -> str:
    """Returns a field in one line, with single spaces."""
    return " ".join(str(value or "").split())


def _character(found: re.Match[str]) -> str:
    """Returns the character of an escape of RFC 6533, 3: `\\x{5c}` is a backslash."""
    code_point = int(found[1], 16)
    is_character = code_point <= 0x10FFFF and not 0xD800 <= code_point <= 0xDFFF
    return chr(code_point) if is_character else found[0]


def _outer_quotes(text: str) -> int:
    """Returns how many quotes to remove from an address that is quoted as a whole: 2 or 0."""
    return 2 if re.fullmatch(r'\s*"[^"\s]+@[^"\s]+"\s*', text) else 0

"""HTTP headers that say when a server wants the next request: Retry-After, and the end of a rate limit."""

import time
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

FIRST_UNIX_TIME = 10**9
"""Smaller numbers are seconds from now, as the IETF's draft of RateLimit headers has them."""

LONGEST_S = 366 * 86_400.0
"""Longer times count as this one, so that every time after now is a date."""


def retry_after_s(header: str) -> float | None:
    """Returns for how many seconds a server wants no request; None without a valid header.

    A date counts from this machine's clock (RFC 9110, 10.2.3). Callers have limits of their own.
    """
    text = header.strip()
    try:
        seconds = float(text) if text.isascii() and text.isdigit() else _seconds_until(text)
    except (ValueError, OverflowError):
        return None
    return min(max(seconds, 0.0), LONGEST_S)


def reset_in_s(header: str) -> float | None:
    """Returns in how many seconds a rate limit ends; None without a valid header, and for a time that has passed.

    The header is a Unix time, a number of seconds, or a time of ISO 8601, which is in UTC if it names no zone.
    """
    text = header.strip()
    try:
        if text.isascii() and text.isdigit():
            number = int(text[:20])
            seconds = float(number - time.time() if number >= FIRST_UNIX_TIME else number)
        else:
            seconds = _seconds_to(datetime.fromisoformat(text))
    except (ValueError, OverflowError):
        return None
    return min(seconds, LONGEST_S) if seconds > 0 else None


def _seconds_until(date: str) -> float:
    """Returns the seconds until a date, which is in UTC if it names no zone. Raises: ValueError, OverflowError."""
    return _seconds_to(parsedate_to_datetime(date))


def _seconds_to(at: datetime) -> float:
    return (at if at.tzinfo is not None else at.replace(tzinfo=UTC)).timestamp() - time.time()

"""The HTTP header Retry-After, which says in seconds or by a date when a server wants the next request."""

import time
from datetime import UTC
from email.utils import parsedate_to_datetime

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


def _seconds_until(date: str) -> float:
    """Returns the seconds until a date, which is in UTC if it names no zone. Raises: ValueError, OverflowError."""
    at = parsedate_to_datetime(date)
    return (at if at.tzinfo is not None else at.replace(tzinfo=UTC)).timestamp() - time.time()

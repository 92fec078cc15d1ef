"""Types of arguments that many fields share, and the validation of argument values."""

import re
from functools import cache
from typing import Annotated
from zoneinfo import available_timezones

import strawberry

from storage.errors import BadUserInput
from storage.streams.log import Cursor
from storage.timeline import NOW, Range, Timestamp, timeline_range

MAX_LIST = 999

Oldest = Annotated[
    Timestamp | None,
    strawberry.argument(
        description="Lower bound of the page. If it is set, the page starts at this bound and is in ascending order."
    ),
]
Latest = Annotated[
    Timestamp | None,
    strawberry.argument(
        description='Upper bound of the page, or "now" for no upper bound. Without `oldest`, the page starts at this '
        "bound and is in descending order."
    ),
]
PageLimit = Annotated[int, strawberry.argument(description="Maximum number of items, 1 to 999.")]
Inclusive = Annotated[bool, strawberry.argument(description="Whether items exactly at a bound belong to the page.")]
ListLimit = Annotated[int, strawberry.argument(description=f"Maximum number of items, 1 to {MAX_LIST}.")]
After = Annotated[
    strawberry.ID | None,
    strawberry.argument(description="Id of the last item of the previous page. Omitted or null: the first page."),
]
Since = Annotated[
    Cursor | None,
    strawberry.argument(
        description="Cursor of the last event that the client handled. The subscription continues after that event. "
        "Omitted or null: only new events."
    ),
]


def page_range(oldest: object, latest: object, limit: int, inclusive: bool) -> Range:
    """Returns the range that the four timeline arguments describe. Raises: BadUserInput."""
    return timeline_range(_bound_or_none(oldest), _bound_or_none(latest), limit, inclusive)


def _bound_or_none(bound: object) -> int | None:
    return bound if isinstance(bound, int) else None


def checked_timestamp(field: str, timestamp: int) -> Timestamp:
    """Returns the timestamp unless it is "now". Raises: BadUserInput."""
    if timestamp == NOW:
        raise BadUserInput(field, 'a timestamp; "now" is for latest only')
    return Timestamp(timestamp)


def text_or_none(value: str | None) -> str | None:
    """Returns the value of an optional argument, or None if the argument was omitted or null."""
    return value if isinstance(value, str) else None


def checked_limit(limit: int, field: str = "limit") -> int:
    """Returns the limit of a list that is not a timeline, if it is 1 to 999. Raises: BadUserInput."""
    if not 1 <= limit <= MAX_LIST:
        raise BadUserInput(field, f"a number from 1 to {MAX_LIST}, not {limit}")
    return limit


def checked_text(field: str, value: str, min_chars: int, max_chars: int) -> str:
    """Returns the text if its length is allowed, and it can be stored and is not blank. Raises: BadUserInput."""
    try:
        value.encode()
    except UnicodeEncodeError:
        raise BadUserInput(field, "text without lone surrogates") from None
    if len(value) > max_chars or (value and not value.strip()) or len(value) < min_chars:
        raise BadUserInput(field, f"{min_chars} to {max_chars} characters, not only white space (it has {len(value)})")
    return value


@cache
def _zone_names() -> frozenset[str]:
    return frozenset(available_timezones())


def checked_time_zone(name: str) -> str:
    """Returns the name if it is the name of an IANA time zone. Raises: BadUserInput."""
    # ZoneInfo also accepts "posix/..." and "right/...", which are folders of some installations, not zone names.
    if name not in _zone_names():
        raise BadUserInput("timeZone", "the name of an IANA time zone, such as Asia/Tokyo")
    return name


# A Unicode emoji is a flag, a keycap, or pictographs with modifiers that are joined by ZWJ.
_PICTOGRAPH = (
    "[\u00a9\u00ae\u203c\u2049\u2122\u2139\u2194-\u21aa\u231a-\u23ff\u24c2\u25aa-\u27bf\u2934\u2935"
    "\u2b05-\u2b55\u3030\u303d\u3297\u3299\U0001f000-\U0001f1e5\U0001f200-\U0001f3fa\U0001f400-\U0001faff]"
)
_ELEMENT = f"{_PICTOGRAPH}(?:\ufe0f|[\U0001f3fb-\U0001f3ff])?(?:[\U000e0020-\U000e007e]{{1,8}}\U000e007f)?"
_EMOJI = re.compile(
    f"[\U0001f1e6-\U0001f1ff]{{2}}|[0-9#*]\ufe0f?\u20e3|{_ELEMENT}(?:\u200d{_ELEMENT}){{0,8}}|[\U0001f3fb-\U0001f3ff]"
)


def checked_emoji(value: str) -> str:
    """Returns the value if it is one emoji, a single grapheme. Raises: BadUserInput."""
    if not _EMOJI.fullmatch(value):
        raise BadUserInput("emoji", "exactly one emoji")
    return value

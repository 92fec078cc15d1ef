"""Arguments that many fields share, described once, and the checks of what clients send."""

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
    strawberry.argument(description="Lower bound. Alone or with `latest`, items come in ascending order from here."),
]
Latest = Annotated[
    Timestamp | None,
    strawberry.argument(
        description='Upper bound; "now" means none, so the newest page. Alone, items come in descending order.'
    ),
]
PageLimit = Annotated[int, strawberry.argument(description="How many items at most, 1 to 999.")]
Inclusive = Annotated[bool, strawberry.argument(description="Whether items exactly at a bound belong to the page.")]
ListLimit = Annotated[int, strawberry.argument(description=f"How many at most, 1 to {MAX_LIST}.")]
After = Annotated[strawberry.ID | None, strawberry.argument(description="Id of the last one seen.")]
Since = Annotated[
    Cursor | None,
    strawberry.argument(
        description="The cursor of the last event that was handled: what follows continues exactly after it."
    ),
]


def page_range(oldest: object, latest: object, limit: int, inclusive: bool) -> Range:
    """The range that the four timeline arguments mean. Raises: BadUserInput."""
    return timeline_range(_given(oldest), _given(latest), limit, inclusive)


def _given(bound: object) -> int | None:
    return bound if isinstance(bound, int) else None


def checked_timestamp(field: str, timestamp: int) -> Timestamp:
    """A timestamp that must be one, not "now". Raises: BadUserInput."""
    if timestamp == NOW:
        raise BadUserInput(field, 'a timestamp; "now" is for latest only')
    return Timestamp(timestamp)


def given(value: str | None) -> str | None:
    """An optional argument: None when it was left out or null."""
    return value if isinstance(value, str) else None


def checked_limit(limit: int, field: str = "limit") -> int:
    """A limit of a plain list. Raises: BadUserInput."""
    if not 1 <= limit <= MAX_LIST:
        raise BadUserInput(field, f"a number from 1 to {MAX_LIST}, not {limit}")
    return limit


def checked_text(field: str, value: str, least: int, most: int) -> str:
    """A text of that many characters, not only white space, that can be stored. Raises: BadUserInput."""
    try:
        value.encode()
    except UnicodeEncodeError:
        raise BadUserInput(field, "text without lone surrogates") from None
    if len(value) > most or (value and not value.strip()) or len(value) < least:
        raise BadUserInput(field, f"{least} to {most} characters, not only white space; these are {len(value)}")
    return value


@cache
def _zones() -> frozenset[str]:
    return frozenset(available_timezones())


def checked_time_zone(name: str) -> str:
    """Returns the name of an IANA time zone. Raises: BadUserInput."""
    # ZoneInfo also accepts "posix/..." and "right/...", which are folders of an installation and no names of zones.
    if name not in _zones():
        raise BadUserInput("timeZone", "the name of an IANA time zone, such as Asia/Tokyo")
    return name


# One grapheme of Unicode's emoji: a flag, a keycap, or a pictograph with its modifiers, joined to others by ZWJ.
_PICTOGRAPH = (
    "[\u00a9\u00ae\u203c\u2049\u2122\u2139\u2194-\u21aa\u231a-\u23ff\u24c2\u25aa-\u27bf\u2934\u2935"
    "\u2b05-\u2b55\u3030\u303d\u3297\u3299\U0001f000-\U0001f1e5\U0001f200-\U0001f3fa\U0001f400-\U0001faff]"
)
_ELEMENT = f"{_PICTOGRAPH}(?:\ufe0f|[\U0001f3fb-\U0001f3ff])?(?:[\U000e0020-\U000e007e]{{1,8}}\U000e007f)?"
_EMOJI = re.compile(
    f"[\U0001f1e6-\U0001f1ff]{{2}}|[0-9#*]\ufe0f?\u20e3|{_ELEMENT}(?:\u200d{_ELEMENT}){{0,8}}|[\U0001f3fb-\U0001f3ff]"
)


def checked_emoji(value: str) -> str:
    """One emoji: one grapheme. Raises: BadUserInput."""
    if not _EMOJI.fullmatch(value):
        raise BadUserInput("emoji", "one emoji")
    return value

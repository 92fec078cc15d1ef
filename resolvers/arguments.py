"""Types of arguments that many fields share, and the validation of argument values."""

import re
from collections import deque
from datetime import datetime
from functools import cache
from importlib.resources import files
from typing import Annotated, Any

import strawberry
from strawberry import UNSET

from storage.errors import BadUserInput
from storage.mongo.text_index.emojis import MAX_EMOJI_CHARS, qualified_emoji
from storage.mongo.text_index.visible_characters import has_visible_character
from storage.streams.log import Cursor
from storage.timeline import NOW, TimelineRange, Timestamp, timeline_range

MAX_LIST = 999
_EARLIEST = Timestamp(0)
_UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")

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
Emoji = Annotated[
    str,
    strawberry.argument(
        description="One emoji of Unicode, or the name of a stamp of `stampPacks` between colons, such as `:lit:`. "
        "Reactions show an emoji in its fully qualified form, with variation selectors."
    ),
]
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


def page_range(oldest: object, latest: object, limit: int, inclusive: bool) -> TimelineRange:
    """Returns the range that the four timeline arguments describe. Raises: BadUserInput."""
    return timeline_range(_bound_or_none(oldest), _bound_or_none(latest), limit, inclusive)


def bounds_of_connection(arguments: dict[str, Any]) -> dict[str, Any]:
    """Returns the arguments of a timeline, with those of Relay's connections replaced by bounds and a limit.

    `first` reads from the newest item or from `after` to older ones, `last` from the oldest item or from `before` to
    newer ones. Raises: BadUserInput.
    """
    timeline = dict(arguments)
    first, after, last, before = (timeline.pop(name, None) for name in ("first", "after", "last", "before"))
    if first is None and last is None:
        _require_absent("no value without first", after=after)
        _require_absent("no value without last", before=before)
        return timeline
    _require_absent("no value beside first or last", oldest=timeline.get("oldest"), latest=timeline.get("latest"))
    if last is None:
        _require_absent("no value without last", before=before)
        bound = {"latest": NOW if after is None else checked_timestamp("after", after)}
        return {**timeline, **bound, "limit": checked_limit(first, "first"), "inclusive": False}
    _require_absent("no value beside last", first=first, after=after)
    bound = {"oldest": _EARLIEST if before is None else checked_timestamp("before", before)}
    return {**timeline, **bound, "limit": checked_limit(last, "last"), "inclusive": before is None}


def _require_absent(expected: str, **values: object) -> None:
    """Raises BadUserInput for a value that is neither omitted nor null."""
    for name, value in values.items():
        if value is not None and value is not UNSET:
            raise BadUserInput(name, expected)


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


def instant_or_none(at: datetime | None) -> datetime | None:
    """Returns the value of an optional argument, or None if the argument was omitted or null."""
    return at if isinstance(at, datetime) else None


def checked_limit(limit: int, field: str = "limit") -> int:
    """Returns the limit of a list that is not a timeline, if it is 1 to 999. Raises: BadUserInput."""
    if not 1 <= limit <= MAX_LIST:
        raise BadUserInput(field, f"a number from 1 to {MAX_LIST}, not {limit}")
    return limit


def checked_text(field: str, value: str, min_chars: int, max_chars: int) -> str:
    """Returns the text if it has an allowed length, can be stored, and is empty or visible. Raises: BadUserInput."""
    require_storable(value, field)
    if not min_chars <= len(value) <= max_chars or (value and not has_visible_character(value)):
        expected = f"{min_chars} to {max_chars} characters, not only invisible ones (it has {len(value)})"
        raise BadUserInput(field, expected)
    return value


def checked_name(field: str, value: str, max_chars: int) -> str:
    """Returns the name of a person or of their thing, without spaces around it. Raises: BadUserInput.

    It is visible, has no control characters, and changes the direction of no text around it.
    """
    checked = checked_text(field, value.strip(), 1, max_chars)
    if _UNPRINTABLE.search(checked):
        raise BadUserInput(field, f"1 to {max_chars} characters without control characters")
    return checked


def require_storable(value: object, field: str = "") -> None:
    """Raises BadUserInput if a text in the value has a lone surrogate, such as half of an emoji.

    Lone surrogates have no UTF-8, so they can't be stored or sent. `field` is the name of the value. The error names
    the text's place in it, such as `attachments[1].altText`.
    """
    pending = deque([(field, value)])
    while pending:
        place, each = pending.popleft()
        if isinstance(each, dict):
            pending.extend((f"{place}.{name}" if place else str(name), inner) for name, inner in each.items())
        elif isinstance(each, list):
            pending.extend((f"{place}[{index}]", inner) for index, inner in enumerate(each))
        elif isinstance(each, str):
            try:
                each.encode()
            except UnicodeEncodeError:
                place = place.encode("utf-8", "backslashreplace").decode()
                raise BadUserInput(place, "text without lone surrogates") from None


@cache
def _zone_names() -> frozenset[str]:
    # The names of the package are the same on every server. The folders of a system hold other files, such as
    # "localtime", "posixrules" and "right/...". Clocks of "Factory" are not set.
    return frozenset(files("tzdata").joinpath("zones").read_text().split()) - {"Factory"}


def checked_time_zone(name: str) -> str:
    """Returns the name if it is the name of an IANA time zone. Raises: BadUserInput.

    Every time zone that a client sends passes this function.
    """
    if name not in _zone_names():
        raise BadUserInput("timeZone", "the name of an IANA time zone, such as Asia/Tokyo")
    return name


def checked_emoji(value: str) -> str:
    """Returns the fully qualified form of the value if it is one emoji. Raises: BadUserInput."""
    emoji = qualified_emoji(value)
    if emoji is None:
        raise BadUserInput("emoji", "exactly one emoji")
    return emoji


def stored_emojis(value: str) -> list[str]:
    """Returns the texts under which a reaction may be stored. Raises: BadUserInput.

    Earlier releases stored an emoji as it was sent, and accepted sequences that Unicode does not list.
    """
    sent = checked_text("emoji", value, 1, MAX_EMOJI_CHARS)
    return list(dict.fromkeys((qualified_emoji(sent) or sent, sent)))

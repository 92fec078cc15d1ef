"""The scalars: ids, instants with an offset, timeline timestamps as strings, and opaque cursors."""

import re
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from types import MappingProxyType
from typing import Any

import strawberry
from graphql import GraphQLError, GraphQLID, GraphQLNamedType, GraphQLScalarType, StringValueNode, ValueNode
from strawberry.types.scalar import ScalarDefinition

from resolvers.publishing.times import LocalDateTime
from storage.ids import stored_id
from storage.streams.log import Cursor
from storage.timeline import NOW, Timestamp, format_timestamp, parse_timestamp

_TIMESTAMP = 'a string like "1639720395.000002": Unix seconds with exactly six decimals'
_INSTANT = 'an RFC 3339 instant with an offset, such as "2026-11-21T12:00:00Z"'
_LOCAL_TIME = 'a local date and time without an offset, such as "2026-11-21T12:00"'

ZERO_OFFSET = timezone(timedelta(0), "+00:00")
"""The offset of local times that are equal to UTC. Z, which says nothing about local time, is parsed as `UTC`."""

MAX_CURSOR = 65_536
"""Maximum number of characters. Present cursors have fewer than 200.

Cursors of an old version may be longer. They are accepted, but subscriptions do not resume from them.
"""

_RFC_3339 = re.compile(
    r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-](?:[01]\d|2[0-3]):[0-5]\d)", re.ASCII | re.IGNORECASE
)
_LOCAL_RFC_3339 = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:\.\d+)?)?", re.ASCII | re.IGNORECASE)


def _parse_timestamp(value: object) -> Timestamp:
    if value == "now":
        return NOW
    try:
        return parse_timestamp(value if isinstance(value, str) else "")
    except ValueError:
        raise _bad_value("Timestamp", _TIMESTAMP) from None


def _format_instant(value: datetime) -> str:
    text = value.astimezone(UTC).isoformat(timespec="milliseconds")
    return text.replace("+00:00", "Z")


def _parse_instant(value: object) -> datetime:
    # fromisoformat accepts much of ISO 8601 that is not RFC 3339, such as week dates and hours without minutes.
    text = value.upper() if isinstance(value, str) and _RFC_3339.fullmatch(value) else ""
    try:
        # The offset stays as written, since it may be compared with the offset of a time zone.
        instant = datetime.fromisoformat(text)
        instant.astimezone(UTC)
        return instant.replace(tzinfo=ZERO_OFFSET) if text.endswith("+00:00") else instant
    except (ValueError, OverflowError):
        raise _bad_value("DateTime", _INSTANT) from None


def _parse_local_time(value: object) -> LocalDateTime:
    text = value.upper() if isinstance(value, str) and _LOCAL_RFC_3339.fullmatch(value) else ""
    try:
        return LocalDateTime(datetime.fromisoformat(text))
    except ValueError:
        raise _bad_value("LocalDateTime", _LOCAL_TIME) from None


def _parse_cursor(value: object) -> str:
    if not isinstance(value, str) or len(value) > MAX_CURSOR:
        raise _bad_value("Cursor", "a cursor from this subscription")
    return value


class _IdType(GraphQLScalarType):
    """The type of a scalar with a name that graphql-core reserves."""

    reserved_types = MappingProxyType[str, GraphQLNamedType]({})


def _id_scalar() -> ScalarDefinition:
    """Returns graphql-core's ID, except that it removes the name of a type from ids in arguments."""
    parse_literal = GraphQLID.coerce_input_literal
    assert parse_literal is not None
    type_ = _IdType(
        "ID",
        description=GraphQLID.description,
        coerce_output_value=GraphQLID.coerce_output_value,
        coerce_input_value=lambda value: stored_id(GraphQLID.coerce_input_value(value)),
        coerce_input_literal=lambda node: stored_id(parse_literal(node)),
        value_to_literal=GraphQLID.value_to_literal,
    )
    return replace(strawberry.scalar(name="ID"), implementation=type_)


def _literal(parse: Callable[[object], Any]) -> Callable[..., Any]:
    """Returns a parser of literals, which must be strings. Its errors hold the literal's position in the document."""

    def parse_literal(node: ValueNode, _variables: dict[str, Any] | None = None) -> Any:
        try:
            return parse(node.value if isinstance(node, StringValueNode) else None)
        except GraphQLError as error:
            raise GraphQLError(error.message, node, extensions=error.extensions) from None

    return parse_literal


def _bad_value(scalar: str, expected: str) -> GraphQLError:
    return GraphQLError(f"{scalar}: expected {expected}.", extensions={"code": "BAD_USER_INPUT", "expected": expected})


SCALARS: dict[Any, ScalarDefinition] = {
    strawberry.ID: _id_scalar(),
    Timestamp: strawberry.scalar(
        name="Timestamp",
        description=(
            "A point on a timeline: Unix seconds with exactly six decimals, as a string, "
            'e.g. "1639720395.000002". A JSON number is refused. The argument `latest` also accepts the word "now".'
        ),
        serialize=format_timestamp,
        parse_value=_parse_timestamp,
        parse_literal=_literal(_parse_timestamp),
    ),
    datetime: strawberry.scalar(
        name="DateTime",
        description="RFC 3339 instant with an offset, e.g. 2026-11-21T12:00:00Z. Times without an offset are refused.",
        specified_by_url="https://www.rfc-editor.org/rfc/rfc3339",
        serialize=_format_instant,
        parse_value=_parse_instant,
        parse_literal=_literal(_parse_instant),
    ),
    LocalDateTime: strawberry.scalar(
        name="LocalDateTime",
        description="Local date and time of a time zone that is given beside it, as clocks there show it, e.g. "
        "2026-11-21T12:00 or 2026-11-21T12:00:30. Times with an offset are refused.",
        serialize=datetime.isoformat,
        parse_value=_parse_local_time,
        parse_literal=_literal(_parse_local_time),
    ),
    Cursor: strawberry.scalar(
        name="Cursor",
        description="Position in an event stream. Treat as an opaque string; compare for equality only.",
        serialize=str,
        parse_value=_parse_cursor,
        parse_literal=_literal(_parse_cursor),
    ),
}

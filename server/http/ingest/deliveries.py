"""Reads delivery events in the form of DeliveryEventInput, by the rules that GraphQL has for the input type."""

import re
from collections.abc import Sequence
from typing import Any, cast

from graphql import GraphQLError, GraphQLInputObjectType, GraphQLNonNull, Undefined
from graphql.utilities import coerce_input_value, validate_input_value
from strawberry.types import get_object_definition
from strawberry.utils.str_converters import to_camel_case

from jobs.mail.inlets.read_events import ReadEvents
from resolvers.arguments import require_storable
from resolvers.mail.inputs import DeliveryEventInput
from schema.root import schema
from schema.values.input_errors import RefusedValue
from server.http.ingest.items import Item, item_batches
from server.http.ingest.recording import Recording
from server.transport.json_decoding import decode_json
from storage.errors import BadUserInput
from storage.mail.ledger import MAX_ID_CHARS
from storage.mail.records import DeliveryEvent

MAX_MESSAGE_CHARS = 300

# Strawberry has no public access to graphql-core's schema (server/graphql/operations.py).
_TYPE = GraphQLNonNull(cast(GraphQLInputObjectType, schema._schema.type_map["DeliveryEventInput"]))
_FIELDS = {
    to_camel_case(field.python_name): field.python_name
    for field in get_object_definition(DeliveryEventInput, strict=True).fields
}
"""The names of the input's fields in Python, by those of the API."""

_OBJECT = re.compile(rb"^[ \t\r]*[{\[]", re.MULTILINE)


async def record_deliveries(recording: Recording, body: bytes) -> dict[str, Any]:
    """Records one event for each line of NDJSON or element of a JSON array. Rejects invalid ones by their index.

    Raises: BadUserInput when no line begins like JSON, so that a client that sends another format gets an error.
    """
    if body.strip() and not _OBJECT.search(body):
        raise BadUserInput("body", "NDJSON, one JSON object on each line, or a JSON array of objects")
    async for items in item_batches(body):
        await recording.add(read_deliveries(items))
    return recording.answer()


def read_deliveries(items: Sequence[Item]) -> ReadEvents:
    """Returns the events of the items."""
    read = ReadEvents()
    for index, text in items:
        try:
            read.add(index, _event(text))
        except BadUserInput as error:
            read.reject(index, error.message[:MAX_MESSAGE_CHARS], _event_id(text))
    return read


def _event(text: bytes) -> DeliveryEvent:
    """Returns an event. Raises: BadUserInput."""
    try:
        value = decode_json(text)
    except ValueError:
        raise BadUserInput("line", "a JSON object") from None
    coerced = coerce_input_value(value, _TYPE)
    if coerced is Undefined:
        raise _fault(value)
    require_storable(value)
    return DeliveryEventInput(**{_FIELDS[name]: each for name, each in coerced.items()}).event()


def _fault(value: object) -> BadUserInput:
    """Returns the first error that GraphQL has for the value, without the value."""
    refused = RefusedValue([], _TYPE, value)
    faults: list[BadUserInput] = []

    def add(error: GraphQLError, path: list[str | int]) -> None:
        extensions = refused.explain(error, path)
        faults.append(BadUserInput(extensions["field"] or "line", extensions["expected"]))

    validate_input_value(value, _TYPE, add)
    return faults[0]


def _event_id(text: bytes) -> str:
    """Returns the eventId of a malformed event; an empty string when it cannot be read."""
    try:
        event_id = decode_json(text)["eventId"]
    except (ValueError, TypeError, KeyError):
        return ""
    return str(event_id)[:MAX_ID_CHARS] if isinstance(event_id, str | int) else ""

"""Reads GraphQL requests of HTTP bodies."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import orjson
from strawberry.http.parse_content_type import parse_content_type

from server.graphql.documents import OperationRequest
from server.transport.json_decoding import decode_json
from storage.errors import BadUserInput

REQUEST_MEDIA_TYPE = "application/json"


@lru_cache(maxsize=64)
def media_type(content_type: bytes) -> str:
    """Returns the media type of a header, without parameters."""
    return parse_content_type(content_type.decode("latin-1"))[0]


def parse_request(body: bytes) -> OperationRequest:
    """Returns the request of a JSON body. Raises: BadUserInput if it is not one GraphQL operation."""
    try:
        values = decode_json(body)
    except orjson.JSONDecodeError:
        raise _not_an_operation("Send JSON.") from None
    if not isinstance(values, dict):
        raise _not_an_operation("Send one operation at a time, as a JSON object.")
    query = _member(values, "query", str, "a string")
    if not query:
        raise BadUserInput("query", "a GraphQL document")
    _member(values, "extensions", dict, "an object")
    variables = _member(values, "variables", dict, "an object")
    return OperationRequest(query, variables, _member(values, "operationName", str, "a string"))


def _member(body: Mapping[str, Any], name: str, type_: type, expected: str) -> Any:
    value = body.get(name)
    if value is not None and not isinstance(value, type_):
        raise _not_an_operation(f"`{name}` must be {expected} or null, if provided.")
    return value


def _not_an_operation(message: str) -> BadUserInput:
    return BadUserInput("body", "one GraphQL operation as a JSON object", message)

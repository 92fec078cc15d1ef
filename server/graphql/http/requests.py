"""Reads GraphQL requests: of a JSON body by POST, one operation or a batch, and of the query of a URL by GET."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any
from urllib.parse import parse_qsl

import orjson
from strawberry.http.parse_content_type import parse_content_type

from server.graphql.documents import OperationRequest, no_query, not_an_operation, operation_request
from server.transport.json_decoding import decode_json
from storage.errors import BadUserInput

REQUEST_MEDIA_TYPE = "application/json"
MAX_BATCH = 10
"""Maximum number of operations of a request."""

JSON_PARAMETERS = ("variables", "extensions")


@lru_cache(maxsize=64)
def media_type(content_type: bytes) -> str:
    """Returns the media type of a header, without parameters."""
    return parse_content_type(content_type.decode("latin-1"))[0]


@dataclass(frozen=True, slots=True)
class RawRequest:
    """The bytes of a request, and the media types that it accepts. Identical requests are equal."""

    content: bytes
    """The body, or the query of the URL."""
    accept: str
    is_get: bool = False

    def parse(self) -> OperationRequest | list[OperationRequest]:
        """Returns the requested operation, or those of a batch. Raises: BadUserInput."""
        return _parse_url(self.content) if self.is_get else _parse_body(self.content)


def _parse_body(body: bytes) -> OperationRequest | list[OperationRequest]:
    try:
        values = decode_json(body)
    except orjson.JSONDecodeError:
        raise not_an_operation("body", "Send JSON.") from None
    if not isinstance(values, list):
        return _operation(values)
    if not 1 <= len(values) <= MAX_BATCH:
        raise BadUserInput("body", f"1 to {MAX_BATCH} operations; this batch has {len(values)}")
    return [_operation(each, f"[{i}]") for i, each in enumerate(values)]


def _parse_url(query: bytes) -> OperationRequest:
    parameters: dict[str, Any] = dict(reversed(parse_qsl(query.decode("latin-1"), errors="surrogateescape")))
    for name in JSON_PARAMETERS:
        if name in parameters:
            parameters[name] = _parse_parameter(name, parameters[name])
    return _operation(parameters)


def _operation(values: object, item: str = "") -> OperationRequest:
    request = operation_request(values, item)
    if not request.query and request.document_id is None:
        raise no_query(item)
    return request


def _parse_parameter(name: str, text: str) -> Any:
    try:
        return decode_json(text)
    except (orjson.JSONDecodeError, UnicodeEncodeError):
        raise BadUserInput(name, "a JSON object") from None

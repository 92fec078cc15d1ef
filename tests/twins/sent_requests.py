"""Requests that a network's twin has received, with their fields by name."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl

from starlette.requests import Request

from tests.twins.multipart import multipart

HTTP_HEADERS = {"host", "user-agent", "accept", "accept-encoding", "connection", "content-length"}
"""Headers of HTTP itself, about which a network's documentation says nothing."""


@dataclass(frozen=True)
class SentRequest:
    """A request. `query` and `body` hold the fields by names such as `media.media_ids[]`.

    Fields of JSON have the types of JSON. Other fields are texts, and files are bytes. A body that is one file has no
    fields.
    """

    method: str
    path: str
    query: dict[str, list[Any]]
    headers: dict[str, str]
    body: dict[str, list[Any]]
    has_length: bool

    @property
    def names(self) -> set[str]:
        """The names of all fields."""
        return self.query.keys() | self.body.keys()

    @property
    def content_type(self) -> str:
        """The content type without parameters; empty without a body."""
        return self.headers.get("content-type", "").partition(";")[0]


async def sent_request(request: Request) -> SentRequest:
    """Reads a request, which can be read again afterwards."""
    content = await request.body()
    headers = {name: text for name, text in request.headers.items() if name not in HTTP_HEADERS}
    kind = headers.get("content-type", "").partition(";")[0]
    fields: list[tuple[str, Any]] = []
    if kind == "application/json":
        fields = list(_fields("", await request.json()))
    elif kind == "application/x-www-form-urlencoded":
        fields = list(parse_qsl(content.decode(), keep_blank_values=True, strict_parsing=True))
    elif kind == "multipart/form-data":
        parts = (await multipart(request)).items()
        fields = [(name, part if part_type else part.decode()) for name, (part_type, part) in parts]
    query = request.query_params.multi_items()
    has_length = "content-length" in request.headers
    return SentRequest(request.method, request.url.path, _by_name(query), headers, _by_name(fields), has_length)


def _fields(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Yields the fields of a JSON value. An empty object or list is a field of its own."""
    if isinstance(value, dict) and value:
        for key, item in value.items():
            yield from _fields(f"{name}.{key}" if name else key, item)
    elif isinstance(value, list) and value:
        for item in value:
            yield from _fields(f"{name}[]", item)
    else:
        yield name, value


def _by_name(fields: list[tuple[str, Any]]) -> dict[str, list[Any]]:
    names = dict.fromkeys(name for name, _ in fields)
    return {name: [value for each, value in fields if each == name] for name in names}

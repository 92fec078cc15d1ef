"""Queries that crowds may share (ADR 44): what a request asks for, found out once for all who send the same bytes."""

from collections import OrderedDict
from dataclasses import dataclass
from functools import lru_cache
from typing import Any
from weakref import WeakKeyDictionary

import orjson
from graphql import DocumentNode, GraphQLSchema, OperationDefinitionNode, OperationType
from starlette.requests import ClientDisconnect
from starlette.types import Message, Receive

from schema.sharing import is_for_crowds
from server.graphql.limits import DocumentLimitsExtension, PreparedDocument

MAX_QUERY_BYTES = 20_000
MAX_REMEMBERED = 500
JSON_TYPES = (b"application/json", b"application/json; charset=utf-8")
STREAMS = (b"multipart/", b"text/event-stream")


@dataclass(frozen=True, slots=True, eq=False)
class SharedQuery:
    """A query that crowds may share. Who sends the same body and accepts the same is handed the same one."""

    accept: str
    query: str
    variables: dict[str, Any] | None
    operation_name: str | None


class SharedQueries:
    """Those that were asked last. Whether one suits crowds is decided by its text and the schema, for good."""

    def __init__(self, schema: GraphQLSchema) -> None:
        self._schema = schema
        self._known: OrderedDict[tuple[bytes, bytes], SharedQuery] = OrderedDict()

    def find(self, accept: bytes, body: bytes) -> SharedQuery | None:
        """The query of a JSON body; None for all that crowds don't share, and for what was never executed yet."""
        if len(body) > MAX_QUERY_BYTES:
            return None
        place = accept, body
        asked = self._known.get(place)
        if asked is None:
            asked = self._read(accept, body)
            if asked is None:
                return None
            self._known[place] = asked
            if len(self._known) > MAX_REMEMBERED:
                self._known.popitem(last=False)
        self._known.move_to_end(place)
        return asked

    def _read(self, accept: bytes, body: bytes) -> SharedQuery | None:
        try:
            asked = orjson.loads(body)
        except orjson.JSONDecodeError:
            return None
        match asked:
            case {"query": str(query), **rest} if rest.keys() <= {"variables", "operationName"}:
                variables, name = rest.get("variables"), rest.get("operationName")
            case _:
                return None
        prepared = DocumentLimitsExtension.documents.find(self._schema, query)
        if prepared is None or not isinstance(variables, dict | None) or not isinstance(name, str | None):
            return None
        return SharedQuery(accept.decode("latin-1"), query, variables, name) if self._suits(prepared) else None

    def _suits(self, prepared: PreparedDocument) -> bool:
        suits = _suiting.get(prepared)
        if suits is None:
            suits = _is_query(prepared.document) and is_for_crowds(self._schema, prepared.document)
            _suiting[prepared] = suits
        return suits


_suiting: WeakKeyDictionary[PreparedDocument, bool] = WeakKeyDictionary()


def _is_query(document: DocumentNode) -> bool:
    operations = [each for each in document.definitions if isinstance(each, OperationDefinitionNode)]
    return all(each.operation is OperationType.QUERY for each in operations)


@lru_cache(maxsize=64)
def may_be_shared(content_type: bytes | None, accept: bytes) -> bool:
    """Whether the body may be of a query that crowds share."""
    return content_type in JSON_TYPES and not any(each in accept for each in STREAMS)


async def start_of_body(receive: Receive) -> Message:
    """The body in one message, or as much of it as is too long for such a query. Raises: ClientDisconnect."""
    body, more = b"", True
    while more and len(body) <= MAX_QUERY_BYTES:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        body += message.get("body", b"")
        more = message.get("more_body", False)
    return {"type": "http.request", "body": body, "more_body": more}


def from_start(read: Message, receive: Receive) -> Receive:
    """Reads once more what was read, and then what follows."""
    again = [read]

    async def receive_again() -> Message:
        return again.pop() if again else await receive()

    return receive_again

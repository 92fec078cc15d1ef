"""Recognizes requests whose queries may be coalesced (ADR 44), by the bytes of their bodies."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any
from weakref import WeakKeyDictionary

import orjson
from cachetools import LRUCache
from graphql import DocumentNode, GraphQLSchema, OperationDefinitionNode, OperationType
from starlette.requests import ClientDisconnect
from starlette.types import Message, Receive

from schema.binding import ANY_KEY
from schema.sharing import suits_audience
from server.graphql.documents import DocumentCache, PreparedDocument

MAX_QUERY_BYTES = 20_000
MAX_CACHED_QUERIES = 500
JSON_TYPES = (b"application/json", b"application/json; charset=utf-8")
STREAMING_TYPES = (b"multipart/", b"text/event-stream")


@dataclass(frozen=True, slots=True, eq=False)
class CoalescibleQuery:
    """A query that may be coalesced. Requests with the same body and Accept header get the same object."""

    accept: str
    query: str
    variables: dict[str, Any] | None
    operation_name: str | None
    cost: int
    scopes: frozenset[str]
    """The scopes that a service key needs for the query's root fields."""

    def permits(self, scopes: frozenset[str] | None) -> bool:
        """Returns whether a key with these scopes may use the query. None: the request has no key."""
        return scopes is None or self.scopes <= scopes | {ANY_KEY}


class CoalescibleQueries:
    """Least-recently-used cache of coalescible queries. The document and the schema decide what is coalescible."""

    def __init__(self, schema: GraphQLSchema, documents: DocumentCache, max_cached: int = MAX_CACHED_QUERIES) -> None:
        self._schema, self._documents = schema, documents
        self._coalescible: WeakKeyDictionary[PreparedDocument, bool] = WeakKeyDictionary()
        self._queries: LRUCache[tuple[bytes, bytes], CoalescibleQuery] = LRUCache(max_cached)

    def find(self, accept: bytes, body: bytes) -> CoalescibleQuery | None:
        """Returns the query of a JSON body; None if it may not be coalesced or its document is not cached yet."""
        if len(body) > MAX_QUERY_BYTES:
            return None
        key = accept, body
        query = self._queries.get(key)
        if query is None:
            query = self._parse(accept, body)
            if query is not None:
                self._queries[key] = query
        return query

    def _parse(self, accept: bytes, body: bytes) -> CoalescibleQuery | None:
        try:
            request = orjson.loads(body)
        except orjson.JSONDecodeError:
            return None
        match request:
            case {"query": str(query), **rest} if rest.keys() <= {"variables", "operationName"}:
                variables, name = rest.get("variables"), rest.get("operationName")
            case _:
                return None
        prepared = self._documents.find(query)
        if prepared is None or not isinstance(variables, dict | None) or not isinstance(name, str | None):
            return None
        is_coalescible = self._is_coalescible(prepared)
        if not is_coalescible:
            return None
        cost, scopes = prepared.cost(variables, name), frozenset(prepared.scopes.values())
        return CoalescibleQuery(accept.decode("latin-1"), query, variables, name, cost, scopes)

    def _is_coalescible(self, prepared: PreparedDocument) -> bool:
        is_coalescible = self._coalescible.get(prepared)
        if is_coalescible is None:
            is_coalescible = _is_query(prepared.document) and suits_audience(self._schema, prepared.document)
            self._coalescible[prepared] = is_coalescible
        return is_coalescible


def _is_query(document: DocumentNode) -> bool:
    operations = [each for each in document.definitions if isinstance(each, OperationDefinitionNode)]
    return all(each.operation is OperationType.QUERY for each in operations)


@lru_cache(maxsize=64)
def may_be_coalesced(content_type: bytes | None, accept: bytes) -> bool:
    """Returns whether requests with these headers may be coalesced."""
    return content_type in JSON_TYPES and not any(each in accept for each in STREAMING_TYPES)


async def read_body_start(receive: Receive) -> Message:
    """Reads the body, or its start if it is longer than MAX_QUERY_BYTES, and returns it as one ASGI message.

    Raises: ClientDisconnect.
    """
    body, has_more = b"", True
    while has_more and len(body) <= MAX_QUERY_BYTES:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        body += message.get("body", b"")
        has_more = message.get("more_body", False)
    return {"type": "http.request", "body": body, "more_body": has_more}


def prepend_message(first: Message, receive: Receive) -> Receive:
    """Returns a `receive` that returns the message `first`, and then the messages of the given `receive`."""
    pending = [first]

    async def receive_next() -> Message:
        return pending.pop() if pending else await receive()

    return receive_next

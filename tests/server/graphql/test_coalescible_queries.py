"""Coalescible queries are recognized by the bytes of the request. The start of a body is read ahead and replayed."""

import orjson
import pytest
from starlette.requests import ClientDisconnect
from starlette.types import Message, Receive

from schema.root import build_schema
from server.graphql.coalescible_queries import (
    MAX_QUERY_BYTES,
    CoalescibleQueries,
    may_be_coalesced,
    prepend_message,
    read_body_start,
)
from server.graphql.documents import DocumentCache
from server.graphql.limits_extension import limits_extension

pytestmark = pytest.mark.anyio

DOCUMENTS = DocumentCache()
SCHEMA = build_schema(limits_extension(DOCUMENTS))
QUERY = 'query p($topic: ID!) { messages(topicId: $topic, latest: "now") { items { text } } }'
REQUEST = {"query": QUERY, "variables": {"topic": "t"}, "operationName": "p"}


@pytest.fixture(autouse=True)
def _empty_cache() -> None:
    """Empties the document cache before each test."""
    DOCUMENTS._documents.clear()


@pytest.fixture
def queries() -> CoalescibleQueries:
    return CoalescibleQueries(SCHEMA._schema, DOCUMENTS)


async def execute(query: str = QUERY) -> None:
    """Executes the query, which caches its document."""
    await SCHEMA.execute(query, {"topic": "t"})


async def test_query_is_coalescible_once_its_document_is_cached(queries: CoalescibleQueries) -> None:
    body = orjson.dumps(REQUEST)
    assert queries.find(b"", body) is None
    await execute()
    coalescible = queries.find(b"", body)
    assert coalescible is not None
    assert (coalescible.query, coalescible.variables, coalescible.operation_name) == (QUERY, {"topic": "t"}, "p")
    assert queries.find(b"", bytes(bytearray(body))) is coalescible


async def test_query_is_identical_only_with_the_same_body_and_accept(queries: CoalescibleQueries) -> None:
    await execute()
    other = REQUEST | {"variables": {"topic": "u"}}
    requests = [(b"", REQUEST), (b"application/json", REQUEST), (b"", other), (b"", {"query": QUERY})]
    coalescible_queries = [queries.find(accept, orjson.dumps(each)) for accept, each in requests]
    assert None not in coalescible_queries
    assert len(set(map(id, coalescible_queries))) == len(requests)


async def test_query_stays_coalescible_when_its_document_is_evicted(queries: CoalescibleQueries) -> None:
    await execute()
    coalescible = queries.find(b"", orjson.dumps(REQUEST))
    DOCUMENTS._documents.clear()
    assert queries.find(b"", orjson.dumps(REQUEST)) is coalescible is not None


async def test_least_recently_used_query_is_evicted() -> None:
    queries = CoalescibleQueries(SCHEMA._schema, DOCUMENTS, max_cached=2)
    await execute()
    bodies = [orjson.dumps({"query": QUERY, "variables": {"topic": str(number)}}) for number in range(3)]
    coalescible_queries = [queries.find(b"", body) for body in (*bodies[:2], bodies[0], bodies[2])]
    assert queries.find(b"", bodies[0]) is coalescible_queries[0]
    assert queries.find(b"", bodies[1]) is not coalescible_queries[1]


@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b"[]",
        orjson.dumps({"query": "{ viewer { id } }"}),
        orjson.dumps(REQUEST | {"variables": {"topic": "t" * MAX_QUERY_BYTES}}),
        orjson.dumps(REQUEST | {"extensions": {}}),
        orjson.dumps(REQUEST | {"variables": []}),
        orjson.dumps(REQUEST | {"operationName": 1}),
    ],
)
async def test_malformed_or_unsuitable_body_is_not_coalescible(queries: CoalescibleQueries, body: bytes) -> None:
    await execute()
    await execute("{ viewer { id } }")
    assert queries.find(b"", body) is None


@pytest.mark.parametrize(
    ("content_type", "accept", "is_coalescible"),
    [
        (b"application/json", b"", True),
        (b"application/json; charset=utf-8", b"application/graphql-response+json", True),
        (b"text/plain", b"", False),
        (None, b"", False),
        (b"application/json", b"multipart/mixed", False),
        (b"application/json", b"text/event-stream", False),
    ],
)
def test_only_json_media_types_are_coalescible(content_type: bytes | None, accept: bytes, is_coalescible: bool) -> None:
    assert may_be_coalesced(content_type, accept) is is_coalescible


def receive_function(*messages: Message) -> Receive:
    """Returns an ASGI receive function that returns these messages in order."""
    pending = iter(messages)

    async def receive() -> Message:
        return next(pending)

    return receive


def body_part(body: bytes, more: bool = True) -> Message:
    """Returns the ASGI message of one part of a body."""
    return {"type": "http.request", "body": body, "more_body": more}


async def test_body_in_parts_is_read_into_one_message() -> None:
    start = await read_body_start(receive_function(body_part(b"a"), body_part(b""), body_part(b"b", more=False)))
    assert start == body_part(b"ab", more=False)


async def test_start_of_a_long_body_is_replayed_before_the_rest() -> None:
    long_start = b"a" * (MAX_QUERY_BYTES + 1)
    receive = receive_function(body_part(long_start), body_part(b"b"), body_part(b"c", more=False))
    start = await read_body_start(receive)
    assert start == body_part(long_start)
    receive_all = prepend_message(start, receive)
    assert [(await receive_all())["body"] for _ in range(3)] == [long_start, b"b", b"c"]


async def test_disconnect_while_reading_the_body_raises() -> None:
    with pytest.raises(ClientDisconnect):
        await read_body_start(receive_function(body_part(b"a"), {"type": "http.disconnect"}))

"""What a request asks for, remembered by its bytes: who shares a query, and what is read once more."""

import orjson
import pytest
from starlette.requests import ClientDisconnect
from starlette.types import Message, Receive

from schema.root import build_schema
from server.graphql import coalescible_queries
from server.graphql.coalescible_queries import MAX_QUERY_BYTES, SharedQueries, from_start, may_be_shared, start_of_body
from server.graphql.compiled import CompiledExecutor
from server.graphql.limits import CACHE_BYTES_MAX, DocumentCache, DocumentLimitsExtension

pytestmark = pytest.mark.anyio

SCHEMA = build_schema(DocumentLimitsExtension, executor=CompiledExecutor)
QUERY = 'query p($topic: ID!) { messages(topicId: $topic, latest: "now") { items { text } } }'
ASKED = {"query": QUERY, "variables": {"topic": "t"}, "operationName": "p"}


@pytest.fixture(autouse=True)
def documents(monkeypatch: pytest.MonkeyPatch) -> None:
    """None is known yet."""
    monkeypatch.setattr(DocumentLimitsExtension, "documents", DocumentCache(CACHE_BYTES_MAX))


@pytest.fixture
def known() -> SharedQueries:
    return SharedQueries(SCHEMA._schema)


async def execute(query: str = QUERY) -> None:
    await SCHEMA.execute(query, {"topic": "t"})


async def test_what_was_never_executed_is_not_shared_and_afterwards_it_is(known: SharedQueries) -> None:
    body = orjson.dumps(ASKED)
    assert known.find(b"", body) is None
    await execute()
    found = known.find(b"", body)
    assert found is not None
    assert (found.query, found.variables, found.operation_name) == (QUERY, {"topic": "t"}, "p")
    assert known.find(b"", bytes(bytearray(body))) is found


async def test_it_is_the_same_only_for_the_same_bytes_and_media_type(known: SharedQueries) -> None:
    await execute()
    other = ASKED | {"variables": {"topic": "u"}}
    places = [(b"", ASKED), (b"application/json", ASKED), (b"", other), (b"", {"query": QUERY})]
    found = [known.find(accept, orjson.dumps(asked)) for accept, asked in places]
    assert None not in found
    assert len(set(map(id, found))) == len(places)


async def test_it_stays_shared_when_its_document_is_forgotten(
    known: SharedQueries, monkeypatch: pytest.MonkeyPatch
) -> None:
    await execute()
    found = known.find(b"", orjson.dumps(ASKED))
    monkeypatch.setattr(DocumentLimitsExtension, "documents", DocumentCache(CACHE_BYTES_MAX))
    assert known.find(b"", orjson.dumps(ASKED)) is found is not None


async def test_only_so_many_are_remembered_the_latest_ones(
    known: SharedQueries, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(coalescible_queries, "MAX_REMEMBERED", 2)
    await execute()
    bodies = [orjson.dumps({"query": QUERY, "variables": {"topic": str(number)}}) for number in range(3)]
    found = [known.find(b"", body) for body in (*bodies[:2], bodies[0], bodies[2])]
    assert known.find(b"", bodies[0]) is found[0]
    assert known.find(b"", bodies[1]) is not found[1]


@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b"[]",
        orjson.dumps({"query": "{ viewer { id } }"}),
        orjson.dumps(ASKED | {"variables": {"topic": "t" * MAX_QUERY_BYTES}}),
        orjson.dumps(ASKED | {"extensions": {}}),
        orjson.dumps(ASKED | {"variables": []}),
        orjson.dumps(ASKED | {"operationName": 1}),
    ],
)
async def test_all_else_is_not_shared(known: SharedQueries, body: bytes) -> None:
    await execute()
    await execute("{ viewer { id } }")
    assert known.find(b"", body) is None


@pytest.mark.parametrize(
    ("content_type", "accept", "may"),
    [
        (b"application/json", b"", True),
        (b"application/json; charset=utf-8", b"application/graphql-response+json", True),
        (b"text/plain", b"", False),
        (None, b"", False),
        (b"application/json", b"multipart/mixed", False),
        (b"application/json", b"text/event-stream", False),
    ],
)
def test_other_media_types_are_not_shared(content_type: bytes | None, accept: bytes, may: bool) -> None:
    assert may_be_shared(content_type, accept) is may


def receiving(*messages: Message) -> Receive:
    left = iter(messages)

    async def receive() -> Message:
        return next(left)

    return receive


def part(body: bytes, more: bool = True) -> Message:
    return {"type": "http.request", "body": body, "more_body": more}


async def test_a_body_that_comes_in_parts_is_read_as_one() -> None:
    start = await start_of_body(receiving(part(b"a"), part(b""), part(b"b", more=False)))
    assert start == part(b"ab", more=False)


async def test_of_a_long_body_only_the_start_is_read_and_then_all_of_it_again() -> None:
    long = b"a" * (MAX_QUERY_BYTES + 1)
    receive = receiving(part(long), part(b"b"), part(b"c", more=False))
    start = await start_of_body(receive)
    assert start == part(long)
    again = from_start(start, receive)
    assert [(await again())["body"] for _ in range(3)] == [long, b"b", b"c"]


async def test_a_client_that_is_gone_has_no_body() -> None:
    with pytest.raises(ClientDisconnect):
        await start_of_body(receiving(part(b"a"), {"type": "http.disconnect"}))

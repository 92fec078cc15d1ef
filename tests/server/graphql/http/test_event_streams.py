"""GraphQL over server-sent events: results, refusals, resumption, bounds, and everything that ends a stream."""

import asyncio
import signal
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import orjson
import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.routing import Route

from server.graphql import subscription_limits
from server.graphql.broadcasts import EXECUTIONS
from server.graphql.http import event_streams
from server.graphql.http.event_streams import KEEP_ALIVE, EventStream
from server.graphql.socket_writer import MAX_WAITING_BYTES, MAX_WAITING_EVENTS
from server.transport import http_protocol
from server.transport.bodies import RefusalsAfterBodies
from server.transport.http_protocol import HttpProtocol
from tests.browser_sessions import SESSION_COOKIE
from tests.client import client
from tests.e2e.chat_topic import create_chat_topic
from tests.http_server import http_server
from tests.server.graphql.graphql_server import TOPIC_EVENTS, GraphQLServer
from tests.server.graphql.http.event_stream_client import EVENT_STREAM, RecordedStream, raw_stream, streamed, vanish
from tests.server.graphql.http.test_media_types import URQL
from tests.serving import WebProcess, web_process
from tests.waiting import until

pytestmark = pytest.mark.anyio

WITHOUT_CURSOR = """
    subscription ($topic: ID!) {
      topicEvents(topicId: $topic) { __typename ... on MessagePosted { message { text } } }
    }
"""
IN_FRAGMENT = """
    subscription ($topic: ID!) { ...Events }
    fragment Events on Subscription {
      topicEvents(since: "a cursor of nothing", topicId: $topic) {
        __typename ... on MessagePosted { message { text } }
      }
    }
"""
WRITERS, POSTS, CUTS = 4, 25, 12
VANISHED_S, NOTICED_WITHIN_S = 0.5, 30
SHUTDOWN_DEADLINE_S = 8.0
"""Shorter than the time for which uvicorn waits for requests."""


@pytest.fixture
def _no_traceback_is_logged(web: WebProcess) -> Iterator[None]:
    before = len(web.log_text)
    yield
    assert "Traceback" not in web.log_text[before:]
    assert "ASGI callable" not in web.log_text[before:]


@pytest.fixture
async def url(server: GraphQLServer) -> AsyncIterator[str]:
    """Serves the endpoint over HTTP in this process, and yields the URL. No stream may be left at the end."""
    app = Starlette(routes=[Route("/graphql", server.endpoint)], middleware=[Middleware(RefusalsAfterBodies)])
    async with http_server(app, http=HttpProtocol) as port:
        yield f"http://127.0.0.1:{port}"
        await until(lambda: not event_streams.PROCESS_STREAMS._streams)
        await until(lambda: not server.endpoint.subscriptions.broadcasts)


@asynccontextmanager
async def topic_stream(
    server: GraphQLServer, url: str, query: str = TOPIC_EVENTS, user: str = "ann", **options: Any
) -> AsyncIterator[RecordedStream]:
    """Subscribes to the topic, and waits for StreamReady."""
    values = {"topic": server.scenario.topic.id} | options
    async with streamed(url, server.token(user), query, **values) as stream:
        await until(lambda: stream.events)
        yield stream


async def run(web: WebProcess, query: str, **options: Any) -> tuple[httpx2.Response, str]:
    """Returns the response to an operation, and its whole text."""
    async with streamed(web.url, options.pop("token", None), query, **options) as stream:
        await stream.closes()
        return stream.response, stream.text


@pytest.mark.usefixtures("_no_traceback_is_logged")
async def test_query_is_answered_by_next_and_complete(web: WebProcess) -> None:
    response, text = await run(web, "{ viewer { id } }", token=web.token())
    assert response.status_code == 200
    assert response.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert response.headers["cache-control"] == "no-store"
    assert response.headers["x-accel-buffering"] == "no"
    assert text == 'event: next\ndata: {"data":{"viewer":{"id":"ann"}}}\n\nevent: complete\ndata:\n\n'


@pytest.mark.usefixtures("_no_traceback_is_logged")
async def test_mutation_is_answered_by_next_and_complete(web: WebProcess) -> None:
    mutation = 'mutation { createCommunity(input: {name: "a\\nb"}) { name } }'
    _, text = await run(web, mutation.replace("\\n", " "), token=web.token())
    assert text == ('event: next\ndata: {"data":{"createCommunity":{"name":"a b"}}}\n\nevent: complete\ndata:\n\n')


@pytest.mark.parametrize("accept", [URQL, "*/*", "application/json, text/event-stream"])
async def test_query_of_client_that_prefers_json_gets_json(web: WebProcess, accept: str) -> None:
    response, text = await run(web, "{ __typename }", accept=accept)
    assert "json" in response.headers["content-type"]
    assert orjson.loads(text) == {"data": {"__typename": "Query"}}


@pytest.mark.parametrize(
    "query", ["{", "{ nope }", "subscription { nope }", "query($a: Int!) { __typename @skip(if: $a) }"]
)
async def test_invalid_document_is_reported_by_next(web: WebProcess, query: str) -> None:
    response, text = await run(web, query, token=web.token())
    assert (response.status_code, response.headers["content-type"]) == (200, "text/event-stream; charset=utf-8")
    assert text.startswith('event: next\ndata: {"errors":[')
    assert text.endswith("\n\nevent: complete\ndata:\n\n")


@pytest.mark.usefixtures("_no_traceback_is_logged")
@pytest.mark.parametrize(
    "query", ["{ __typename }", 'subscription { communityEvents(communityId: "1") { __typename } }']
)
@pytest.mark.parametrize(
    ("options", "status", "code"),
    [
        ({"token": "garbage"}, 401, "UNAUTHENTICATED"),
        ({"token": None, "pad": "x" * 1_000_000}, 413, "BAD_USER_INPUT"),
    ],
)
async def test_refusal_before_execution_keeps_status(
    web: WebProcess, query: str, options: dict[str, Any], status: int, code: str
) -> None:
    response, text = await run(web, query, **options)
    assert (response.status_code, response.headers["content-type"]) == (status, "application/json")
    assert orjson.loads(text)["errors"][0]["extensions"]["code"] == code


@pytest.mark.parametrize(
    ("content", "headers", "status"),
    [
        ("{", {}, 400),
        ('{"query": "{ __typename }", "operationName": "Nope"}', {}, 400),
        ('{"query": "{ __typename }"}', {"cookie": f"{SESSION_COOKIE}={'x' * 43}"}, 403),
        ('{"query": "{ __typename }"}', {"authorization": "Basic YTpi"}, 401),
    ],
)
async def test_refused_request_gets_json(web: WebProcess, content: str, headers: dict[str, str], status: int) -> None:
    sent = {"accept": EVENT_STREAM, "content-type": "application/json"} | headers
    async with httpx2.AsyncClient(timeout=60) as http:
        response = await http.post(f"{web.url}/graphql", content=content, headers=sent)
    assert (response.status_code, response.headers["content-type"]) == (status, "application/json")


async def test_subscription_without_event_stream_is_refused(web: WebProcess) -> None:
    query = 'subscription { communityEvents(communityId: "1") { __typename } }'
    response, text = await run(web, query, token=web.token(), accept="application/json")
    assert response.status_code == 400
    assert orjson.loads(text)["errors"][0]["extensions"]["code"] == "BAD_USER_INPUT"


@pytest.mark.usefixtures("_no_traceback_is_logged")
async def test_error_of_subscription_is_reported_by_next(web: WebProcess) -> None:
    query = 'subscription { topicEvents(topicId: "nope") { __typename } }'
    async with streamed(web.url, web.token(), query, accept=URQL) as stream:
        await stream.closes()
    assert (stream.response.status_code, stream.codes, stream.is_complete) == (200, ["NOT_FOUND"], True)


async def test_events_have_their_cursors_as_ids(server: GraphQLServer, url: str) -> None:
    async with topic_stream(server, url) as stream, topic_stream(server, url, WITHOUT_CURSOR) as without_cursor:
        for n in range(3):
            await server.scenario.post(f"message {n}")
        assert await stream.receives(3)
        assert await without_cursor.receives(3)
    assert [event.id for event in stream.events] == [event.value["cursor"] for event in stream.events]
    assert [event.id for event in without_cursor.events] == [event.id for event in stream.events]
    assert stream.texts == without_cursor.texts == ["message 0", "message 1", "message 2"]


async def test_sockets_and_streams_share_one_execution(server: GraphQLServer, url: str) -> None:
    async with AsyncExitStack() as stack:
        streams = [await stack.enter_async_context(topic_stream(server, url)) for _ in range(3)]
        on_socket = await stack.enter_async_context(server.subscribed())
        before = EXECUTIONS._value.get()
        await server.scenario.post("狼煙\n🔥")
        assert await on_socket.receives(1)
        for stream in streams:
            assert await stream.receives(1)
        assert EXECUTIONS._value.get() - before == 1
        assert [stream.values for stream in streams] == [on_socket.events] * 3


@pytest.mark.parametrize("query", [TOPIC_EVENTS, WITHOUT_CURSOR, IN_FRAGMENT], ids=["variable", "none", "fragment"])
async def test_last_event_id_takes_place_of_since(server: GraphQLServer, url: str, query: str) -> None:
    epoch = await server.epoch()
    for n in range(4):
        await server.scenario.post(f"message {n}")
    since = {"since": server.cursor(0, epoch)} if query is TOPIC_EVENTS else {}
    async with topic_stream(server, url, query, last_event_id=server.cursor(2, epoch), **since) as stream:
        assert await stream.receives(2)
        await server.scenario.post("live")
        assert await stream.receives(3)
    assert stream.events[0].id == server.cursor(2, epoch)
    assert stream.texts == ["message 2", "message 3", "live"]


async def test_wrong_last_event_id_is_refused_like_since(server: GraphQLServer, url: str) -> None:
    async with topic_stream(server, url, last_event_id="no cursor") as stream:
        await stream.closes()
    (event, _) = stream.events
    assert event.result["errors"][0]["extensions"]["field"] == "since"
    assert stream.is_complete


async def test_last_event_id_without_since_is_ignored(server: GraphQLServer, url: str) -> None:
    query = "subscription ($topic: ID!) { typingEvents(topicId: $topic) { __typename } }"
    async with topic_stream(server, url, query, last_event_id="no cursor") as stream:
        assert stream.events[0].value == {"__typename": "StreamReady"}


async def test_cut_reader_receives_each_event_once_in_order(server: GraphQLServer, url: str) -> None:
    """Several people write while the reader's connection is cut again and again."""
    received: list[str] = []
    last_event_id: str | None = server.cursor(0, await server.epoch())

    async def write(writer: int) -> None:
        for n in range(POSTS):
            await server.scenario.post(f"{writer} {n}")

    writing = asyncio.gather(*(write(writer) for writer in range(WRITERS)))
    for cut in range(1, CUTS + 1):
        async with topic_stream(server, url, WITHOUT_CURSOR, last_event_id=last_event_id) as stream:
            await until(lambda: len(received) + len(stream.texts) >= cut * WRITERS * POSTS // CUTS)  # noqa: B023
        received += stream.texts
        last_event_id = stream.events[-1].id
    await writing
    assert len(received) >= WRITERS * POSTS
    assert received == [message["text"] for message in await server.scenario.messages()]


async def test_keep_alive_comment_follows_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = EventStream()
    monkeypatch.setattr(event_streams, "KEEP_ALIVE_S", 0.01)
    assert await stream.next_chunk() == KEEP_ALIVE
    stream.write_events(b"event", 1)
    assert await stream.next_chunk() == b"event"
    assert await stream.next_chunk() == KEEP_ALIVE


@pytest.mark.parametrize(("size", "count"), [(1, MAX_WAITING_EVENTS), (MAX_WAITING_BYTES // 2 + 1, 2)])
async def test_stream_is_cut_if_too_much_waits(size: int, count: int) -> None:
    stream = EventStream()
    for _ in range(count):
        stream.write_events(b"x" * size, 1)
    assert len(await stream.next_chunk() or b"") == size * count
    for _ in range(count + 1):
        stream.write_events(b"x" * size, 1)
    stream.write_events(b"after the end", 1)
    assert await stream.next_chunk() is None


async def test_caller_waits_for_room_until_chunk_is_sent() -> None:
    stream = EventStream()
    stream.write_events(b"event", 1)
    waiting = asyncio.create_task(stream.wait_for_room())
    assert await stream.next_chunk() == b"event"
    await asyncio.sleep(0)
    assert not waiting.done()
    sent = asyncio.create_task(stream.next_chunk())
    await waiting
    stream.complete()
    assert await sent == b"event: complete\ndata:\n\n"


async def test_disconnect_frees_subscription(server: GraphQLServer, url: str) -> None:
    async with topic_stream(server, url):
        assert len(server.listeners) == 1
    await until(lambda: not server.listeners)


async def test_person_with_stream_is_online(server: GraphQLServer, url: str) -> None:
    sockets = server.stores.online._sockets
    async with topic_stream(server, url):
        assert sockets[server.scenario.organization_id, "ann"] == 1
    await until(lambda: not sockets[server.scenario.organization_id, "ann"])


async def test_slow_reader_is_cut_and_frees_subscription(server: GraphQLServer, url: str) -> None:
    async with raw_stream(url, server.token("ann"), TOPIC_EVENTS, topic=server.scenario.topic.id) as raw:
        await until(lambda: [each for each in server.listeners if each.is_live])
        (listener,) = server.listeners
        text = "x" * 2_000
        while server.listeners:
            # Bytes of one event a thousand times, which are as many as a busy topic has in an hour.
            listener.connection.write_events(b"event: next\ndata: " + text.encode() * 50 + b"\n\n", 1)
            await asyncio.sleep(0.001)
        assert await asyncio.get_running_loop().sock_recv(raw, 100)


@pytest.mark.skipif(not hasattr(socket, "TCP_USER_TIMEOUT"), reason="Only Linux has a limit of this time.")
async def test_vanished_client_is_noticed_by_comments(
    server: GraphQLServer, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_protocol, "UNACKNOWLEDGED_S", VANISHED_S)
    monkeypatch.setattr(event_streams, "KEEP_ALIVE_S", VANISHED_S / 10)
    sockets = server.stores.online._sockets
    async with raw_stream(url, server.token("ann"), TOPIC_EVENTS, topic=server.scenario.topic.id) as raw:
        received = b""
        # A client that is silent and takes the comments stays.
        while received.count(KEEP_ALIVE) < 20:
            received += await asyncio.get_running_loop().sock_recv(raw, 65_536)
        assert sockets[server.scenario.organization_id, "ann"] == 1
        vanish(raw)
        await until(lambda: not server.listeners, NOTICED_WITHIN_S)
        await until(lambda: not sockets[server.scenario.organization_id, "ann"])


async def test_limit_of_subscriptions_counts_streams(
    server: GraphQLServer, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subscription_limits, "MAX_SHARED", 2)
    async with AsyncExitStack() as stack:
        for n in range(2):
            query = TOPIC_EVENTS.replace("timestamp text", f"timestamp text variant{n}: text")
            await stack.enter_async_context(topic_stream(server, url, query))
        async with streamed(url, server.token("ann"), TOPIC_EVENTS, topic=server.scenario.topic.id) as refused:
            await refused.closes()
        assert (refused.response.status_code, refused.response.headers["retry-after"]) == (429, "1")
        assert orjson.loads(refused.text)["errors"][0]["extensions"]["code"] == "RATE_LIMITED"


async def test_lost_permission_ends_stream_with_error_and_complete(server: GraphQLServer, url: str) -> None:
    async with topic_stream(server, url) as stream:
        await server.scenario.hand_over_and_leave()
        await stream.closes()
    assert (stream.codes, stream.is_complete) == (["FORBIDDEN"], True)


@pytest.mark.usefixtures("_no_traceback_is_logged")
async def test_expired_token_ends_stream_without_complete(web: WebProcess) -> None:
    async with client(web.url, web.token()) as ann:
        chat = await create_chat_topic(ann)
    async with streamed(web.url, web.token(ttl_s=4), WITHOUT_CURSOR, topic=chat.topic) as stream:
        await stream.closes()
        assert [event.type for event in stream.events] == ["next"]


@pytest.mark.usefixtures("_no_traceback_is_logged")
async def test_changed_roles_end_stream_without_complete(web: WebProcess) -> None:
    operator, admin = web.token("olga", roles=("OPERATOR",)), web.token("ada", roles=("ADMIN",))
    change = 'mutation { setUserRoles(userId: "olga", roles: [MEMBER]) { id } }'
    async with client(web.url, admin) as ada, client(web.url, operator) as olga:
        chat = await create_chat_topic(olga)
        async with streamed(web.url, operator, WITHOUT_CURSOR, topic=chat.topic) as stream:
            await until(lambda: stream.events)
            await ada.run(change)
            await stream.closes()
            assert [event.type for event in stream.events] == ["next"]


async def test_shutdown_ends_streams_without_delay(
    tmp_path: Path, mongodb_uri: str, redis_url: str, database: str
) -> None:
    with web_process(tmp_path, mongodb_uri, redis_url, database=database) as web:
        async with client(web.url, web.token()) as ann, AsyncExitStack() as stack:
            chat = await create_chat_topic(ann)
            streams = [
                await stack.enter_async_context(streamed(web.url, web.token(), WITHOUT_CURSOR, topic=chat.topic))
                for _ in range(5)
            ]
            await until(lambda: all(stream.events for stream in streams))
            web.process.send_signal(signal.SIGTERM)
            async with asyncio.timeout(SHUTDOWN_DEADLINE_S):
                for stream in streams:
                    await stream.closes()
                    assert not stream.is_complete
            assert web.process.wait(30) in (0, -signal.SIGTERM)
        assert "Traceback" not in web.log_text
        assert "timeout graceful shutdown exceeded" not in web.log_text

"""The protocol graphql-transport-ws on real sockets: a test for each rule of the protocol."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any

import orjson
import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import InvalidStatus
from websockets.typing import Origin, Subprotocol

from tests.client import Client, client
from tests.server.graphql.graphql_server import GraphQLServer
from tests.serving import ORIGIN, WebProcess

PROTOCOL = "graphql-transport-ws"
DEADLINE_S = 30
MAX_REASON_BYTES = 123

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def _no_traceback_is_logged(web: WebProcess) -> Iterator[None]:
    before = len(web.log_text)
    yield
    assert "Traceback" not in web.log_text[before:]


@asynccontextmanager
async def open_socket(
    web: WebProcess, *frames: Any, protocol: str = PROTOCOL, origin: str | None = None, **headers: str
) -> AsyncIterator[ClientConnection]:
    """Opens a socket and sends the frames: text and bytes unchanged, other values as JSON."""
    async with connect(
        f"{web.url.replace('http', 'ws')}/graphql",
        subprotocols=[Subprotocol(protocol)],
        origin=None if origin is None else Origin(origin),
        additional_headers=headers,
        compression=None,
        max_queue=None,
    ) as ws:
        await send(ws, *frames)
        yield ws


async def send(ws: ClientConnection, *frames: Any) -> None:
    for frame in frames:
        await ws.send(frame if isinstance(frame, str | bytes) else orjson.dumps(frame).decode())


async def receive(ws: ClientConnection) -> dict[str, Any]:
    async with asyncio.timeout(DEADLINE_S):
        frame: dict[str, Any] = orjson.loads(await ws.recv())
        return frame


async def close_code(ws: ClientConnection) -> int:
    """Waits for the server to close the socket, and returns the close code. Earlier messages are ignored."""
    async with asyncio.timeout(DEADLINE_S):
        await ws.wait_closed()
    assert ws.close_code is not None
    assert len((ws.close_reason or "").encode()) <= MAX_REASON_BYTES
    return ws.close_code


def init(web: WebProcess, token: str | None = None) -> dict[str, Any]:
    return {"type": "connection_init", "payload": {"authorization": f"Bearer {token or web.token()}"}}


def subscribe(id_: str, query: str = "{ __typename }", **payload: Any) -> dict[str, Any]:
    return {"id": id_, "type": "subscribe", "payload": {"query": query, **payload}}


async def receive_ack(ws: ClientConnection) -> None:
    assert await receive(ws) == {"type": "connection_ack"}


async def test_init_with_token_is_acknowledged(web: WebProcess) -> None:
    async with open_socket(web, init(web)) as ws:
        assert ws.subprotocol == PROTOCOL
        await receive_ack(ws)


async def test_token_in_handshake_header_is_accepted(web: WebProcess) -> None:
    async with open_socket(web, {"type": "connection_init"}, authorization=f"Bearer {web.token()}") as ws:
        await receive_ack(ws)


async def test_names_in_init_payload_are_case_insensitive(web: WebProcess) -> None:
    payload = {"Authorization": f"Bearer {web.token()}"}
    async with open_socket(web, {"type": "connection_init", "payload": payload}) as ws:
        await receive_ack(ws)


@pytest.mark.parametrize(
    "payload", [None, {}, {"authorization": None}, {"authorization": 5}, {"authorization": "Bearer garbage"}]
)
async def test_init_without_valid_token_closes_with_4401(web: WebProcess, payload: Any) -> None:
    async with open_socket(web, {"type": "connection_init", "payload": payload}) as ws:
        assert await close_code(ws) == 4401


async def test_init_with_expired_token_closes_with_4403(web: WebProcess) -> None:
    async with open_socket(web, init(web, web.token(ttl_s=-1))) as ws:
        assert await close_code(ws) == 4403


async def test_expiring_token_closes_socket_with_4403_on_time(web: WebProcess) -> None:
    expires_at = time.time() + 5
    async with open_socket(web, init(web, web.token(ttl_s=5))) as ws:
        await receive_ack(ws)
        assert await close_code(ws) == 4403
    assert -0.1 < time.time() - expires_at < 15


async def test_subscribe_before_ack_closes_with_4401(web: WebProcess) -> None:
    async with open_socket(web, subscribe("1")) as ws:
        assert await close_code(ws) == 4401


async def test_second_init_closes_with_4429(web: WebProcess) -> None:
    async with open_socket(web, init(web), init(web)) as ws:
        assert await close_code(ws) == 4429


async def test_no_init_within_5_seconds_closes_with_4408(web: WebProcess) -> None:
    started_at = time.monotonic()
    async with open_socket(web, {"type": "ping"}) as ws:
        assert await close_code(ws) == 4408
    assert 4.5 < time.monotonic() - started_at < 20


async def test_id_in_use_closes_with_4409(web: WebProcess) -> None:
    async with community_socket(web) as (ws, query, _):
        await send(ws, subscribe("狼" * 60, query), subscribe("狼" * 60))
        assert await close_code(ws) == 4409


async def test_legacy_subprotocol_closes_with_4406(web: WebProcess) -> None:
    """Browsers tell nobody a close code if the server chose no sub-protocol that they offered."""
    async with open_socket(web, protocol="graphql-ws") as ws:
        assert ws.subprotocol == "graphql-ws"
        assert await close_code(ws) == 4406


@pytest.mark.parametrize("is_acknowledged", [False, True], ids=["before the ack", "after the ack"])
@pytest.mark.parametrize(
    "frame",
    [
        b"{}",
        "",
        "{",
        "[1,2]",
        "5",
        "null",
        '"ping"',
        "{}",
        {"type": 5},
        {"type": None},
        {"type": "nope"},
        {"type": "狼煙" * 100},
        {"type": "start", "id": "1", "payload": {"query": "{ __typename }"}},
        {"type": "connection_ack"},
        {"type": "next", "id": "1", "payload": {}},
        {"type": "connection_init", "payload": 5},
        {"type": "connection_init", "payload": []},
        {"type": "ping", "payload": "x"},
        {"type": "pong", "payload": []},
        {"type": "complete"},
        {"type": "complete", "id": 5},
        {"type": "subscribe", "id": "1"},
        {"type": "subscribe", "id": "1", "payload": None},
        {"type": "subscribe", "id": "1", "payload": {}},
        {"type": "subscribe", "payload": {"query": "{ __typename }"}},
        {"type": "subscribe", "id": "", "payload": {"query": "{ __typename }"}},
        {"type": "subscribe", "id": 1, "payload": {"query": "{ __typename }"}},
        subscribe("1", 5),  # type: ignore[arg-type]
        subscribe("1", variables=[]),
        subscribe("1", extensions=5),
        subscribe("1", operationName=5),
    ],
    ids=lambda frame: str(frame)[:60],
)
async def test_frame_that_is_no_protocol_message_closes_with_4400(
    web: WebProcess, frame: Any, is_acknowledged: bool
) -> None:
    async with open_socket(web, *([init(web)] if is_acknowledged else []), frame) as ws:
        assert await close_code(ws) == 4400


async def test_foreign_origin_is_refused_in_handshake(web: WebProcess) -> None:
    for origin in ("https://evil.example.org", "null", f"{ORIGIN}.evil.org"):
        with pytest.raises(InvalidStatus) as error:
            async with open_socket(web, origin=origin):
                pass
        assert error.value.response.status_code == 403


async def test_allowed_origin_own_origin_and_no_origin_are_accepted(web: WebProcess) -> None:
    for origin in (ORIGIN, web.url, None):
        async with open_socket(web, init(web), origin=origin) as ws:
            await receive_ack(ws)


async def test_ping_is_answered_by_pong_before_and_after_init(web: WebProcess) -> None:
    async with open_socket(web, {"type": "ping"}) as ws:
        assert await receive(ws) == {"type": "pong"}
        await send(ws, {"type": "pong"}, init(web), {"type": "ping", "payload": {"a": 1}}, {"type": "pong"})
        await receive_ack(ws)
        assert await receive(ws) == {"type": "pong"}


async def test_query_and_mutation_get_one_next_and_one_complete(web: WebProcess) -> None:
    create = 'mutation { createCommunity(input: {name: "hills"}) { name } }'
    async with open_socket(web, init(web)) as ws:
        await receive_ack(ws)
        for query, data in [
            ("{ viewer { id } }", {"viewer": {"id": "ann"}}),
            (create, {"createCommunity": {"name": "hills"}}),
        ]:
            await send(ws, subscribe("1", query))
            assert await receive(ws) == {"id": "1", "type": "next", "payload": {"data": data}}
            assert await receive(ws) == {"id": "1", "type": "complete"}


async def test_variables_and_operation_name_are_applied(web: WebProcess) -> None:
    query = "query A { __typename } query B($with: Boolean!) { viewer { id @include(if: $with) handle } }"
    async with open_socket(web, init(web)) as ws:
        await receive_ack(ws)
        await send(ws, subscribe("1", query, operationName="B", variables={"with": False}))
        assert (await receive(ws))["payload"] == {"data": {"viewer": {"handle": "ann"}}}


@pytest.mark.parametrize(
    ("payload", "code"),
    [
        ({"query": "{"}, "GRAPHQL_PARSE_FAILED"),
        ({"query": "{ nope }"}, "GRAPHQL_VALIDATION_FAILED"),
        ({"query": " " * 60_000}, "GRAPHQL_PARSE_FAILED"),
        ({"query": ""}, "GRAPHQL_PARSE_FAILED"),
        ({"query": "{ __typename }", "operationName": "Nope"}, "BAD_USER_INPUT"),
        ({"query": "subscription($id: ID!) { communityEvents(communityId: $id) { __typename } }"}, "BAD_USER_INPUT"),
        ({"query": 'subscription { communityEvents(communityId: "x") { __typename } }'}, "NOT_FOUND"),
        ({"query": 'subscription { topicEvents(topicId: "x", since: "x") { __typename } }'}, "NOT_FOUND"),
    ],
)
async def test_error_ends_operation_without_complete(web: WebProcess, payload: Any, code: str) -> None:
    async with open_socket(web, init(web)) as ws:
        await receive_ack(ws)
        await send(ws, {"id": "1", "type": "subscribe", "payload": payload})
        frame = await receive(ws)
        assert (frame["type"], frame["id"]) == ("error", "1")
        assert frame["payload"][0]["extensions"]["code"] == code
        await send(ws, {"type": "ping"}, subscribe("1"))
        assert await receive(ws) == {"type": "pong"}
        assert (await receive(ws))["type"] == "next"


async def test_complete_ends_a_subscription_and_frees_its_id(web: WebProcess) -> None:
    async with community_socket(web) as (ws, query, emit_event):
        for _ in range(3):
            await send(ws, subscribe("1", query))
            assert await receive_event_type(ws) == "StreamReady"
            await send(ws, {"id": "1", "type": "complete"})
        await send(ws, subscribe("2", query))
        assert (await receive(ws))["id"] == "2"
        await emit_event()
        assert (await receive(ws))["id"] == "2"


async def test_complete_with_unknown_id_is_ignored(web: WebProcess) -> None:
    async with open_socket(web, init(web), {"id": "nope", "type": "complete"}, {"type": "ping"}) as ws:
        await receive_ack(ws)
        assert await receive(ws) == {"type": "pong"}


async def test_several_subscriptions_run_concurrently(web: WebProcess) -> None:
    async with community_socket(web) as (ws, query, emit_event):
        await send(ws, subscribe("a", query), subscribe("b", query))
        assert {(await receive(ws))["id"] for _ in range(2)} == {"a", "b"}
        await emit_event()
        assert {(await receive(ws))["id"] for _ in range(2)} == {"a", "b"}


async def test_51st_operation_is_refused_and_others_continue(web: WebProcess) -> None:
    async with community_socket(web) as (ws, query, emit_event):
        await send(ws, *(subscribe(f"{n}", query) for n in range(51)))
        frames = [await receive(ws) for _ in range(51)]
        (error_frame,) = (frame for frame in frames if frame["type"] == "error")
        assert error_frame["id"] == "50"
        assert error_frame["payload"][0]["extensions"] == {"code": "RATE_LIMITED", "retryAfterMs": 1000}
        assert "50" in error_frame["payload"][0]["message"]
        await emit_event()
        assert {(await receive(ws))["id"] for _ in range(50)} == {f"{n}" for n in range(50)}
        await send(ws, {"id": "7", "type": "complete"}, subscribe("new", query))
        assert (await receive(ws))["id"] == "new"


async def test_frame_over_64_kib_closes_only_its_socket(web: WebProcess) -> None:
    async with open_socket(web, init(web)) as other, open_socket(web, init(web)) as ws:
        await receive_ack(other)
        await receive_ack(ws)
        empty_bytes = len(orjson.dumps(subscribe("1", "{ __typename }", extensions={"pad": ""})))
        await send(ws, subscribe("1", extensions={"pad": "x" * (65_536 - empty_bytes)}))
        assert (await receive(ws))["type"] == "next"
        assert (await receive(ws))["type"] == "complete"
        await send(ws, subscribe("1", extensions={"pad": "x" * (65_537 - empty_bytes)}))
        assert await close_code(ws) == 1009
        await send(other, {"type": "ping"})
        assert await receive(other) == {"type": "pong"}


async def test_aborted_socket_leaves_no_subscription(web: WebProcess) -> None:
    async with client(web.url, web.token()) as api:
        before = await subscribers(api)
        async with community_socket(web) as (ws, query, _):
            await send(ws, subscribe("1", query))
            assert await receive_event_type(ws) == "StreamReady"
            # One subscription to the community's events, and one to the removals of its members.
            assert await subscribers(api) == before + 2
            ws.transport.abort()
        async with asyncio.timeout(DEADLINE_S):
            while await subscribers(api) != before:
                await asyncio.sleep(0.05)


async def subscribers(api: Client) -> float:
    """Returns the number of subscriptions that the process reports."""
    text = (await api.http.get(f"{api.url}/metrics")).text
    (line,) = (line for line in text.splitlines() if line.startswith("noroshi_hub_subscribers "))
    return float(line.split()[1])


async def receive_event_type(ws: ClientConnection) -> str:
    frame = await receive(ws)
    assert frame["type"] == "next", frame
    (event,) = frame["payload"]["data"].values()
    return str(event["__typename"])


@asynccontextmanager
async def community_socket(
    web: WebProcess,
) -> AsyncIterator[tuple[ClientConnection, str, Callable[[], Awaitable[None]]]]:
    """Yields an acknowledged socket, a subscription to a new community's events, and a function that emits an event."""
    async with client(web.url, web.token()) as api, open_socket(web, init(web)) as ws:
        await receive_ack(ws)
        community = await api.run('mutation { createCommunity(input: {name: "hills"}) { id } }')
        id_ = community["createCommunity"]["id"]

        async def emit_event() -> None:
            await api.run(f'mutation {{ createTopic(input: {{communityId: "{id_}", title: "t"}}) {{ id }} }}')

        yield ws, f'subscription {{ communityEvents(communityId: "{id_}") {{ __typename }} }}', emit_event


async def test_token_beyond_longest_timer_keeps_socket(server: GraphQLServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("server.graphql.session_watch.MAX_TIMER_S", 0.05)
    async with server.subscribed() as subscription:
        for _ in range(5):
            await asyncio.sleep(0.1)
        await server.scenario.post("still here")
        assert await subscription.receives(1)
        assert subscription.closing_error is None

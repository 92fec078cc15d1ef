"""graphql-transport-ws, sentence by sentence, on raw sockets."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import orjson
import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import InvalidStatus
from websockets.typing import Origin, Subprotocol

from tests.client import Client, client
from tests.server.graphql.listeners import House
from tests.serving import ORIGIN, Web, serving

PROTOCOL = "graphql-transport-ws"
PATIENCE_S = 30
MAX_REASON_BYTES = 123

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory, mongodb_uri: str, redis_url: str) -> Iterator[Web]:
    with serving(tmp_path_factory.mktemp("web"), mongodb_uri, redis_url) as web:
        yield web


@pytest.fixture(autouse=True)
def _nothing_unexpected_is_logged(web: Web) -> Iterator[None]:
    before = len(web.errors)
    yield
    assert "Traceback" not in web.errors[before:]


@asynccontextmanager
async def opened(
    web: Web, *frames: Any, protocol: str = PROTOCOL, origin: str | None = None, **headers: str
) -> AsyncIterator[ClientConnection]:
    """A socket on which these frames were sent: text and bytes as they are, everything else as JSON."""
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
    async with asyncio.timeout(PATIENCE_S):
        frame: dict[str, Any] = orjson.loads(await ws.recv())
        return frame


async def closing(ws: ClientConnection) -> int:
    """The code that the server closes with; whatever it says before is passed over."""
    async with asyncio.timeout(PATIENCE_S):
        await ws.wait_closed()
    assert ws.close_code is not None
    assert len((ws.close_reason or "").encode()) <= MAX_REASON_BYTES
    return ws.close_code


def init(web: Web, token: str | None = None) -> dict[str, Any]:
    return {"type": "connection_init", "payload": {"authorization": f"Bearer {token or web.token()}"}}


def subscribe(id_: str, query: str = "{ __typename }", **payload: Any) -> dict[str, Any]:
    return {"id": id_, "type": "subscribe", "payload": {"query": query, **payload}}


async def acknowledged(ws: ClientConnection) -> None:
    assert await receive(ws) == {"type": "connection_ack"}


async def test_an_init_with_a_token_is_acknowledged(web: Web) -> None:
    async with opened(web, init(web)) as ws:
        assert ws.subprotocol == PROTOCOL
        await acknowledged(ws)


async def test_the_token_may_stand_in_the_handshake(web: Web) -> None:
    async with opened(web, {"type": "connection_init"}, authorization=f"Bearer {web.token()}") as ws:
        await acknowledged(ws)


async def test_the_payloads_names_are_read_in_any_case(web: Web) -> None:
    payload = {"Authorization": f"Bearer {web.token()}"}
    async with opened(web, {"type": "connection_init", "payload": payload}) as ws:
        await acknowledged(ws)


@pytest.mark.parametrize(
    "payload", [None, {}, {"authorization": None}, {"authorization": 5}, {"authorization": "Bearer garbage"}]
)
async def test_init_without_valid_token_closes_with_4401(web: Web, payload: Any) -> None:
    async with opened(web, {"type": "connection_init", "payload": payload}) as ws:
        assert await closing(ws) == 4401


async def test_an_init_with_an_expired_token_is_4403(web: Web) -> None:
    async with opened(web, init(web, web.token(ttl_s=-1))) as ws:
        assert await closing(ws) == 4403


async def test_a_token_that_expires_later_is_4403_at_its_moment(web: Web) -> None:
    expires_at = time.time() + 5
    async with opened(web, init(web, web.token(ttl_s=5))) as ws:
        await acknowledged(ws)
        assert await closing(ws) == 4403
    assert -0.1 < time.time() - expires_at < 15


async def test_a_subscribe_before_the_ack_is_4401(web: Web) -> None:
    async with opened(web, subscribe("1")) as ws:
        assert await closing(ws) == 4401


async def test_a_second_init_is_4429(web: Web) -> None:
    async with opened(web, init(web), init(web)) as ws:
        assert await closing(ws) == 4429


async def test_no_init_within_5_seconds_is_4408(web: Web) -> None:
    began = time.monotonic()
    async with opened(web, {"type": "ping"}) as ws:
        assert await closing(ws) == 4408
    assert 4.5 < time.monotonic() - began < 20


async def test_an_id_in_use_is_4409(web: Web) -> None:
    async with listening(web) as (ws, query, _):
        await send(ws, subscribe("狼" * 60, query), subscribe("狼" * 60))
        assert await closing(ws) == 4409


async def test_the_legacy_sub_protocol_is_4406(web: Web) -> None:
    async with opened(web, protocol="graphql-ws") as ws:
        assert ws.subprotocol is None
        assert await closing(ws) == 4406


@pytest.mark.parametrize("acknowledge", [False, True], ids=["before the ack", "after the ack"])
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
async def test_a_frame_that_is_no_message_of_the_protocol_is_4400(web: Web, frame: Any, acknowledge: bool) -> None:
    async with opened(web, *([init(web)] if acknowledge else []), frame) as ws:
        assert await closing(ws) == 4400


async def test_a_foreign_origin_is_refused_before_anything_else(web: Web) -> None:
    for origin in ("https://evil.example.org", "null", f"{ORIGIN}.evil.org"):
        with pytest.raises(InvalidStatus) as refused:
            async with opened(web, origin=origin):
                pass
        assert refused.value.response.status_code == 403


async def test_allowed_origins_our_own_and_none_are_accepted(web: Web) -> None:
    for origin in (ORIGIN, web.url, None):
        async with opened(web, init(web), origin=origin) as ws:
            await acknowledged(ws)


async def test_a_ping_is_answered_by_a_pong_at_any_time(web: Web) -> None:
    async with opened(web, {"type": "ping"}) as ws:
        assert await receive(ws) == {"type": "pong"}
        await send(ws, {"type": "pong"}, init(web), {"type": "ping", "payload": {"a": 1}}, {"type": "pong"})
        await acknowledged(ws)
        assert await receive(ws) == {"type": "pong"}


async def test_queries_and_mutations_are_one_next_and_a_complete(web: Web) -> None:
    create = 'mutation { createCommunity(input: {name: "hills"}) { name } }'
    async with opened(web, init(web)) as ws:
        await acknowledged(ws)
        for query, data in [
            ("{ viewer { id } }", {"viewer": {"id": "ann"}}),
            (create, {"createCommunity": {"name": "hills"}}),
        ]:
            await send(ws, subscribe("1", query))
            assert await receive(ws) == {"id": "1", "type": "next", "payload": {"data": data}}
            assert await receive(ws) == {"id": "1", "type": "complete"}


async def test_variables_and_the_operations_name_count(web: Web) -> None:
    query = "query A { __typename } query B($with: Boolean!) { viewer { id @include(if: $with) handle } }"
    async with opened(web, init(web)) as ws:
        await acknowledged(ws)
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
async def test_error_ends_operation_without_complete(web: Web, payload: Any, code: str) -> None:
    async with opened(web, init(web)) as ws:
        await acknowledged(ws)
        await send(ws, {"id": "1", "type": "subscribe", "payload": payload})
        frame = await receive(ws)
        assert (frame["type"], frame["id"]) == ("error", "1")
        assert frame["payload"][0]["extensions"]["code"] == code
        await send(ws, {"type": "ping"}, subscribe("1"))
        assert await receive(ws) == {"type": "pong"}
        assert (await receive(ws))["type"] == "next"


async def test_complete_ends_a_subscription_and_frees_its_id(web: Web) -> None:
    async with listening(web) as (ws, query, create):
        for _ in range(3):
            await send(ws, subscribe("1", query))
            assert await event_type(ws) == "StreamReady"
            await send(ws, {"id": "1", "type": "complete"})
        await send(ws, subscribe("2", query))
        assert (await receive(ws))["id"] == "2"
        await create()
        assert (await receive(ws))["id"] == "2"


async def test_a_complete_for_nothing_is_passed_over(web: Web) -> None:
    async with opened(web, init(web), {"id": "nope", "type": "complete"}, {"type": "ping"}) as ws:
        await acknowledged(ws)
        assert await receive(ws) == {"type": "pong"}


async def test_several_subscriptions_run_side_by_side(web: Web) -> None:
    async with listening(web) as (ws, query, create):
        await send(ws, subscribe("a", query), subscribe("b", query))
        assert {(await receive(ws))["id"] for _ in range(2)} == {"a", "b"}
        await create()
        assert {(await receive(ws))["id"] for _ in range(2)} == {"a", "b"}


async def test_the_51st_operation_is_refused_and_the_others_go_on(web: Web) -> None:
    async with listening(web) as (ws, query, create):
        await send(ws, *(subscribe(f"{n}", query) for n in range(51)))
        frames = [await receive(ws) for _ in range(51)]
        (refused,) = (frame for frame in frames if frame["type"] == "error")
        assert refused["id"] == "50"
        assert refused["payload"][0]["extensions"] == {"code": "RATE_LIMITED", "retryAfterMs": 1000}
        assert "50" in refused["payload"][0]["message"]
        await create()
        assert {(await receive(ws))["id"] for _ in range(50)} == {f"{n}" for n in range(50)}
        await send(ws, {"id": "7", "type": "complete"}, subscribe("new", query))
        assert (await receive(ws))["id"] == "new"


async def test_a_frame_over_64_kilobytes_closes_its_socket_alone(web: Web) -> None:
    async with opened(web, init(web)) as other, opened(web, init(web)) as ws:
        await acknowledged(other)
        await acknowledged(ws)
        empty = len(orjson.dumps(subscribe("1", "{ __typename }", extensions={"pad": ""})))
        await send(ws, subscribe("1", extensions={"pad": "x" * (65_536 - empty)}))
        assert (await receive(ws))["type"] == "next"
        assert (await receive(ws))["type"] == "complete"
        await send(ws, subscribe("1", extensions={"pad": "x" * (65_537 - empty)}))
        assert await closing(ws) == 1009
        await send(other, {"type": "ping"})
        assert await receive(other) == {"type": "pong"}


async def test_a_socket_that_is_cut_off_leaves_nothing_behind(web: Web) -> None:
    async with client(web.url, web.token()) as api:
        before = await subscribers(api)
        async with listening(web) as (ws, query, _):
            await send(ws, subscribe("1", query))
            assert await event_type(ws) == "StreamReady"
            assert await subscribers(api) == before + 1
            ws.transport.abort()
        async with asyncio.timeout(PATIENCE_S):
            while await subscribers(api) != before:
                await asyncio.sleep(0.05)


async def subscribers(api: Client) -> float:
    """Returns the number of subscriptions that the process reports."""
    text = (await api.http.get(f"{api.url}/metrics")).text
    (line,) = (line for line in text.splitlines() if line.startswith("noroshi_hub_subscribers "))
    return float(line.split()[1])


async def event_type(ws: ClientConnection) -> str:
    frame = await receive(ws)
    assert frame["type"] == "next", frame
    (event,) = frame["payload"]["data"].values()
    return str(event["__typename"])


@asynccontextmanager
async def listening(web: Web) -> AsyncIterator[tuple[ClientConnection, str, Any]]:
    """An acknowledged socket, a subscription to a new community, and what makes an event there."""
    async with client(web.url, web.token()) as api, opened(web, init(web)) as ws:
        await acknowledged(ws)
        created = await api.run('mutation { createCommunity(input: {name: "hills"}) { id } }')
        id_ = created["createCommunity"]["id"]

        async def create() -> None:
            await api.run(f'mutation {{ createTopic(input: {{communityId: "{id_}", title: "t"}}) {{ id }} }}')

        yield ws, f'subscription {{ communityEvents(communityId: "{id_}") {{ __typename }} }}', create


@pytest.mark.anyio
async def test_token_beyond_longest_timer_keeps_socket(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("server.graphql.websocket.MAX_TIMER_S", 0.05)
    async with house.hears() as heard:
        for _ in range(5):
            await asyncio.sleep(0.1)
        await house.place.post("still here")
        assert await heard.has(1)
        assert heard.ended is None

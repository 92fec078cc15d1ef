"""The product behind nginx and Caddy at another address: who its clients are, sockets, large bodies, other hosts."""

import asyncio
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import httpx2
import orjson
import pytest
from websockets.asyncio.client import ClientConnection
from websockets.exceptions import InvalidStatus
from websockets.frames import Frame, Opcode

from server.transport.bodies import MAX_LIST_BODY_BYTES
from server.web import PING_EVERY_S
from storage.identity.audit import Actor
from storage.identity.roles import Role
from storage.ids import new_id
from storage.stores import Stores, open_stores
from tests.browser_sessions import CLIENT, SESSION_COOKIE, begin_session, session_headers
from tests.client import Client, SubscriptionSocket
from tests.e2e.chat_topic import create_chat_topic
from tests.e2e.proxies import DEPLOY, PROXY_ADDRESS, Proxy, caddy, nginx
from tests.http_errors import error_of
from tests.server.graphql.http.event_stream_client import recorded
from tests.serving import WebProcess, web_process
from tests.storage.identity.accounts.conftest import PASSWORD, new_invitation
from tests.waiting import until

pytestmark = pytest.mark.anyio

ORG = "main"
PUBLIC_URL = "https://chat.example.org:8443"
ANN, BOB = "127.0.0.3", "127.0.0.4"
"""Addresses of two clients."""
FORGED = {"x_forwarded_for": "198.51.100.1", "forwarded": "for=198.51.100.2", "x_real_ip": "198.51.100.3"}
WRONG_PASSWORDS = 120
PROXY_LINGERS_S = 1.0
"""Caddy closes a connection half a second after it has answered, if the request is not complete."""


@pytest.fixture(scope="module")
def web(
    tmp_path_factory: pytest.TempPathFactory, mongodb_uri: str, redis_url: str, shared_database: str
) -> Iterator[WebProcess]:
    settings: dict[str, Any] = {
        "database": shared_database,
        "NOROSHI_TRUSTED_PROXIES": PROXY_ADDRESS,
        "NOROSHI_PUBLIC_URL": PUBLIC_URL,
        # uvicorn's own variable, which must not count.
        "FORWARDED_ALLOW_IPS": "*",
    }
    with web_process(tmp_path_factory.mktemp("web"), mongodb_uri, redis_url, **settings) as web:
        yield web


@pytest.fixture(scope="module")
async def stores(web: WebProcess, mongodb_uri: str, redis_url: str) -> AsyncIterator[Stores]:
    async with open_stores(mongodb_uri, redis_url, web.database) as stores:
        yield stores


@pytest.fixture(scope="module", params=["nginx", "caddy"])
async def proxy(
    request: pytest.FixtureRequest, web: WebProcess, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Proxy]:
    folder = tmp_path_factory.mktemp(request.param)
    async with AsyncExitStack() as entered:
        if request.param == "nginx":
            yield entered.enter_context(nginx(folder, web.url))
        else:
            yield await entered.enter_async_context(caddy(folder, web.url))


class PingedConnection(ClientConnection):
    """A connection that records whether the server has sent a ping."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.pinged = asyncio.Event()

    def process_event(self, event: Any) -> None:
        """Records pings, which the connection answers by itself."""
        if isinstance(event, Frame) and event.opcode is Opcode.PING:
            self.pinged.set()
        super().process_event(event)


async def new_account(stores: Stores, http: httpx2.AsyncClient) -> str:
    """Creates an account, and returns its address."""
    await stores.users.sign_in(ORG, "boss", [Role.ADMIN], "Boss", None)
    address = f"ann-{new_id()}@example.org"
    invitation = await stores.invitations.create(Actor(ORG, "boss"), new_invitation(address=address), None)
    body = {"invitation": invitation.token, "name": "Ann", "password": PASSWORD}
    response = await http.post("/accounts", json=body, headers=CLIENT)
    assert response.status_code == 201, response.text
    return address


async def sign_in(http: httpx2.AsyncClient, address: str, password: str) -> httpx2.Response:
    body = {"address": address, "password": password}
    return await http.post("/sign-in/password", json=body, headers=CLIENT)


async def data(http: httpx2.AsyncClient, query: str, **headers: str) -> Any:
    """Runs an operation, and returns its data."""
    response = await http.post("/graphql", json={"query": query}, headers=headers)
    answer = orjson.loads(response.content)
    assert "errors" not in answer, answer
    return answer["data"]


async def test_wrong_passwords_of_one_client_stop_no_other(proxy: Proxy, stores: Stores) -> None:
    await stores.mongo["sign_in_limits"].delete_many({})
    async with proxy.client(ANN, **FORGED) as ann, proxy.client(BOB, **FORGED) as bob:
        address = await new_account(stores, bob)
        statuses = [(await sign_in(ann, address, "a wrong password")).status_code for _ in range(WRONG_PASSWORDS)]
        assert set(statuses) == {401, 429}
        assert (await sign_in(ann, f"other-{address}", PASSWORD)).status_code == 429
        response = await sign_in(bob, address, PASSWORD)
        assert response.status_code == 200, response.text
        token = response.headers["set-cookie"].partition("=")[2].partition(";")[0]
        sessions = await data(bob, "{ mySessions { address } }", **session_headers(token))
    assert {each["address"] for each in sessions["mySessions"]} == {BOB}


async def test_audit_log_shows_each_client(proxy: Proxy, web: WebProcess) -> None:
    admin = {"authorization": f"Bearer {web.token('ada', roles=('ADMIN',))}"}
    people = {f"{name}-{new_id()}": address for name, address in (("cyd", ANN), ("dan", BOB))}
    for person, address in people.items():
        async with proxy.client(address, **FORGED) as http:
            await data(http, "{ viewer { id } }", authorization=f"Bearer {web.token(person)}")
            await data(http, f'mutation {{ deactivateUser(userId: "{person}", reason: "left") {{ id }} }}', **admin)
    async with proxy.client(ANN) as http:
        log = (await data(http, "{ auditLog { targetId address } }", **admin))["auditLog"]
    assert {each["targetId"]: each["address"] for each in log if each["targetId"] in people} == people


async def test_header_of_untrusted_peer_is_ignored(web: WebProcess) -> None:
    admin = {"authorization": f"Bearer {web.token('ada', roles=('ADMIN',))}"}
    person = f"eve-{new_id()}"
    async with Proxy(web.url).client("127.0.0.5", **FORGED) as http:
        await data(http, "{ viewer { id } }", authorization=f"Bearer {web.token(person)}")
        await data(http, f'mutation {{ deactivateUser(userId: "{person}", reason: "left") {{ id }} }}', **admin)
        log = (await data(http, "{ auditLog { targetId address } }", **admin))["auditLog"]
    assert [each["address"] for each in log if each["targetId"] == person] == ["127.0.0.5"]
    warnings = [line for line in web.log_text.splitlines() if "proxy_not_trusted" in line and "127.0.0.5" in line]
    assert len(warnings) == 1


async def test_unknown_client_of_proxy_is_served(web: WebProcess, mongodb_uri: str) -> None:
    admin = {"authorization": f"Bearer {web.token('ada', roles=('ADMIN',))}"}
    person = f"ivy-{new_id()}"
    async with Proxy(web.url).client(PROXY_ADDRESS, x_forwarded_for="127.0.0.1, unknown") as http:
        await data(http, "{ viewer { id } }", authorization=f"Bearer {web.token(person)}")
        await data(http, f'mutation {{ deactivateUser(userId: "{person}", reason: "left") {{ id }} }}', **admin)
        log = (await data(http, "{ auditLog { targetId address } }", **admin))["auditLog"]
        assert (await sign_in(http, f"{person}@example.org", PASSWORD)).status_code == 401
    assert [each["address"] for each in log if each["targetId"] == person] == [None]
    cookie = f"{SESSION_COOKIE}={await begin_session(mongodb_uri, web.database, 'joe')}"
    async with Proxy(web.url).socket(PROXY_ADDRESS, PUBLIC_URL, cookie, forwarded_for="unknown") as ws:
        await ws.send('{"type": "connection_init"}')
        assert orjson.loads(await ws.recv())["type"] == "connection_ack"


async def test_socket_receives_events_and_pings(proxy: Proxy, web: WebProcess, mongodb_uri: str) -> None:
    cookie = f"{SESSION_COOKIE}={await begin_session(mongodb_uri, web.database, 'fay')}"
    async with proxy.client(ANN) as http:
        client = Client(proxy.url, web.token("fay"), http)
        community = (await client.run('mutation { createCommunity(input: {name: "Hills"}) { id } }'))["createCommunity"]
        create = 'mutation ($id: ID!) { createTopic(input: {communityId: $id, title: "Watch"}) { id } }'
        topic = (await client.run(create, id=community["id"]))["createTopic"]["id"]
        async with proxy.socket(ANN, PUBLIC_URL, cookie, create_connection=PingedConnection) as ws:
            await ws.send('{"type": "connection_init"}')
            assert orjson.loads(await ws.recv())["type"] == "connection_ack"
            socket = SubscriptionSocket(ws)
            await socket.subscribe(
                "subscription ($topic: ID!) { topicEvents(topicId: $topic) { __typename } }", topic=topic
            )
            assert (await socket.next_event())["__typename"] == "StreamReady"
            assert isinstance(ws, PingedConnection)
            await asyncio.wait_for(ws.pinged.wait(), 60)
            post = 'mutation ($id: ID!) { postMessage(input: {topicId: $id, text: "Hello"}) { id } }'
            await client.run(post, id=topic)
            assert (await socket.next_event())["__typename"] == "MessagePosted"


async def test_event_stream_receives_events_and_comments(proxy: Proxy, web: WebProcess) -> None:
    async with proxy.client(ANN) as http:
        client = Client(proxy.url, web.token("gil"), http)
        chat = await create_chat_topic(client)
        query = "subscription ($topic: ID!) { topicEvents(topicId: $topic) { __typename } }"
        async with recorded(http, f"{proxy.url}/graphql", client.token, query, topic=chat.topic) as stream:
            await until(lambda: stream.events)
            assert stream.events[0].value["__typename"] == "StreamReady"
            await until(lambda: stream.text.endswith("\n\n:\n\n"))
            await client.run(
                'mutation ($id: ID!) { postMessage(input: {topicId: $id, text: "Hello"}) { id } }', id=chat.topic
            )
            assert await stream.receives(1)
    assert stream.events[1].id


def test_nginx_waits_longer_than_pings_and_answers_take() -> None:
    times = re.findall(r"proxy_(?:read|send)_timeout (\d+)s;", (DEPLOY / "nginx.conf").read_text())
    assert len(times) == 2
    assert min(int(each) for each in times) > max(60, 2 * PING_EVERY_S)


async def test_call_list_of_16_mb_is_read(proxy: Proxy, web: WebProcess) -> None:
    query = "query ($input: LaunchCallJobInput!) { checkCallList(input: $input) { rows } }"
    csv = "phone_number,x\n" + "".join(f"+8190{10_000_000 + n},{'x' * 200}\n" for n in range(10_000))
    body = {"query": query, "variables": {"input": {"name": "List", "scenario": "Hello", "csv": csv}}}
    padded = orjson.dumps(body | {"pad": "x" * (MAX_LIST_BODY_BYTES - len(orjson.dumps(body | {"pad": ""})))})
    assert len(padded) == MAX_LIST_BODY_BYTES
    headers = {"content-type": "application/json"}
    async with proxy.client(ANN, authorization=f"Bearer {web.token('gus', roles=('OPERATOR',))}") as http:
        read = await http.post("/graphql", content=padded, headers=headers)
        too_large = await http.post("/graphql", content=padded + b" ", headers=headers)
        upload = await http.put(f"/uploads/{new_id()}", content=b"x" * (MAX_LIST_BODY_BYTES + 2_000_000))
    assert orjson.loads(read.content)["data"] == {"checkCallList": {"rows": 10_000}}
    assert_body_is_refused(too_large)
    assert error_of(orjson.loads(upload.content))["code"] == "NOT_FOUND"


async def test_delivery_events_of_20_mb_are_read(proxy: Proxy, web: WebProcess) -> None:
    async with proxy.client(ANN, authorization=f"Bearer {web.token('mta', roles=('SERVICE',))}") as http:
        answers = [await http.post("/ingest/deliveries", content=b" " * size) for size in (20_000_000, 20_000_001)]
    assert [each.status_code for each in answers] == [200, 413]


@pytest.mark.parametrize(
    ("path", "status"), [("/graphql", 413), ("/ingest/deliveries", 401), ("/callbacks/telephony", 400)]
)
async def test_refusal_reaches_a_client_that_still_sends(proxy: Proxy, path: str, status: int) -> None:
    """Proxies that get the refusal in the meantime close the connection of a client that does not read yet."""
    size = MAX_LIST_BODY_BYTES + 1

    async def body() -> AsyncIterator[bytes]:
        yield b"x" * 2_000_000
        await asyncio.sleep(PROXY_LINGERS_S)
        yield b"x" * (size - 2_000_000)

    headers = {"content_type": "application/json", "content_length": str(size)}
    async with proxy.client(ANN, **headers) as http:
        assert (await http.post(path, content=body())).status_code == status


def assert_body_is_refused(response: httpx2.Response) -> None:
    assert response.status_code == 413
    assert orjson.loads(response.content)["errors"][0]["extensions"]["code"] == "BAD_USER_INPUT"


async def test_metrics_are_not_public(proxy: Proxy) -> None:
    async with proxy.client(ANN) as http:
        assert (await http.get("/metrics")).status_code == 404
        assert (await http.get("/readyz")).status_code == 200


@pytest.mark.parametrize("host", ["127.0.0.1:8000", "chat.example.org"])
async def test_page_of_public_url_works_with_rewritten_host(
    web: WebProcess, mongodb_uri: str, tmp_path: Path, host: str
) -> None:
    token = await begin_session(mongodb_uri, web.database, "hal")
    cookie = f"{SESSION_COOKIE}={token}"
    with nginx(tmp_path, web.url, {"$http_host": host}) as proxy:
        async with proxy.client(ANN, **session_headers(token)) as http:
            assert await data(http, "{ viewer { id } }", origin=PUBLIC_URL) == {"viewer": {"id": "hal"}}
            foreign = {"origin": "https://evil.example.org:8443"}
            assert (
                await http.post("/graphql", json={"query": "{ viewer { id } }"}, headers=foreign)
            ).status_code == 403
            assert (await http.post("/sign-out", headers=foreign)).status_code == 403
        async with proxy.socket(ANN, PUBLIC_URL, cookie) as ws:
            await ws.send('{"type": "connection_init"}')
            assert orjson.loads(await ws.recv())["type"] == "connection_ack"
        with pytest.raises(InvalidStatus) as refused:
            await proxy.socket(ANN, "https://evil.example.org:8443", cookie)
    assert refused.value.response.status_code == 403

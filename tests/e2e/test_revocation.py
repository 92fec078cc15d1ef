"""Access that ends or is reduced does so on every process while Redis is stopped.

An administrator reduces the roles, deactivates the user or revokes a service key, or the user signs out of a browser.
"""

import asyncio
import json
from collections.abc import Iterator
from functools import partial

import httpx2
import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed
from websockets.typing import Origin, Subprotocol

from tests.browser_sessions import SESSION_COOKIE, begin_session, cookie
from tests.client import Client, client
from tests.e2e.chat_topic import create_chat_topic, join, post, subscribed
from tests.e2e.conftest import DeployedProduct
from tests.product import running_product, sigstopped
from tests.waiting import until

pytestmark = pytest.mark.anyio

DEADLINE_S = 60.0
DEACTIVATE = 'mutation { deactivateUser(userId: "bob", reason: "left") { id } }'
REDUCE_ROLES = 'mutation { setUserRoles(userId: "bob", roles: [MEMBER]) { id } }'
CREATE_KEY = 'mutation { createServiceKey(input: {name: "Bot", scopes: ["chat:read"]}) { secret key { id } } }'
ROTATE_KEY = "mutation ($id: ID!) { rotateServiceKey(input: {serviceKeyId: $id, graceS: 3}) { secret } }"
REVOKE_KEY = "mutation ($id: ID!) { revokeServiceKey(serviceKeyId: $id) { active } }"
WEB_PROCESSES = 2
SOCKETS = 8
"""So many that each web process has at least one of them."""


@pytest.fixture(scope="module")
def product(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DeployedProduct]:
    """A product whose Redis server may be stopped."""
    data_dir = tmp_path_factory.mktemp("revocation") / "data"
    with running_product(data_dir, "--web", str(WEB_PROCESSES)) as processes:
        yield DeployedProduct(processes.url, data_dir, processes)


async def close_code(person: Client, *, is_open: asyncio.Barrier) -> int | None:
    """Opens a socket, waits until all sockets are open, and returns the code with which the server closes it."""
    async with person.socket() as socket:
        await is_open.wait()
        try:
            async with asyncio.timeout(DEADLINE_S):
                while True:
                    await socket.ws.recv()
        except ConnectionClosed as closed:
            return closed.rcvd.code if closed.rcvd else None


async def socket_of_browser(product: DeployedProduct, token: str, *, is_open: asyncio.Barrier) -> int | None:
    """Opens a socket by cookie, meets the others, and returns the code with which the server closes the socket."""
    headers = {"cookie": f"{SESSION_COOKIE}={token}"}
    address = f"{product.url.replace('http', 'ws')}/graphql"
    protocol = Subprotocol("graphql-transport-ws")
    async with connect(address, subprotocols=[protocol], origin=Origin(product.url), additional_headers=headers) as ws:
        await ws.send('{"type": "connection_init"}')
        assert json.loads(await ws.recv())["type"] == "connection_ack"
        await is_open.wait()
        await asyncio.wait_for(ws.wait_closed(), DEADLINE_S)
        return ws.close_code


async def test_ended_session_ends_sockets_and_requests(product: DeployedProduct) -> None:
    port = product.processes.database_port("mongod")
    uri = f"mongodb://127.0.0.1:{port}/?directConnection=true"
    token, other = [await begin_session(uri, "noroshi", "cat") for _ in range(2)]
    async with httpx2.AsyncClient(base_url=product.url, timeout=60) as http:

        async def statuses(token: str) -> set[int]:
            requests = [
                http.post("/graphql", json={"query": "{ viewer { id } }"}, headers=cookie(token))
                for _ in range(4 * WEB_PROCESSES)
            ]
            return {response.status_code for response in await asyncio.gather(*requests)}

        is_open = asyncio.Barrier(SOCKETS + 1)
        sockets = [asyncio.create_task(socket_of_browser(product, token, is_open=is_open)) for _ in range(SOCKETS)]
        await is_open.wait()
        assert await statuses(token) == {200}
        with sigstopped(product.processes.child("valkey-server")):
            response = await http.post("/sign-out", headers=cookie(token))
            assert response.status_code == 200
            assert await asyncio.gather(*sockets) == [4401] * SOCKETS

        async def is_refused_everywhere() -> bool:
            return await statuses(token) == {401}

        await until(is_refused_everywhere)
        assert await statuses(other) == {200}


async def is_refused_everywhere(person: Client) -> bool:
    answers = await asyncio.gather(*(person.post("{ viewer { id } }") for _ in range(4 * WEB_PROCESSES)))
    return all("errors" in answer for answer in answers)


async def test_reduced_access_ends_sockets_and_requests(product: DeployedProduct) -> None:
    bob_token = product.token("bob", roles=["OPERATOR"])
    async with (
        client(product.url, product.token("ada", roles=["ADMIN"])) as ada,
        client(product.url, bob_token) as bob,
    ):
        chat = await create_chat_topic(ada)
        await join(chat, bob)
        for change, expected_code in ((REDUCE_ROLES, 4403), (DEACTIVATE, 4401)):
            is_open = asyncio.Barrier(SOCKETS + 1)
            sockets = [asyncio.create_task(close_code(bob, is_open=is_open)) for _ in range(SOCKETS)]
            await is_open.wait()
            async with subscribed(chat, ada) as (still_open, _):
                with sigstopped(product.processes.child("valkey-server")):
                    await ada.run(change)
                    assert await asyncio.gather(*sockets) == [expected_code] * SOCKETS
                await post(chat, ada, "Others stay connected")
                assert (await still_open.next_event())["__typename"] == "MessagePosted"

        await until(lambda: is_refused_everywhere(bob))
        assert (await bob.expect_error("{ viewer { id } }"))["code"] == "UNAUTHENTICATED"


async def test_rotated_and_revoked_keys_end_everywhere(product: DeployedProduct) -> None:
    async with client(product.url, product.token("ada", roles=["ADMIN"])) as ada:
        created = (await ada.run(CREATE_KEY))["createServiceKey"]
        key, secret = created["key"]["id"], created["secret"]
        for change, expected in ((ROTATE_KEY, 4403), (REVOKE_KEY, 4401)):
            async with client(product.url, secret) as service:
                is_open = asyncio.Barrier(SOCKETS + 1)
                sockets = [asyncio.create_task(close_code(service, is_open=is_open)) for _ in range(SOCKETS)]
                await is_open.wait()
                assert not await is_refused_everywhere(service)
                with sigstopped(product.processes.child("valkey-server")):
                    changed = await ada.run(change, id=key)
                    assert await asyncio.gather(*sockets) == [expected] * SOCKETS
                    await until(partial(is_refused_everywhere, service))
                secret = (changed.get("rotateServiceKey") or {}).get("secret")

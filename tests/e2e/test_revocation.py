"""A user whose roles were reduced, or who was deactivated, loses access on every process while Redis is stopped."""

import asyncio
from collections.abc import Iterator

import pytest
from websockets.exceptions import ConnectionClosed

from tests.client import Client, client
from tests.e2e.chat_topic import create_chat_topic, join, post, subscribed
from tests.e2e.conftest import DeployedProduct
from tests.product import running_product, sigstopped
from tests.waiting import until

pytestmark = pytest.mark.anyio

DEADLINE_S = 60.0
DEACTIVATE = 'mutation { deactivateUser(userId: "bob", reason: "left") { id } }'
NARROW = 'mutation { setUserRoles(userId: "bob", roles: [MEMBER]) { id } }'
WEB_PROCESSES = 2
SOCKETS = 8
"""Enough that each web process has one of them."""


@pytest.fixture(scope="module")
def product(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DeployedProduct]:
    """A product whose Redis server may be stopped."""
    data_dir = tmp_path_factory.mktemp("revocation") / "data"
    with running_product(data_dir, "--web", str(WEB_PROCESSES)) as processes:
        yield DeployedProduct(processes.url, data_dir, processes)


async def close_code(person: Client, *, is_open: asyncio.Barrier) -> int | None:
    """Opens a socket, meets the others, and returns the code with which the server closes the socket."""
    async with person.socket() as socket:
        await is_open.wait()
        try:
            async with asyncio.timeout(DEADLINE_S):
                while True:
                    await socket.ws.recv()
        except ConnectionClosed as closed:
            return closed.rcvd.code if closed.rcvd else None


async def test_reduced_access_ends_sockets_and_requests(product: DeployedProduct) -> None:
    bob_token = product.token("bob", roles=["OPERATOR"])
    async with (
        client(product.url, product.token("ada", roles=["ADMIN"])) as ada,
        client(product.url, bob_token) as bob,
    ):
        chat = await create_chat_topic(ada)
        await join(chat, bob)
        for change, expected in ((NARROW, 4403), (DEACTIVATE, 4401)):
            is_open = asyncio.Barrier(SOCKETS + 1)
            sockets = [asyncio.create_task(close_code(bob, is_open=is_open)) for _ in range(SOCKETS)]
            await is_open.wait()
            async with subscribed(chat, ada) as (still_open, _):
                with sigstopped(product.processes.child("valkey-server")):
                    await ada.run(change)
                    assert await asyncio.gather(*sockets) == [expected] * SOCKETS
                await post(chat, ada, "Others stay connected")
                assert (await still_open.next_event())["__typename"] == "MessagePosted"

        async def is_refused_everywhere() -> bool:
            answers = await asyncio.gather(*(bob.post("{ viewer { id } }") for _ in range(4 * WEB_PROCESSES)))
            return all("errors" in answer for answer in answers)

        await until(is_refused_everywhere)
        assert (await bob.expect_error("{ viewer { id } }"))["code"] == "UNAUTHENTICATED"

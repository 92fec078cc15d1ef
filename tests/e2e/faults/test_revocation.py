"""Revoked access ends on every process, also while Redis is stopped.

An administrator reduces the roles, ends the sessions, deactivates the user or the account of a service, or revokes a
service key. An owner bans the user from a community. The user signs out of a browser.
"""

import asyncio
import itertools
import json
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, suppress
from datetime import datetime
from functools import partial

import httpx2
import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed
from websockets.typing import Origin, Subprotocol

from storage.secrets.random_tokens import token_digest
from tests.browser_sessions import SESSION_COOKIE, begin_session, session_headers
from tests.client import Client, GraphQLFailed, SubscriptionSocket, client
from tests.e2e.chat_topic import POSTED_EVENTS, ChatTopic, create_chat_topic, join, post, subscribed
from tests.e2e.conftest import WEB_PROCESSES, DeployedProduct
from tests.product import sigstopped
from tests.waiting import until

pytestmark = pytest.mark.anyio

DEADLINE_S = 60.0
POLL_S = 0.25
DEACTIVATE = 'mutation { deactivateUser(userId: "bob", reason: "left") { id } }'
END_SESSIONS = 'mutation ($id: ID) { endUserSessions(userId: "dan", reason: "lost laptop", sessionId: $id) }'
REDUCE_ROLES = 'mutation { setUserRoles(userId: "bob", roles: [MEMBER]) { id } }'
CREATE_KEY = """
mutation { createServiceKey(input: {name: "Bot", scopes: ["chat:read"]}) { secret key { account { id } } } }
"""
ROTATE_KEY = "mutation ($id: ID!) { rotateServiceKey(input: {serviceKeyId: $id, graceS: 3}) { secret } }"
REVOKE_KEY = "mutation ($id: ID!) { revokeServiceKey(serviceKeyId: $id) { active } }"
DEACTIVATE_SERVICE = 'mutation ($id: ID!) { deactivateUser(userId: $id, reason: "replaced") { id } }'
REACTIVATE_SERVICE = "mutation ($id: ID!) { reactivateUser(userId: $id) { id } }"
JOIN = "mutation ($id: ID!) { joinCommunity(communityId: $id) { id } }"
BAN = 'mutation ($id: ID!) { banMember(communityId: $id, userId: "eve", reason: "spam") { user { id } } }'
GRANT_OPERATOR = 'mutation { setUserRoles(userId: "hal", roles: [OPERATOR]) { roles } }'
REVOKE_ALL = """mutation ($community: ID!, $key: ID!, $service: ID!) {
  deactivateUser(userId: "fay", reason: "left") { id }
  ofService: deactivateUser(userId: $service, reason: "replaced") { id }
  setUserRoles(userId: "hal", roles: [MEMBER]) { roles }
  banMember(communityId: $community, userId: "gus", reason: "spam") { user { id } }
  revokeServiceKey(serviceKeyId: $key) { active }
}"""
CREATE_BOT_KEY = """mutation {
  createServiceKey(input: {name: "Bot", scopes: ["chat:read", "chat:write"]}) { secret key { account { id } } }
}"""
LIMITS = "{ callLimits { id } }"
SET_LIMITS = """mutation ($calls: Int!) {
  setCallLimits(input: {concurrentCalls: $calls, callsPerSecond: 100}) { id }
}"""
LIMIT_EVENTS = """subscription {
  jobEvents { __typename ... on CallLimitsChanged { at } }
}"""
PAGE = 'query ($id: ID!) { messages(topicId: $id, latest: "now", limit: 1) { items { id } } }'
LIMIT_S = 10.0
"""The promise: nothing passes later than this after a revocation."""
OBSERVED_S = 14.0
SOCKETS = 8
"""Enough sockets for each web process to have at least one."""


@pytest.fixture
def product(product: DeployedProduct) -> DeployedProduct:
    """The shared product, whose Redis server the tests stop."""
    return product


async def close_code(person: Client, *, all_open: asyncio.Barrier) -> int | None:
    """Opens a socket, waits until all sockets are open, and returns the code with which the server closes this one."""
    async with person.socket() as socket:
        await all_open.wait()
        try:
            async with asyncio.timeout(DEADLINE_S):
                while True:
                    await socket.ws.recv()
        except ConnectionClosed as closed:
            return closed.rcvd.code if closed.rcvd else None


async def browser_close_code(product: DeployedProduct, token: str, *, all_open: asyncio.Barrier) -> int | None:
    """Opens a socket as a browser does, with the cookie of a session.

    Waits until all sockets are open, and returns the code with which the server closes this one.
    """
    headers = {"cookie": f"{SESSION_COOKIE}={token}"}
    address = f"{product.url.replace('http', 'ws')}/graphql"
    protocol = Subprotocol("graphql-transport-ws")
    async with connect(address, subprotocols=[protocol], origin=Origin(product.url), additional_headers=headers) as ws:
        await ws.send('{"type": "connection_init"}')
        assert json.loads(await ws.recv())["type"] == "connection_ack"
        await all_open.wait()
        await asyncio.wait_for(ws.wait_closed(), DEADLINE_S)
        return ws.close_code


async def statuses(http: httpx2.AsyncClient, token: str) -> set[int]:
    """Returns the statuses of requests with this cookie to all web processes."""
    requests = [
        http.post("/graphql", json={"query": "{ viewer { id } }"}, headers=session_headers(token))
        for _ in range(4 * WEB_PROCESSES)
    ]
    return {response.status_code for response in await asyncio.gather(*requests)}


async def expect_revocation(
    product: DeployedProduct, http: httpx2.AsyncClient, token: str, revoke: Callable[[], Awaitable[object]]
) -> None:
    """Calls `revoke`, which ends the session of the cookie `token`, while Redis is stopped.

    Asserts that every process closes the session's sockets, and waits until every process refuses its requests.
    """
    all_open = asyncio.Barrier(SOCKETS + 1)
    sockets = [asyncio.create_task(browser_close_code(product, token, all_open=all_open)) for _ in range(SOCKETS)]
    await all_open.wait()
    assert await statuses(http, token) == {200}
    with sigstopped(product.processes.child("valkey-server")):
        await revoke()
        assert await asyncio.gather(*sockets) == [4401] * SOCKETS

        async def is_refused() -> bool:
            return await statuses(http, token) == {401}

        await until(is_refused, interval_s=POLL_S)


async def test_ended_session_ends_sockets_and_requests(product: DeployedProduct) -> None:
    begin = partial(begin_session, product.mongodb_uri, "noroshi", org=product.organization)
    async with (
        httpx2.AsyncClient(base_url=product.url, timeout=60) as http,
        client(product.url, product.token("ada", roles=["ADMIN"])) as ada,
        client(product.url, product.token("dan")) as dan_with_token,
    ):
        cat_session, other_cat_session = await begin("cat"), await begin("cat")
        dan_session, other_dan_session = await begin("dan"), await begin("dan")

        async def sign_out() -> None:
            assert (await http.post("/sign-out", headers=session_headers(cat_session))).status_code == 200

        await expect_revocation(product, http, cat_session, sign_out)
        assert await statuses(http, other_cat_session) == {200}

        async def end_one() -> None:
            assert (await ada.run(END_SESSIONS, id=token_digest(dan_session))) == {"endUserSessions": 1}

        await expect_revocation(product, http, dan_session, end_one)
        assert await statuses(http, other_dan_session) == {200}

        async def end_all() -> None:
            assert (await ada.run(END_SESSIONS)) == {"endUserSessions": 1}

        await expect_revocation(product, http, other_dan_session, end_all)
        assert await statuses(http, await begin("dan")) == {200}
        assert (await dan_with_token.run("{ viewer { deactivated } }"))["viewer"] == {"deactivated": False}


async def is_refused_everywhere(person: Client, query: str = "{ viewer { id } }") -> bool:
    answers = await asyncio.gather(*(person.execute(query) for _ in range(4 * WEB_PROCESSES)))
    return all("errors" in answer for answer in answers)


async def is_answered_everywhere(person: Client) -> bool:
    answers = await asyncio.gather(*(person.execute("{ viewer { id } }") for _ in range(4 * WEB_PROCESSES)))
    return not any("errors" in answer for answer in answers)


async def test_reduced_access_ends_sockets_and_requests(product: DeployedProduct) -> None:
    bob_token = product.token("bob", roles=["OPERATOR"])
    async with (
        client(product.url, product.token("ada", roles=["ADMIN"])) as ada,
        client(product.url, bob_token) as bob,
    ):
        chat = await create_chat_topic(ada)
        await join(chat, bob)
        assert not await is_refused_everywhere(bob, LIMITS)
        for change, expected_code in ((REDUCE_ROLES, 4403), (DEACTIVATE, 4401)):
            all_open = asyncio.Barrier(SOCKETS + 1)
            sockets = [asyncio.create_task(close_code(bob, all_open=all_open)) for _ in range(SOCKETS)]
            await all_open.wait()
            async with subscribed(chat, ada) as (ada_socket, _):
                with sigstopped(product.processes.child("valkey-server")):
                    await ada.run(change)
                    assert await asyncio.gather(*sockets) == [expected_code] * SOCKETS
                    await until(partial(is_refused_everywhere, bob, LIMITS), interval_s=POLL_S)
                await post(chat, ada, "Others stay connected")
                assert (await ada_socket.next_event())["__typename"] == "MessagePosted"

        await until(lambda: is_refused_everywhere(bob), interval_s=POLL_S)
        assert (await bob.expect_error("{ viewer { id } }"))["code"] == "UNAUTHENTICATED"


async def test_rotated_and_revoked_keys_end_everywhere(product: DeployedProduct) -> None:
    async with client(product.url, product.token("ada", roles=["ADMIN"])) as ada:
        created = (await ada.run(CREATE_KEY))["createServiceKey"]
        key, secret = created["key"]["account"]["id"], created["secret"]
        for change, expected in ((ROTATE_KEY, 4403), (REVOKE_KEY, 4401)):
            async with client(product.url, secret) as service:
                all_open = asyncio.Barrier(SOCKETS + 1)
                sockets = [asyncio.create_task(close_code(service, all_open=all_open)) for _ in range(SOCKETS)]
                await all_open.wait()
                assert not await is_refused_everywhere(service)
                with sigstopped(product.processes.child("valkey-server")):
                    changed = await ada.run(change, id=key)
                    assert await asyncio.gather(*sockets) == [expected] * SOCKETS
                    await until(partial(is_refused_everywhere, service), interval_s=POLL_S)
                secret = (changed.get("rotateServiceKey") or {}).get("secret")


async def test_deactivated_service_account_ends_its_keys(product: DeployedProduct) -> None:
    """The key itself stays valid, and works again when the account is reactivated."""
    async with client(product.url, product.token("ada", roles=["ADMIN"])) as ada:
        created = (await ada.run(CREATE_KEY))["createServiceKey"]
        account = created["key"]["account"]["id"]
        async with client(product.url, created["secret"]) as service:
            all_open = asyncio.Barrier(SOCKETS + 1)
            sockets = [asyncio.create_task(close_code(service, all_open=all_open)) for _ in range(SOCKETS)]
            await all_open.wait()
            with sigstopped(product.processes.child("valkey-server")):
                await ada.run(DEACTIVATE_SERVICE, id=account)
                assert await asyncio.gather(*sockets) == [4401] * SOCKETS
                await until(partial(is_refused_everywhere, service), interval_s=POLL_S)
            await ada.run(REACTIVATE_SERVICE, id=account)
            await until(partial(is_answered_everywhere, service), interval_s=POLL_S)


async def test_ban_ends_subscriptions_and_requests(product: DeployedProduct) -> None:
    async with client(product.url, product.token("ada")) as ada, client(product.url, product.token("eve")) as eve:
        chat = await create_chat_topic(ada)
        await join(chat, eve)
        async with AsyncExitStack() as stack:
            sockets = [(await stack.enter_async_context(subscribed(chat, eve)))[0] for _ in range(SOCKETS)]
            with sigstopped(product.processes.child("valkey-server")):
                await ada.run(BAN, id=chat.community)
                assert await asyncio.gather(*map(error_code, sockets)) == ["FORBIDDEN"] * SOCKETS
                await post(chat, ada, "Without eve")
                page = 'query ($id: ID!) { messages(topicId: $id, latest: "now") { items { id } } }'
                reads = [eve.expect_error(page, id=chat.topic) for _ in range(4 * WEB_PROCESSES)]
                errors = await asyncio.gather(*reads)
                assert {error["code"] for error in errors} == {"FORBIDDEN"}
                assert (await eve.expect_error(JOIN, id=chat.community))["code"] == "FORBIDDEN"


async def error_code(socket: SubscriptionSocket) -> str:
    """Returns the code of the error that ends the subscription. No event may arrive before the error."""
    async with asyncio.timeout(DEADLINE_S):
        with pytest.raises(GraphQLFailed) as failed:
            await socket.next_event()
    code: str = failed.value.errors[0]["extensions"]["code"]
    return code


async def read_repeatedly(person: Client, passed: list[float], query: str, **variables: object) -> None:
    """Sends a query again and again. Records the send time of each request that was answered."""
    while True:
        sent_at = time.time()
        with suppress(GraphQLFailed):
            await person.run(query, **variables)
            passed.append(sent_at)
        await asyncio.sleep(0.2)


async def follow_topic(chat: ChatTopic, person: Client, passed: list[float]) -> None:
    """Subscribes again and again. Records when each message was committed that arrived."""
    while True:
        with suppress(GraphQLFailed, ConnectionClosed):
            async with subscribed(chat, person, document=POSTED_EVENTS) as (socket, _):
                while True:
                    passed.append(float((await socket.next_event())["message"]["timestamp"]))
        await asyncio.sleep(0.5)


async def follow_limits(person: Client, passed: list[float]) -> None:
    """Subscribes to jobs again and again. Records the commit time of each change of the call limits that arrived."""
    while True:
        with suppress(GraphQLFailed, ConnectionClosed):
            async with person.socket() as socket:
                await socket.subscribe(LIMIT_EVENTS)
                while True:
                    event = await socket.next_event()
                    if event["__typename"] == "CallLimitsChanged":
                        passed.append(datetime.fromisoformat(event["at"]).timestamp())
        await asyncio.sleep(0.5)


async def act_steadily(chat: ChatTopic, admin: Client) -> None:
    """Posts about four messages a second, and changes the call limits as often."""
    for calls in itertools.cycle((100, 200)):
        await post(chat, admin, "The beacon is lit")
        await admin.run(SET_LIMITS, calls=calls)
        await asyncio.sleep(0.25)


async def test_nothing_passes_10_s_after_a_revocation(product: DeployedProduct) -> None:
    """Compares times of sending and of commits, not of arrival, so that a slow machine changes nothing.

    Fay is deactivated, Gus is banned, the bot's key is revoked, the account of the relay is deactivated, and Hal, an
    OPERATOR, becomes a MEMBER. Ada loses nothing.
    """
    async with AsyncExitStack() as stack:
        tokens = [product.token("ada", roles=["ADMIN"]), product.token("hal", roles=["OPERATOR"])]
        tokens += [product.token(name) for name in ("fay", "gus")]
        ada, hal, fay, gus = [await stack.enter_async_context(client(product.url, token)) for token in tokens]
        keys = [(await ada.run(CREATE_BOT_KEY))["createServiceKey"] for _ in range(2)]
        services = [await stack.enter_async_context(client(product.url, each["secret"])) for each in keys]
        chat = await create_chat_topic(ada)
        await join(chat, fay, gus, *services)
        await hal.run("{ viewer { id } }")
        await ada.run(GRANT_OPERATOR)
        readers, operators = (ada, fay, gus, *services), (ada, hal)
        pages: dict[Client, list[float]] = {person: [] for person in readers}
        limits: dict[Client, list[float]] = {person: [] for person in operators}
        group = await stack.enter_async_context(asyncio.TaskGroup())
        tasks = [group.create_task(act_steadily(chat, ada))]
        for person, passed in pages.items():
            tasks.append(group.create_task(read_repeatedly(person, passed, PAGE, id=chat.topic)))
            tasks += [group.create_task(follow_topic(chat, person, passed)) for _ in range(SOCKETS // 2)]
        for person, passed in limits.items():
            tasks.append(group.create_task(read_repeatedly(person, passed, LIMITS)))
            tasks += [group.create_task(follow_limits(person, passed)) for _ in range(SOCKETS // 2)]
        recorded = [*pages.values(), *limits.values()]
        await until(lambda: all(len(passed) > 4 * SOCKETS for passed in recorded))
        with sigstopped(product.processes.child("valkey-server")):
            revoked = {
                "community": chat.community,
                "key": keys[0]["key"]["account"]["id"],
                "service": keys[1]["key"]["account"]["id"],
            }
            await ada.run(REVOKE_ALL, **revoked)
            revoked_at = time.time()
            await asyncio.sleep(OBSERVED_S)
            # Ada still receives events, so the recordings show what passes too late.
            await until(lambda: min(max(pages[ada]), max(limits[ada])) > revoked_at + LIMIT_S)
        for task in tasks:
            task.cancel()
    for passed in [*(pages[each] for each in readers[1:]), limits[hal]]:
        assert max(passed) <= revoked_at + LIMIT_S

"""The running product over HTTP: its pages, and its errors while a required server is down."""

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import httpx2
import orjson
import pytest

from server.embedded import Mongod, Valkey, find_mongod, find_valkey
from tests.client import Client, client, raw_socket
from tests.e2e.chat_topic import ChatTopic, all_messages, create_chat_topic, events, post, run_mutation, subscribed
from tests.e2e.conftest import DeployedProduct
from tests.serving import WebProcess, web_process
from tests.waiting import poll_until_true

VIEWER = {"query": "{ viewer { id } communities { id } }"}
TRY_AGAIN_LATER = 1013

pytestmark = pytest.mark.anyio


@dataclass(frozen=True)
class KillableDeployment:
    """A web process whose database servers may be killed, a user whom it has cached, and the user's topic."""

    web: WebProcess
    mongod: Mongod
    valkey: Valkey
    ann: Client
    chat: ChatTopic


@pytest.fixture(scope="module")
async def shared_deployment(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[KillableDeployment]:
    """The deployment of tests that restart each server that they have killed."""
    async with killable_deployment(tmp_path_factory.mktemp("killable")) as deployment:
        yield deployment


@pytest.fixture
async def deployment(shared_deployment: KillableDeployment) -> KillableDeployment:
    """The shared deployment, with a topic of the test's own."""
    return replace(shared_deployment, chat=await create_chat_topic(shared_deployment.ann))


@asynccontextmanager
async def killable_deployment(folder: Path) -> AsyncIterator[KillableDeployment]:
    mongod, valkey = Mongod(folder / "mongodb", find_mongod()), Valkey(folder / "redis", find_valkey())
    async with AsyncExitStack() as stack:
        for server in (mongod, valkey):
            await server.start()
            stack.push_async_callback(server.stop, 0)
        web = stack.enter_context(web_process(folder / "web", mongod.uri, valkey.url))
        ann = await stack.enter_async_context(client(web.url, web.token()))
        yield KillableDeployment(web, mongod, valkey, ann, await create_chat_topic(ann))


async def post_viewer_query(web: WebProcess, token: str) -> httpx2.Response:
    async with httpx2.AsyncClient(timeout=60) as http:
        return await http.post(f"{web.url}/graphql", json=VIEWER, headers={"authorization": f"Bearer {token}"})


async def readiness(web: WebProcess) -> tuple[int, dict[str, str]]:
    async with httpx2.AsyncClient(timeout=60) as http:
        response = await http.get(f"{web.url}/readyz")
        return response.status_code, response.json()


async def test_product_serves_pages_and_health(product: DeployedProduct) -> None:
    async with httpx2.AsyncClient(base_url=product.url, timeout=60) as http:
        for path in ("/", "/graphiql"):
            page = await http.get(path)
            assert page.status_code in (200, 503)
            assert page.headers["content-type"].startswith("text/html")
            assert "frame-ancestors 'none'" in page.headers["content-security-policy"]
        assert (await http.get("/stamps/hello.svg")).headers["content-type"] == "image/svg+xml"
        assert (await http.get("/healthz")).json() == {"status": "ok"}
        assert (await http.get("/readyz")).json() == {"status": "ready", "mongodb": "ok", "redis": "ok"}
        assert "# TYPE noroshi_hub_subscribers gauge" in (await http.get("/metrics")).text


async def test_posted_text_of_any_script_round_trips(product: DeployedProduct) -> None:
    texts = ["狼煙 🔥", "a\0b", "\u202e右から", "𠮷", "\\u0000", "%00 %s {} $where", "e\u0301", "x" * 4000]
    async with client(product.url, product.token("ann", "texts")) as ann:
        chat = await create_chat_topic(ann)
        for text in texts:
            assert (await post(chat, ann, text))["text"] == text
        assert [message["text"] for message in await all_messages(chat, ann)] == texts


async def test_lost_mongodb_answers_unavailable(deployment: KillableDeployment) -> None:
    async with subscribed(deployment.chat, deployment.ann) as (socket, _):
        deployment.mongod.kill()
        await deployment.mongod.wait()
        await assert_unavailable(deployment)
        assert "Traceback" not in deployment.web.log_text
        await deployment.mongod.restart()
        assert await poll_until_true(lambda: is_ready(deployment.web), 60, 0.2)
        posted = await post(deployment.chat, deployment.ann, "back again")
        assert (await events(socket, 1))[0]["message"] == posted


async def assert_unavailable(deployment: KillableDeployment) -> None:
    """Asserts the error for a cached user, who gets status 200, and for an unknown user, who gets status 503."""
    assert deployment.ann.token is not None
    cached, unknown, ready, close_code = await asyncio.gather(
        post_viewer_query(deployment.web, deployment.ann.token),
        post_viewer_query(deployment.web, deployment.web.token("ben")),
        readiness(deployment.web),
        close_code_of_new_socket(deployment.web, "cem"),
    )
    assert cached.status_code == 200
    assert unknown.status_code == 503
    assert int(unknown.headers["retry-after"]) >= 1
    for response in (cached, unknown):
        extensions = response.json()["errors"][0]["extensions"]
        assert extensions["code"] == "UNAVAILABLE"
        assert extensions["retryAfterMs"] > 0
    assert (ready[0], ready[1]["status"]) == (503, "not ready")
    assert close_code == TRY_AGAIN_LATER


async def close_code_of_new_socket(web: WebProcess, user: str) -> int | None:
    """Opens a socket, and returns its close code."""
    async with raw_socket(web.url) as ws:
        init = {"type": "connection_init", "payload": {"authorization": f"Bearer {web.token(user)}"}}
        await ws.send(orjson.dumps(init).decode())
        async with asyncio.timeout(60):
            await ws.wait_closed()
        return ws.close_code


async def is_ready(web: WebProcess) -> bool:
    return (await readiness(web))[0] == 200


@pytest.mark.soak
async def test_hanging_mongodb_times_out(tmp_path: Path) -> None:
    async with killable_deployment(tmp_path) as deployment:
        assert deployment.mongod.pid is not None
        assert deployment.ann.token is not None
        os.kill(deployment.mongod.pid, signal.SIGSTOP)
        try:
            # The product attempts a read twice, with a deadline of 10 s each. The client waits for a minute.
            response = await post_viewer_query(deployment.web, deployment.ann.token)
            assert response.json()["errors"][0]["extensions"]["code"] == "UNAVAILABLE"
        finally:
            os.kill(deployment.mongod.pid, signal.SIGCONT)
        assert await poll_until_true(lambda: is_ready(deployment.web), 60, 0.2)
        assert (await post(deployment.chat, deployment.ann, "back again"))["text"] == "back again"


async def test_lost_redis_only_delays_events(deployment: KillableDeployment) -> None:
    async with subscribed(deployment.chat, deployment.ann) as (socket, _):
        deployment.valkey.kill()
        await deployment.valkey.wait()
        status, state = await readiness(deployment.web)
        assert (status, state["status"]) == (200, "ready")
        assert state["redis"].startswith("does not answer")
        posted = await post(deployment.chat, deployment.ann, "without Redis")
        # Without Redis, the hub finds the event when it compares stream heads, every 10 s.
        assert (await events(socket, 1, deadline_s=30))[0]["message"] == posted
        await run_mutation(deployment.ann, "deleteMessage(id: $id)", id=posted["id"])
        await deployment.valkey.restart()
        assert (await events(socket, 1))[0]["__typename"] == "MessageDeleted"
        assert await poll_until_true(lambda: events_arrive_fast(deployment, socket), 90)
        assert "Traceback" not in deployment.web.log_text


async def events_arrive_fast(deployment: KillableDeployment, socket: Any) -> bool:
    """Returns whether events arrive as fast as with Redis.

    Posts three messages, because a comparison of heads may deliver a single event early.
    """
    began_s = time.monotonic()
    for _ in range(3):
        await post(deployment.chat, deployment.ann, "quick?")
        await events(socket, 1)
    return time.monotonic() - began_s < 3


async def test_flushed_redis_loses_no_event(deployment: KillableDeployment) -> None:
    async with subscribed(deployment.chat, deployment.ann) as (socket, _):
        texts = []
        for n in range(3):
            texts.append(f"{n}")
            await post(deployment.chat, deployment.ann, texts[-1])
            deployment.valkey.kill()
            await deployment.valkey.wait()
            for file in sorted(deployment.valkey.data.rglob("*")):
                if file.is_file():
                    file.unlink()
            await deployment.valkey.restart()
        received = await events(socket, 3)
        assert [event["message"]["text"] for event in received] == texts

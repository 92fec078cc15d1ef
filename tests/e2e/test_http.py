"""The running product over HTTP: its pages, and its errors while a required server is down."""

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
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
from tests.storage.topic_scenario import poll_until_true

VIEWER = {"query": "{ viewer { id } communities { id } }"}
CLOSED = 1013

pytestmark = pytest.mark.anyio


@dataclass(frozen=True)
class Fragile:
    """A web process whose servers may be killed, a known user, and the user's topic."""

    web: WebProcess
    mongod: Mongod
    valkey: Valkey
    ann: Client
    chat: ChatTopic


@asynccontextmanager
async def fragile(folder: Path) -> AsyncIterator[Fragile]:
    mongod, valkey = Mongod(folder / "mongodb", find_mongod()), Valkey(folder / "redis", find_valkey())
    async with AsyncExitStack() as stack:
        for server in (mongod, valkey):
            await server.start()
            stack.push_async_callback(server.stop, 0)
        web = stack.enter_context(web_process(folder / "web", mongod.uri, valkey.url))
        ann = await stack.enter_async_context(client(web.url, web.token()))
        yield Fragile(web, mongod, valkey, ann, await create_chat_topic(ann))


async def asked(web: WebProcess, token: str) -> httpx2.Response:
    async with httpx2.AsyncClient(timeout=60) as http:
        return await http.post(f"{web.url}/graphql", json=VIEWER, headers={"authorization": f"Bearer {token}"})


async def ready(web: WebProcess) -> tuple[int, dict[str, str]]:
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


async def test_lost_mongodb_answers_unavailable(tmp_path: Path) -> None:
    async with fragile(tmp_path) as it, subscribed(it.chat, it.ann) as (socket, _):
        it.mongod.kill()
        await it.mongod.wait()
        await assert_unavailable(it)
        assert "Traceback" not in it.web.log_text
        await it.mongod.restart()
        assert await poll_until_true(lambda: is_ready(it.web), 60)
        posted = await post(it.chat, it.ann, "back again")
        assert (await events(socket, 1))[0]["message"] == posted


async def assert_unavailable(it: Fragile) -> None:
    """A known user gets the error in the result; an unknown one gets a refusal instead."""
    assert it.ann.token is not None
    known, stranger, state, code = await asyncio.gather(
        asked(it.web, it.ann.token), asked(it.web, it.web.token("ben")), ready(it.web), closing(it.web, "cem")
    )
    assert known.status_code == 200
    assert stranger.status_code == 503
    assert int(stranger.headers["retry-after"]) >= 1
    for response in (known, stranger):
        extensions = response.json()["errors"][0]["extensions"]
        assert extensions["code"] == "UNAVAILABLE"
        assert extensions["retryAfterMs"] > 0
    assert (state[0], state[1]["status"]) == (503, "not ready")
    assert code == CLOSED


async def closing(web: WebProcess, user: str) -> int | None:
    """Returns the close code of a socket of an unknown user."""
    async with raw_socket(web.url) as ws:
        init = {"type": "connection_init", "payload": {"authorization": f"Bearer {web.token(user)}"}}
        await ws.send(orjson.dumps(init).decode())
        async with asyncio.timeout(60):
            await ws.wait_closed()
        return ws.close_code


async def is_ready(web: WebProcess) -> bool:
    return (await ready(web))[0] == 200


@pytest.mark.soak
async def test_hanging_mongodb_times_out(tmp_path: Path) -> None:
    async with fragile(tmp_path) as it:
        assert it.mongod.pid is not None
        assert it.ann.token is not None
        os.kill(it.mongod.pid, signal.SIGSTOP)
        try:
            began = time.monotonic()
            response = await asked(it.web, it.ann.token)
            assert response.json()["errors"][0]["extensions"]["code"] == "UNAVAILABLE"
            # A read is tried twice, for 10 s each.
            assert time.monotonic() - began < 25
        finally:
            os.kill(it.mongod.pid, signal.SIGCONT)
        assert await poll_until_true(lambda: is_ready(it.web), 60)
        assert (await post(it.chat, it.ann, "back again"))["text"] == "back again"


async def test_lost_redis_only_delays_events(tmp_path: Path) -> None:
    async with fragile(tmp_path) as it, subscribed(it.chat, it.ann) as (socket, _):
        it.valkey.kill()
        await it.valkey.wait()
        status, state = await ready(it.web)
        assert (status, state["status"]) == (200, "ready")
        assert state["redis"].startswith("does not answer")
        posted = await post(it.chat, it.ann, "without Redis")
        # The hub compares heads every 10 s.
        assert (await events(socket, 1, deadline_s=30))[0]["message"] == posted
        await run_mutation(it.ann, "deleteMessage(id: $id)", id=posted["id"])
        await it.valkey.restart()
        assert (await events(socket, 1))[0]["__typename"] == "MessageDeleted"
        assert await poll_until_true(lambda: is_quick(it, socket), 90)
        assert "Traceback" not in it.web.log_text


async def is_quick(it: Fragile, socket: Any) -> bool:
    """Returns whether events arrive as fast as with Redis; a single one may arrive by the comparison of heads."""
    began = time.monotonic()
    for _ in range(3):
        await post(it.chat, it.ann, "quick?")
        await events(socket, 1)
    return time.monotonic() - began < 3


async def test_flushed_redis_loses_no_event(tmp_path: Path) -> None:
    async with fragile(tmp_path) as it, subscribed(it.chat, it.ann) as (socket, _):
        texts = []
        for n in range(3):
            texts.append(f"{n}")
            await post(it.chat, it.ann, texts[-1])
            it.valkey.kill()
            await it.valkey.wait()
            for file in sorted(it.valkey.data.rglob("*")):
                if file.is_file():
                    file.unlink()
            await it.valkey.restart()
        heard = await events(socket, 3)
        assert [event["message"]["text"] for event in heard] == texts

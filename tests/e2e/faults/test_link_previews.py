"""Link previews end to end: title, picture and event. A lost job only delays its preview."""

import asyncio
import os
import signal
import struct
import zlib
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx2
import pymongo
import pytest
from redis.asyncio import Redis

from tests.client import Client, SubscriptionSocket, client
from tests.e2e.chat_topic import ChatTopic, create_chat_topic, events, post, run_mutation, subscribed
from tests.e2e.conftest import DeployedProduct
from tests.jobs.providers.stub_server import StubResponse, StubServer, respond, stub_server
from tests.product import sigstopped
from tests.waiting import poll_until_true

# The sweeper runs every 5 s, and finds messages whose preview has been due for 20 s.
SWEEPER_DEADLINE_S = 90
FORBIDDEN_LINKS = [
    "http://169.254.169.254/latest/meta-data/",
    "http://10.0.0.1/",
    "http://[::ffff:10.0.0.1]/",
    "http://0x0a000001/",
    "http://10.0.0.1:22/",
]

# 169.254.169.254 and 10.0.0.1 in the kernel's notation, with the least significant byte first.
FORBIDDEN_ADDRESSES = {"FEA9FEA9", "0100000A"}
TOPIC_PREVIEWS = """
    query ($topic: ID!) { messages(topicId: $topic, latest: "now") { items { linkPreview { url } } } }
"""

CREATE_POST = "mutation ($text: String!) { createPost(input: { text: $text }) { id } }"
POST_PREVIEW = "query ($id: ID!) { post(id: $id) { linkPreview { title imageUrl } } }"

pytestmark = pytest.mark.anyio


def png(width: int = 2, height: int = 2) -> bytes:
    """Returns a picture of one colour."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = b"".join(b"\x00" + b"\xd0\x40\x20" * width for _ in range(height))
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def page(title: str, image: str = "") -> bytes:
    return f'<meta property="og:title" content="{title}"><meta property="og:image" content="{image}">'.encode()


@dataclass(frozen=True)
class PreviewScenario:
    """A product, a website to link to, and a user who is subscribed to a topic."""

    product: DeployedProduct
    site: StubServer
    ann: Client
    chat: ChatTopic
    socket: SubscriptionSocket

    def redis(self) -> Redis:
        """Connects to the product's Redis."""
        return Redis.from_url(self.product.redis_url)

    async def post_link(self, path: str) -> dict[str, Any]:
        """Posts a message with a link, and reads its event from the socket."""
        posted = await post(self.chat, self.ann, f"see {self.site.url(path)} there")
        assert (await events(self.socket, 1))[0]["__typename"] == "MessagePosted"
        return posted

    async def next_edit(self, deadline_s: float = 60) -> dict[str, Any]:
        """Returns the message of the next event, which must be an edit."""
        (event,) = await events(self.socket, 1, deadline_s)
        assert event["__typename"] == "MessageEdited"
        message: dict[str, Any] = event["message"]
        return message


@asynccontextmanager
async def preview_scenario(product: DeployedProduct, org: str) -> AsyncIterator[PreviewScenario]:
    async with AsyncExitStack() as stack:
        site = await stack.enter_async_context(stub_server())
        ann = await stack.enter_async_context(client(product.url, product.token("ann", org)))
        chat = await create_chat_topic(ann)
        socket, _ = await stack.enter_async_context(subscribed(chat, ann))
        yield PreviewScenario(product, site, ann, chat, socket)


async def test_message_link_gets_preview_and_picture_by_event(product: DeployedProduct) -> None:
    async with preview_scenario(product, "previews") as scenario:
        scenario.site.answers["/page"] = respond(page("The 狼煙 Mountain", scenario.site.url("/picture.png")))
        scenario.site.answers["/picture.png"] = respond(png(), content_type="image/png")
        posted = await scenario.post_link("/page")
        message = await scenario.next_edit()
        assert message["id"] == posted["id"]
        assert message["editedAt"] is None, "A preview must not count as an edit by the author."
        preview = message["linkPreview"]
        assert (preview["title"], preview["url"]) == ("The 狼煙 Mountain", scenario.site.url("/page"))
        assert urlsplit(preview["imageUrl"]).path.startswith("/images/")
        async with httpx2.AsyncClient(timeout=60) as http:
            picture = await http.get(f"{product.url}{urlsplit(preview['imageUrl']).path}")
        assert (picture.status_code, picture.headers["content-type"]) == (200, "image/webp")
        assert preview["image"] | {"blurhash": ""} == {
            "url": preview["imageUrl"],
            "width": 2,
            "height": 2,
            "blurhash": "",
        }
        assert scenario.site.paths() == ["/page", "/picture.png"], "A viewer caused a request to the site."


async def test_post_link_gets_preview_without_event(product: DeployedProduct) -> None:
    async with preview_scenario(product, "post-previews") as scenario:
        scenario.site.answers["/page"] = respond(page("The beacon", scenario.site.url("/picture.png")))
        scenario.site.answers["/picture.png"] = respond(png(), content_type="image/png")
        posted = await scenario.ann.run(CREATE_POST, text=f"see {scenario.site.url('/page')} there")
        id_ = posted["createPost"]["id"]

        async def preview() -> Any:
            return (await scenario.ann.run(POST_PREVIEW, id=id_))["post"]["linkPreview"]

        post_preview = await poll_until_true(preview, interval_s=0.1)
        assert post_preview["title"] == "The beacon"
        assert urlsplit(post_preview["imageUrl"]).path.startswith("/images/")


async def test_edited_link_replaces_preview(product: DeployedProduct) -> None:
    async with preview_scenario(product, "edits") as scenario:
        scenario.site.answers |= {f"/{n}": respond(page(f"Page {n}")) for n in (1, 2)}
        posted = await scenario.post_link("/1")
        assert (await scenario.next_edit())["linkPreview"]["title"] == "Page 1"
        await run_mutation(
            scenario.ann, "editMessage(id: $id, text: $text)", id=posted["id"], text=f"or {scenario.site.url('/2')}"
        )
        assert (await scenario.next_edit())["linkPreview"] is None
        assert (await scenario.next_edit())["linkPreview"]["title"] == "Page 2"
        await run_mutation(scenario.ann, "editMessage(id: $id, text: $text)", id=posted["id"], text="no link")
        assert (await scenario.next_edit())["linkPreview"] is None


async def test_link_to_private_address_is_never_requested(product: DeployedProduct) -> None:
    async with preview_scenario(product, "inside") as scenario:
        connections = asyncio.create_task(connections_to_forbidden_addresses())
        for link in FORBIDDEN_LINKS:
            await post(scenario.chat, scenario.ann, link)
        assert await poll_until_true(lambda: no_preview_is_due(product, scenario.chat), interval_s=0.2)
        assert not connections.done(), connections.result()
        connections.cancel()
        items = (await scenario.ann.run(TOPIC_PREVIEWS, topic=scenario.chat.topic))["messages"]["items"]
        assert [item["linkPreview"] for item in items] == [None] * len(FORBIDDEN_LINKS)


async def connections_to_forbidden_addresses() -> list[str]:
    """Waits for open or attempted connections to forbidden addresses, and returns them."""
    while True:
        with suppress(FileNotFoundError):
            rows = [line.split()[2] for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
            if connections := [row for row in rows if row.partition(":")[0] in FORBIDDEN_ADDRESSES]:
                return connections
        await asyncio.sleep(0.02)


async def no_preview_is_due(product: DeployedProduct, chat: ChatTopic) -> bool:
    """Returns whether no message of the topic waits for its preview."""
    with pymongo.MongoClient[dict[str, Any]](product.mongodb_uri) as mongo:
        query = {"_id.t": chat.topic, "preview_due": {"$exists": True}}
        return mongo["noroshi"]["messages"].count_documents(query) == 0


@pytest.mark.timeout(150)
async def test_lost_job_redis_or_worker_only_delays_preview(product: DeployedProduct) -> None:
    async with preview_scenario(product, "lost") as scenario:
        may_respond = asyncio.Event()
        scenario.site.answers |= {
            "/deleted": respond(page("a")),
            "/unqueued": respond(page("b")),
            "/slow": delayed_response(may_respond),
        }
        posted = [await post_and_delete_job(scenario), await post_while_redis_hangs(scenario)]
        posted.append(await post_and_kill_worker(scenario))
        assert scenario.site.paths() == ["/slow"]
        may_respond.set()
        assert await poll_until_true(lambda: have_previews(scenario, posted), SWEEPER_DEADLINE_S, 0.5)
        assert sorted(scenario.site.paths()) == ["/deleted", "/slow", "/slow", "/unqueued"]


async def post_and_delete_job(scenario: PreviewScenario) -> str:
    worker = scenario.product.processes.child("noroshi worker")
    with sigstopped(worker):
        posted = await scenario.post_link("/deleted")
        async with scenario.redis() as redis:
            deleted = await redis.delete(
                *[key async for key in redis.scan_iter("*") if b"queue" in key or b"arq" in key]
            )
        assert deleted >= 2
    return str(posted["id"])


async def post_while_redis_hangs(scenario: PreviewScenario) -> str:
    redis = scenario.product.processes.child("valkey-server")
    logged_before = len(scenario.product.processes.errors)
    with sigstopped(redis):
        posted = await post(scenario.chat, scenario.ann, f"see {scenario.site.url('/unqueued')}")
    assert "enqueue_failed" in scenario.product.processes.errors[logged_before:]
    return str(posted["id"])


async def post_and_kill_worker(scenario: PreviewScenario) -> str:
    posted = await post(scenario.chat, scenario.ann, f"see {scenario.site.url('/slow')}")
    assert await poll_until_true(lambda: was_requested(scenario.site, "/slow"))
    worker = scenario.product.processes.child("noroshi worker")
    os.kill(worker, signal.SIGKILL)
    return str(posted["id"])


def delayed_response(may_respond: asyncio.Event) -> StubResponse:
    """Returns a response that waits until `may_respond` is set."""

    async def respond_later(writer: asyncio.StreamWriter) -> None:
        await may_respond.wait()
        await respond(page("c"))(writer)

    return respond_later


async def was_requested(site: StubServer, path: str) -> bool:
    return path in site.paths()


async def have_previews(scenario: PreviewScenario, ids: list[str]) -> bool:
    """Returns whether every message has its preview."""
    fields = " ".join(f'm{n}: message(id: "{id_}") {{ linkPreview {{ title }} }}' for n, id_ in enumerate(ids))
    messages = await scenario.ann.run(f"{{ {fields} }}")
    return all(message["linkPreview"] for message in messages.values())

"""Link previews end to end: a page, its picture and an event, and every way in which a job can get lost."""

import asyncio
import os
import signal
import struct
import zlib
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx2
import pymongo
import pytest
from redis.asyncio import Redis

from tests.client import Client, Socket, client
from tests.e2e.chat_topic import ChatTopic, create_chat_topic, events, post, run_mutation, subscribed
from tests.e2e.conftest import DeployedProduct
from tests.jobs.providers.upstream import Answer, Upstream, respond, upstream
from tests.product import running_product
from tests.storage.topic_scenario import poll_until_true

# The sweeper runs every 5 s and finds messages that have waited for 20 s.
LIFELINE_S = 90
FORBIDDEN_LINKS = [
    "http://169.254.169.254/latest/meta-data/",
    "http://10.0.0.1/",
    "http://[::ffff:10.0.0.1]/",
    "http://0x0a000001/",
    "http://10.0.0.1:22/",
]

# The kernel writes addresses with the least significant byte first.
INSIDE = {"FEA9FEA9", "0100000A"}
LINKS = """
    query ($topic: ID!) { messages(topicId: $topic, latest: "now") { items { linkPreview { url } } } }
"""

CREATE_POST = "mutation ($text: String!) { createPost(input: { text: $text }) { id } }"
POST_PREVIEW = "query ($id: ID!) { post(id: $id) { linkPreview { title imageUrl } } }"

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def breakable(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DeployedProduct]:
    """A product of these tests' own, whose processes may be killed."""
    data_dir = tmp_path_factory.mktemp("breakable") / "data"
    with running_product(data_dir, NOROSHI_EGRESS_ALLOW="127.0.0.0/8") as processes:
        yield DeployedProduct(processes.url, data_dir, processes)


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
class Stage:
    """A product, a site to link to, and a user subscribed to a topic."""

    product: DeployedProduct
    site: Upstream
    ann: Client
    chat: ChatTopic
    socket: Socket

    def redis(self) -> Redis:
        """The product's MongoDB."""
        return Redis(port=int((self.product.data_dir / "redis" / "port").read_text()))

    async def post_link(self, path: str) -> dict[str, Any]:
        """Posts a text, and reads its own event from the socket."""
        posted = await post(self.chat, self.ann, f"see {self.site.url(path)} there")
        assert (await events(self.socket, 1))[0]["__typename"] == "MessagePosted"
        return posted

    async def edited(self, deadline_s: float = 60) -> dict[str, Any]:
        """Returns the message of the next event, which must be an edit."""
        (event,) = await events(self.socket, 1, deadline_s)
        assert event["__typename"] == "MessageEdited"
        message: dict[str, Any] = event["message"]
        return message


@asynccontextmanager
async def staged(product: DeployedProduct, org: str) -> AsyncIterator[Stage]:
    async with AsyncExitStack() as stack:
        site = await stack.enter_async_context(upstream())
        ann = await stack.enter_async_context(client(product.url, product.token("ann", org)))
        chat = await create_chat_topic(ann)
        socket, _ = await stack.enter_async_context(subscribed(chat, ann))
        yield Stage(product, site, ann, chat, socket)


async def test_message_link_gets_preview_and_picture_by_event(product: DeployedProduct) -> None:
    async with staged(product, "previews") as it:
        it.site.answers["/page"] = respond(page("The 狼煙 Mountain", it.site.url("/picture.png")))
        it.site.answers["/picture.png"] = respond(png(), content_type="image/png")
        posted = await it.post_link("/page")
        message = await it.edited()
        assert message["id"] == posted["id"]
        assert message["editedAt"] is None, "A preview is no edit by the author."
        preview = message["linkPreview"]
        assert (preview["title"], preview["url"]) == ("The 狼煙 Mountain", it.site.url("/page"))
        assert urlsplit(preview["imageUrl"]).path.startswith("/images/")
        async with httpx2.AsyncClient(timeout=60) as http:
            picture = await http.get(f"{product.url}{urlsplit(preview['imageUrl']).path}")
        assert (picture.status_code, picture.headers["content-type"]) == (200, "image/png")
        assert picture.content == png()


async def test_post_link_gets_preview_without_event(product: DeployedProduct) -> None:
    async with staged(product, "post-previews") as it:
        it.site.answers["/page"] = respond(page("The beacon", it.site.url("/picture.png")))
        posted = await it.ann.run(CREATE_POST, text=f"see {it.site.url('/page')} there")
        id_ = posted["createPost"]["id"]

        async def preview() -> Any:
            return (await it.ann.run(POST_PREVIEW, id=id_))["post"]["linkPreview"]

        found = await poll_until_true(preview)
        assert found["title"] == "The beacon"
        assert urlsplit(found["imageUrl"]).path.startswith("/images/")


async def test_edited_link_replaces_preview(product: DeployedProduct) -> None:
    async with staged(product, "edits") as it:
        it.site.answers |= {f"/{n}": respond(page(f"Page {n}")) for n in (1, 2)}
        posted = await it.post_link("/1")
        assert (await it.edited())["linkPreview"]["title"] == "Page 1"
        await run_mutation(it.ann, "editMessage(id: $id, text: $text)", id=posted["id"], text=f"or {it.site.url('/2')}")
        assert (await it.edited())["linkPreview"] is None
        assert (await it.edited())["linkPreview"]["title"] == "Page 2"
        await run_mutation(it.ann, "editMessage(id: $id, text: $text)", id=posted["id"], text="no link")
        assert (await it.edited())["linkPreview"] is None


async def test_link_to_private_address_is_never_requested(product: DeployedProduct) -> None:
    async with staged(product, "inside") as it:
        connections = asyncio.create_task(connections_inside())
        for link in FORBIDDEN_LINKS:
            await post(it.chat, it.ann, link)
        assert await poll_until_true(lambda: all_looked_at(product, it.chat))
        assert not connections.done(), connections.result()
        connections.cancel()
        items = (await it.ann.run(LINKS, topic=it.chat.topic))["messages"]["items"]
        assert [item["linkPreview"] for item in items] == [None] * len(FORBIDDEN_LINKS)


async def connections_inside() -> list[str]:
    """Waits for connections, open or attempted, to forbidden addresses, and returns them."""
    while True:
        with suppress(FileNotFoundError):
            rows = [line.split()[2] for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
            if found_rows := [row for row in rows if row.partition(":")[0] in INSIDE]:
                return found_rows
        await asyncio.sleep(0.02)


async def all_looked_at(product: DeployedProduct, chat: ChatTopic) -> bool:
    """Returns whether no message waits for its preview."""
    port = (product.data_dir / "mongodb" / "port").read_text()
    with pymongo.MongoClient[dict[str, Any]](f"mongodb://127.0.0.1:{port}/?directConnection=true") as connected:
        waiting = {"_id.t": chat.topic, "preview_due": {"$exists": True}}
        return connected["noroshi"]["messages"].count_documents(waiting) == 0


@pytest.mark.timeout(150)
async def test_lost_job_redis_or_worker_only_delays_preview(breakable: DeployedProduct) -> None:
    async with staged(breakable, "lost") as it:
        release = asyncio.Event()
        it.site.answers |= {"/erased": respond(page("a")), "/unsaid": respond(page("b")), "/slow": held(release)}
        posted = [await post_and_erase_its_job(it), await post_while_redis_hangs(it)]
        posted.append(await post_and_kill_the_worker(it))
        assert it.site.paths() == ["/slow"]
        release.set()
        assert await poll_until_true(lambda: previewed(it, posted), LIFELINE_S)
        assert sorted(it.site.paths()) == ["/erased", "/slow", "/slow", "/unsaid"]


async def post_and_erase_its_job(it: Stage) -> str:
    worker = it.product.processes.child("noroshi worker")
    with stopped(worker):
        posted = await it.post_link("/erased")
        async with it.redis() as redis:
            erased = await redis.delete(
                *[key async for key in redis.scan_iter("*") if b"queue" in key or b"arq" in key]
            )
        assert erased >= 2
    return str(posted["id"])


async def post_while_redis_hangs(it: Stage) -> str:
    redis = it.product.processes.child("valkey-server")
    with stopped(redis):
        posted = await post(it.chat, it.ann, f"see {it.site.url('/unsaid')}")
    assert "enqueue_failed" in it.product.processes.errors
    return str(posted["id"])


async def post_and_kill_the_worker(it: Stage) -> str:
    posted = await post(it.chat, it.ann, f"see {it.site.url('/slow')}")
    assert await poll_until_true(lambda: asked_for(it.site, "/slow"))
    worker = it.product.processes.child("noroshi worker")
    os.kill(worker, signal.SIGKILL)
    return str(posted["id"])


@contextmanager
def stopped(pid: int) -> Iterator[None]:
    """Stops the process with SIGSTOP, and continues it afterwards."""
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def held(release: asyncio.Event) -> Answer:
    """Responds after it is released."""

    async def answer(writer: asyncio.StreamWriter) -> None:
        await release.wait()
        await respond(page("c"))(writer)

    return answer


async def asked_for(site: Upstream, path: str) -> bool:
    return path in site.paths()


async def previewed(it: Stage, ids: list[str]) -> bool:
    """Returns whether every message has its preview."""
    query = "query ($id: ID!) { message(id: $id) { linkPreview { title } } }"
    messages = [(await it.ann.run(query, id=id_))["message"] for id_ in ids]
    await asyncio.sleep(0.2)
    return all(message["linkPreview"] for message in messages)

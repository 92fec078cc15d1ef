"""Fan-out by real workers delivers once through refused inserts, killed workers and a flushed Redis."""

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from server.auth.tokens import mint
from storage.mongo import Driver, Mongo, connect
from tests.client import Client, Socket, client
from tests.e2e.followers import add_followers, copies_by_reader
from tests.product import Product, running_product
from tests.resolvers.people import CREATE_POST
from tests.serving import WebProcess, web_process, worker_process
from tests.storage.topic_scenario import poll_until_true

pytestmark = pytest.mark.anyio

FAN_OUT = "query ($id: ID!) { post(id: $id) { timestamp fanOut { state total delivered failed } } }"
HOME = '{ homeFeed(latest: "now") { items { id text } } }'
FOLLOW = "mutation ($id: ID!) { follow(userId: $id) { followerCount } }"
LISTEN = """
subscription { homeFeedEvents { type: __typename ... on PostArrived { post { text } } ... on PostRemoved { postId } } }
"""
JOBS = """
subscription ($id: ID!) { jobEvents(jobId: $id) { type: __typename ... on FanOutChanged { fanOut { state } } } }
"""


@pytest.fixture(scope="module")
def two_webs(
    tmp_path_factory: pytest.TempPathFactory, mongodb_uri: str, redis_url: str
) -> Iterator[tuple[WebProcess, WebProcess]]:
    folder = tmp_path_factory.mktemp("webs")
    with (
        web_process(folder / "one", mongodb_uri, redis_url) as one,
        web_process(folder / "other", mongodb_uri, redis_url, one) as other,
    ):
        yield one, other


async def create(person: Client, text: str) -> str:
    return str((await person.run(CREATE_POST, input={"text": text}))["done"]["id"])


async def texts(person: Client) -> list[str]:
    return [item["text"] for item in (await person.run(HOME))["homeFeed"]["items"]]


async def heard(socket: Socket) -> dict[str, object]:
    return await socket.event()


async def test_author_sees_own_post_at_once_on_any_process(two_webs: tuple[WebProcess, WebProcess]) -> None:
    one, other = two_webs
    async with client(one.url, one.token("ann")) as here, client(other.url, one.token("ann")) as there:
        for n in range(10):
            await create((here, there)[n % 2], str(n))
            assert (await texts((there, here)[n % 2]))[0] == str(n)


async def test_post_reaches_followers_and_progress_its_author(
    two_webs: tuple[WebProcess, WebProcess], tmp_path: Path, mongodb_uri: str, redis_url: str
) -> None:
    one, other = two_webs
    with worker_process(tmp_path / "worker", mongodb_uri, redis_url, one.database):
        tokens = [one.token(name, "globex") for name in ("ann", "bob")]
        async with client(one.url, tokens[0]) as ann, client(other.url, tokens[1]) as bob:
            await ann.run("{ viewer { id } }")
            await bob.run(FOLLOW, id="ann")
            async with bob.socket() as to_bob, ann.socket() as to_ann:
                await to_bob.start(LISTEN)
                assert (await heard(to_bob))["type"] == "StreamReady"
                id_ = await create(ann, "lit")
                await to_ann.start(JOBS, id=id_)
                assert (await heard(to_bob))["post"] == {"text": "lit"}
                assert (await heard(to_ann))["type"] == "StreamReady"
                await ann.run("mutation ($id: ID!) { deletePost(id: $id) { id } }", id=id_)
                assert await heard(to_bob) == {"type": "PostRemoved", "postId": id_}
                assert (await heard(to_ann))["type"] == "FanOutChanged"
            assert await texts(bob) == []


class Storm:
    """A product whose workers are killed repeatedly during a fan-out."""

    def __init__(self, product: Product, mongo: Mongo, kills: int) -> None:
        self.product, self.mongo, self.kills = product, mongo, kills

    async def refuse(self, names: list[str]) -> None:
        validator = {"_id.u": {"$nin": names}} if names else {}
        await self.mongo.database.command("collMod", "feed_items", validator=validator)

    async def rage(self) -> None:
        """Kills the running worker each time it progressed, and once Redis, which keeps no data."""
        for number in range(self.kills):
            before = await self.reached()
            pid = self.product.child("noroshi worker")

            async def moved(before: int = before) -> bool:
                return await self.reached() > before or await self.is_done()

            await poll_until_true(moved, 60)
            os.kill(pid, signal.SIGKILL)
            if number == self.kills // 2:
                redis = self.product.child("valkey-server", "redis-server")
                for file in self.product.data_dir.glob("**/appendonlydir/*"):
                    file.unlink()
                os.kill(redis, signal.SIGKILL)

    async def reached(self) -> int:
        return await self.mongo["feed_items"].estimated_document_count()

    async def is_done(self) -> bool:
        return await self.mongo["fan_outs"].find_one({"open": True}) is None


async def weathered(folder: Path, driver: Driver, followers: int, kills: int, patience_s: float) -> None:
    variables = {"NOROSHI_FAN_OUT_MAX_FOLLOWERS": str(10 * followers), "NOROSHI_MONGO_DRIVER": driver}
    with running_product(folder / "data", **variables) as product:
        mongo = connect(_mongodb_uri(product), "noroshi", driver)
        storm = Storm(product, mongo, kills)
        async with client(product.url, _token(product, "ann")) as ann:
            await ann.run("{ viewer { id } }")
            names = await add_followers(mongo, "acme", "ann", followers)
            refused = names[::100]
            # Half of the refused readers recover after a while, as after a failover; the others never do.
            await storm.refuse(refused)
            id_ = await create(ann, "lit")
            timestamp = int((await ann.run(FAN_OUT, id=id_))["post"]["timestamp"].replace(".", ""))
            await storm.rage()
            await storm.refuse(refused[::2])

            async def done() -> bool:
                return bool((await ann.run(FAN_OUT, id=id_))["post"]["fanOut"]["state"] == "COMPLETED")

            assert await poll_until_true(done, patience_s)
            fan_out = (await ann.run(FAN_OUT, id=id_))["post"]["fanOut"]
        found = await copies_by_reader(mongo, "acme", timestamp)
        await mongo.close()
    lost = set(names) - found.keys()
    assert set(found.values()) == {1}
    assert set(refused[::2]) <= lost <= set(refused)
    assert fan_out == {
        "state": "COMPLETED", "total": followers, "delivered": followers - len(lost), "failed": len(lost)
    }  # fmt: skip


def _mongodb_uri(product: Product) -> str:
    command = next(command for command in product.children().values() if "mongod" in command.split()[0])
    words = command.split()
    return f"mongodb://127.0.0.1:{words[words.index('--port') + 1]}/?directConnection=true"


def _token(product: Product, user: str) -> str:
    secret = json.loads((product.data_dir / "secrets.json").read_text())["auth_secret"]
    return mint(secret, user_id=user, organization_id="acme")


async def test_fan_out_through_faults_delivers_once(tmp_path: Path, mongo_driver: Driver) -> None:
    await weathered(tmp_path, mongo_driver, followers=2000, kills=2, patience_s=150)


@pytest.mark.soak
@pytest.mark.timeout(0)
async def test_fan_out_to_50_000_through_kills_delivers_once(tmp_path: Path, mongo_driver: Driver) -> None:
    await weathered(tmp_path, mongo_driver, followers=50_000, kills=20, patience_s=300)

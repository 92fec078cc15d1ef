"""Fan-out by real workers delivers each post once, through rejected inserts, killed workers and an emptied Redis."""

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from server.auth.tokens import mint
from storage.mongo import Driver, Mongo, connect
from tests.client import Client, client
from tests.e2e.followers import add_followers, copies_by_reader
from tests.product import RunningProduct, running_product
from tests.resolvers.people import CREATE_POST
from tests.serving import WebProcess, web_process, worker_process
from tests.waiting import poll_until_true

pytestmark = pytest.mark.anyio

FAN_OUT = "query ($id: ID!) { post(id: $id) { timestamp fanOut { state total delivered failed } } }"
HOME_FEED = '{ homeFeed(latest: "now") { items { id text } } }'
FOLLOW = "mutation ($id: ID!) { follow(userId: $id) { followerCount } }"
HOME_FEED_EVENTS = """
subscription { homeFeedEvents { type: __typename ... on PostArrived { post { text } } ... on PostRemoved { postId } } }
"""
JOB_EVENTS = """
subscription ($id: ID!) { jobEvents(jobId: $id) { type: __typename ... on FanOutChanged { fanOut { state } } } }
"""


@pytest.fixture(scope="module")
def two_web_processes(
    tmp_path_factory: pytest.TempPathFactory, mongodb_uri: str, redis_url: str
) -> Iterator[tuple[WebProcess, WebProcess]]:
    folder = tmp_path_factory.mktemp("webs")
    with (
        web_process(folder / "one", mongodb_uri, redis_url) as one,
        web_process(folder / "other", mongodb_uri, redis_url, one) as other,
    ):
        yield one, other


async def create_post(person: Client, text: str) -> str:
    return str((await person.run(CREATE_POST, input={"text": text}))["done"]["id"])


async def home_feed_texts(person: Client) -> list[str]:
    return [item["text"] for item in (await person.run(HOME_FEED))["homeFeed"]["items"]]


async def test_author_sees_own_post_at_once_on_any_process(two_web_processes: tuple[WebProcess, WebProcess]) -> None:
    one, other = two_web_processes
    async with client(one.url, one.token("ann")) as ann_on_one, client(other.url, one.token("ann")) as ann_on_other:
        for n in range(10):
            await create_post((ann_on_one, ann_on_other)[n % 2], str(n))
            assert (await home_feed_texts((ann_on_other, ann_on_one)[n % 2]))[0] == str(n)


async def test_post_reaches_followers_and_progress_its_author(
    two_web_processes: tuple[WebProcess, WebProcess], tmp_path: Path, mongodb_uri: str, redis_url: str
) -> None:
    one, other = two_web_processes
    with worker_process(tmp_path / "worker", mongodb_uri, redis_url, one.database):
        tokens = [one.token(name, "globex") for name in ("ann", "bob")]
        async with client(one.url, tokens[0]) as ann, client(other.url, tokens[1]) as bob:
            await ann.run("{ viewer { id } }")
            await bob.run(FOLLOW, id="ann")
            async with bob.socket() as bobs_socket, ann.socket() as anns_socket:
                await bobs_socket.subscribe(HOME_FEED_EVENTS)
                assert (await bobs_socket.next_event())["type"] == "StreamReady"
                id_ = await create_post(ann, "lit")
                await anns_socket.subscribe(JOB_EVENTS, id=id_)
                assert (await bobs_socket.next_event())["post"] == {"text": "lit"}
                assert (await anns_socket.next_event())["type"] == "StreamReady"
                await ann.run("mutation ($id: ID!) { deletePost(id: $id) { id } }", id=id_)
                assert await bobs_socket.next_event() == {"type": "PostRemoved", "postId": id_}
                assert (await anns_socket.next_event())["type"] == "FanOutChanged"
            assert await home_feed_texts(bob) == []


class FanOutFaults:
    """Injects faults into a product during a fan-out."""

    def __init__(self, product: RunningProduct, mongo: Mongo, kills: int) -> None:
        self.product, self.mongo, self.kills = product, mongo, kills

    async def reject_inserts_for(self, names: list[str]) -> None:
        """Makes MongoDB reject feed items of these readers, and of no others."""
        validator = {"_id.u": {"$nin": names}} if names else {}
        await self.mongo.database.command("collMod", "feed_items", validator=validator)

    async def kill_workers_and_redis(self) -> None:
        """Kills the worker each time the fan-out has progressed. Midway, also kills Redis and deletes its data."""
        for number in range(self.kills):
            count_before = await self.delivered_count()
            pid = self.product.child("noroshi worker")

            async def has_progressed(count_before: int = count_before) -> bool:
                return await self.delivered_count() > count_before or await self.is_completed()

            await poll_until_true(has_progressed, 60)
            os.kill(pid, signal.SIGKILL)
            if number == self.kills // 2:
                redis = self.product.child("valkey-server", "redis-server")
                for file in self.product.data_dir.glob("**/appendonlydir/*"):
                    file.unlink()
                os.kill(redis, signal.SIGKILL)

    async def delivered_count(self) -> int:
        return await self.mongo["feed_items"].estimated_document_count()

    async def is_completed(self) -> bool:
        return await self.mongo["fan_outs"].find_one({"open": True}) is None


async def assert_fan_out_survives_faults(
    folder: Path, driver: Driver, followers: int, kills: int, deadline_s: float
) -> None:
    variables = {"NOROSHI_FAN_OUT_MAX_FOLLOWERS": str(10 * followers), "NOROSHI_MONGO_DRIVER": driver}
    with running_product(folder / "data", **variables) as product:
        mongo = connect(_mongodb_uri(product), "noroshi", driver)
        faults = FanOutFaults(product, mongo, kills)
        async with client(product.url, _token(product, "ann")) as ann:
            await ann.run("{ viewer { id } }")
            names = await add_followers(mongo, "acme", "ann", followers)
            rejected = names[::100]
            # Inserts for half of the rejected readers succeed later, as after a failover. The others never succeed.
            await faults.reject_inserts_for(rejected)
            id_ = await create_post(ann, "lit")
            timestamp = int((await ann.run(FAN_OUT, id=id_))["post"]["timestamp"].replace(".", ""))
            await faults.kill_workers_and_redis()
            await faults.reject_inserts_for(rejected[::2])

            async def is_complete() -> bool:
                return bool((await ann.run(FAN_OUT, id=id_))["post"]["fanOut"]["state"] == "COMPLETED")

            assert await poll_until_true(is_complete, deadline_s)
            fan_out = (await ann.run(FAN_OUT, id=id_))["post"]["fanOut"]
        copies = await copies_by_reader(mongo, "acme", timestamp)
        await mongo.close()
    failed = set(names) - copies.keys()
    assert set(copies.values()) == {1}
    assert set(rejected[::2]) <= failed <= set(rejected)
    assert fan_out == {
        "state": "COMPLETED", "total": followers, "delivered": followers - len(failed), "failed": len(failed)
    }  # fmt: skip


def _mongodb_uri(product: RunningProduct) -> str:
    return f"mongodb://127.0.0.1:{product.database_port('mongod')}/?directConnection=true"


def _token(product: RunningProduct, user: str) -> str:
    secret = json.loads((product.data_dir / "secrets.json").read_text())["auth_secret"]
    return mint(secret, user_id=user, organization_id="acme")


async def test_fan_out_through_faults_delivers_once(tmp_path: Path, mongo_driver: Driver) -> None:
    await assert_fan_out_survives_faults(tmp_path, mongo_driver, followers=2000, kills=2, deadline_s=150)


@pytest.mark.soak
@pytest.mark.timeout(0)
async def test_fan_out_to_50_000_through_kills_delivers_once(tmp_path: Path, mongo_driver: Driver) -> None:
    await assert_fan_out_survives_faults(tmp_path, mongo_driver, followers=50_000, kills=20, deadline_s=300)

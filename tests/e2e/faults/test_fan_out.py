"""Fan-out by real workers delivers each post once, through rejected inserts, killed workers and an emptied Redis."""

import os
import signal
from pathlib import Path

import pytest

from storage.mongo import Driver, Mongo, connect
from tests.client import Client, client
from tests.e2e.conftest import DeployedProduct
from tests.e2e.followers import add_followers, copies_by_reader
from tests.product import processes, running_product
from tests.resolvers.people import CREATE_POST
from tests.waiting import poll_until_true, until

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


async def create_post(person: Client, text: str) -> str:
    return str((await person.run(CREATE_POST, input={"text": text}))["done"]["id"])


async def home_feed_texts(person: Client) -> list[str]:
    return [item["text"] for item in (await person.run(HOME_FEED))["homeFeed"]["items"]]


async def test_author_sees_own_post_at_once_on_any_process(product: DeployedProduct) -> None:
    """Each request opens a connection of its own, which either web process accepts."""
    token = product.token("ann", "own-posts")
    for n in range(20):
        async with client(product.url, token) as writing, client(product.url, token) as reading:
            await create_post(writing, str(n))
            assert (await home_feed_texts(reading))[0] == str(n)


async def test_post_reaches_followers_and_progress_its_author(product: DeployedProduct) -> None:
    tokens = [product.token(name, "progress") for name in ("ann", "bob")]
    async with client(product.url, tokens[0]) as ann, client(product.url, tokens[1]) as bob:
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
    """Injects faults into a product during the fan-out of a post of an organization."""

    def __init__(self, product: DeployedProduct, mongo: Mongo, kills: int) -> None:
        self.product, self.mongo, self.kills = product, mongo, kills

    async def reject_inserts_for(self, names: list[str]) -> None:
        """Makes MongoDB reject feed items of these readers, and of no others."""
        readers = {"_id.o": self.product.organization, "_id.u": {"$in": names}}
        await self.mongo.database.command("collMod", "feed_items", validator={"$nor": [readers]} if names else {})

    async def kill_workers_and_redis(self) -> None:
        """Kills the worker each time the fan-out has progressed. Midway, also kills Redis and deletes its data."""
        for number in range(self.kills):
            await self.kill_worker()
            if number == self.kills // 2:
                redis = self.product.processes.child("valkey-server", "redis-server")
                for file in self.product.data_dir.glob("**/appendonlydir/*"):
                    file.unlink()
                os.kill(redis, signal.SIGKILL)

    async def kill_worker(self) -> None:
        """Kills the worker once the fan-out has progressed, and waits until no process list shows it."""
        count_before = await self.delivered_count()
        pid = self.product.processes.child("noroshi worker")

        async def has_progressed() -> bool:
            return await self.delivered_count() > count_before or await self.is_completed()

        await poll_until_true(has_progressed, 60)
        os.kill(pid, signal.SIGKILL)
        await until(lambda: pid not in processes())

    async def delivered_count(self) -> int:
        return await self.mongo["feed_items"].estimated_document_count()

    async def is_completed(self) -> bool:
        return await self.mongo["fan_outs"].find_one({"open": True}) is None


async def assert_fan_out_survives_faults(
    product: DeployedProduct, driver: Driver, followers: int, kills: int, deadline_s: float
) -> None:
    mongo = connect(product.mongodb_uri, "noroshi", driver)
    faults = FanOutFaults(product, mongo, kills)
    try:
        async with client(product.url, product.token("ann")) as ann:
            await ann.run("{ viewer { id } }")
            names = await add_followers(mongo, product.organization, "ann", followers)
            rejected = names[::100]
            # Inserts for half of the rejected readers succeed later, as after a failover. The others never succeed.
            await faults.reject_inserts_for(rejected)
            id_ = await create_post(ann, "lit")
            timestamp = int((await ann.run(FAN_OUT, id=id_))["post"]["timestamp"].replace(".", ""))
            await faults.kill_workers_and_redis()
            await faults.reject_inserts_for(rejected[::2])

            async def is_complete() -> bool:
                return bool((await ann.run(FAN_OUT, id=id_))["post"]["fanOut"]["state"] == "COMPLETED")

            assert await poll_until_true(is_complete, deadline_s, 0.2)
            fan_out = (await ann.run(FAN_OUT, id=id_))["post"]["fanOut"]
        copies = await copies_by_reader(mongo, product.organization, timestamp)
    finally:
        await faults.reject_inserts_for([])
        await mongo.close()
    failed = set(names) - copies.keys()
    assert set(copies.values()) == {1}
    assert set(rejected[::2]) <= failed <= set(rejected)
    assert fan_out == {
        "state": "COMPLETED", "total": followers, "delivered": followers - len(failed), "failed": len(failed)
    }  # fmt: skip


async def test_fan_out_through_faults_delivers_once(product: DeployedProduct, mongo_driver: Driver) -> None:
    await assert_fan_out_survives_faults(product, mongo_driver, followers=2000, kills=2, deadline_s=150)


@pytest.mark.soak
@pytest.mark.timeout(0)
async def test_fan_out_to_50_000_through_kills_delivers_once(tmp_path: Path, mongo_driver: Driver) -> None:
    variables = {"NOROSHI_FAN_OUT_MAX_FOLLOWERS": "500000", "NOROSHI_MONGO_DRIVER": mongo_driver}
    with running_product(tmp_path / "data", **variables) as processes:
        product = DeployedProduct(processes.url, tmp_path / "data", processes)
        await assert_fan_out_survives_faults(product, mongo_driver, followers=50_000, kills=20, deadline_s=300)

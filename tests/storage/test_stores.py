"""Opening, using and closing the stores of a process, with and without Redis."""

import asyncio
from dataclasses import fields, replace
from typing import Any

import pytest

from storage.ids import new_id
from storage.mongo import Driver
from storage.stores import Stores, open_stores
from storage.stores.dead_workers import release_leases_of
from tests.databases import fresh_database
from tests.storage.topic_scenario import OpenStores, create_topic_scenario
from tests.waiting import poll_until_true

pytestmark = pytest.mark.anyio

UNREACHABLE_REDIS_URL = "redis://127.0.0.1:1/0"


async def test_processes_start_together_on_empty_database(
    mongodb_uri: str, redis_url: str, mongo_driver: Driver
) -> None:
    with fresh_database(mongodb_uri, redis_url) as name:

        async def post() -> None:
            async with open_stores(mongodb_uri, redis_url, name, mongo_driver) as stores:
                await (await create_topic_scenario(stores)).post()

        await asyncio.gather(*(post() for _ in range(4)))


async def test_stores_without_redis_work_and_close_in_time(open_process: OpenStores) -> None:
    async with asyncio.timeout(30), open_process(UNREACHABLE_REDIS_URL) as stores:
        scenario = await create_topic_scenario(stores)
        message = await scenario.post()
        assert await stores.messages.get(message.key) == message


def releasing_stores(stores: Stores) -> list[str]:
    """Returns the names of the stores that can release the leases of a dead worker."""
    return [each.name for each in fields(stores) if hasattr(getattr(stores, each.name), "release_of")]


async def test_leases_of_dead_worker_are_released_everywhere(shared_stores: Stores, open_process: OpenStores) -> None:
    """Every store that can release leases is asked, and knows the name under which its process is opened."""
    dead, other = f"dead-{new_id()}", f"other-{new_id()}"
    assert releasing_stores(shared_stores)
    for name in releasing_stores(shared_stores):
        store = ReleasingStore()
        changed: dict[str, Any] = {name: store}
        assert await release_leases_of(replace(shared_stores, **changed), dead) == 1, name
        assert store.workers == [dead]
    async with open_process(worker=dead) as stores:
        names = {getattr(stores, name)._worker for name in releasing_stores(stores)}
        locks = [await stores.locks.acquire(f"test:{new_id()}"), await shared_stores.locks.acquire(f"test:{new_id()}")]
    assert names == {dead}
    assert await release_leases_of(shared_stores, other) == 0
    assert await release_leases_of(shared_stores, dead) == 1
    assert [await shared_stores.locks.renew(lock) for lock in locks if lock] == [False, True]


class ReleasingStore:
    """A store in which each worker holds one lease."""

    def __init__(self) -> None:
        self.workers: list[str] = []

    async def release_of(self, worker: str) -> int:
        self.workers.append(worker)
        return 1


async def test_closing_stores_leaves_no_task(open_process: OpenStores) -> None:
    tasks_before = asyncio.all_tasks()
    async with open_process() as stores:
        scenario = await create_topic_scenario(stores)
        await asyncio.gather(*(scenario.post() for _ in range(20)))
        async with stores.hub.subscribe(scenario.stream):
            pass

    def is_nothing_left() -> bool:
        return not asyncio.all_tasks() - tasks_before

    # The driver's tasks end a moment after its connections are closed.
    assert await poll_until_true(is_nothing_left), asyncio.all_tasks() - tasks_before


async def test_closing_stores_finishes_submitted_commits(shared_stores: Stores, open_process: OpenStores) -> None:
    scenario = await create_topic_scenario(shared_stores)
    async with open_process() as stores:
        other_process = scenario.with_stores(stores)
        posting = [asyncio.create_task(other_process.post()) for _ in range(20)]
        await asyncio.sleep(0)
    await asyncio.gather(*posting)
    assert len(await scenario.messages()) == 20

"""Outbox rows are relayed once and in order, also if the process that wrote them dies."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import aclosing
from typing import ClassVar

import pytest
from bson import ObjectId

from server.embedded import Mongod
from storage.ids import new_id
from storage.mongo import Document, Mongo, Session
from storage.stores import Stores
from storage.streams.changes import Batch
from storage.streams.log import Stream
from storage.streams.outbox import RELAY_LIMIT, Outbox, OutboxRelay, add_rows
from storage.streams.sequencer import Sequencer
from tests.storage.faults import failpoint
from tests.storage.topic_scenario import OpenStores
from tests.waiting import poll_until_true

pytestmark = pytest.mark.anyio


class CopyRelay(OutboxRelay):
    """A relay that emits an event for each row without delay."""

    async def load(self, mongo: Mongo, session: Session, rows: Sequence[Document], batch: Batch) -> None:
        return

    def relay(self, row: Document, batch: Batch) -> float:
        batch.emit("Copied", row["ref"])
        return 0.0


class GatedRelay(CopyRelay):
    """A relay that defers rows until the gate is set, and counts its tries."""

    gate: ClassVar[asyncio.Event]
    tries: ClassVar[int] = 0
    wait_s: ClassVar[float] = 0.1

    def relay(self, row: Document, batch: Batch) -> float:
        GatedRelay.tries += 1
        return CopyRelay.relay(self, row, batch) if GatedRelay.gate.is_set() else GatedRelay.wait_s


class OutboxScenario:
    """A stream, and one process's outbox and sequencer for it."""

    def __init__(self, stores: Stores, stream: Stream | None = None) -> None:
        self.stores = stores
        self.stream = stream or Stream("user", f"org/{new_id()}")
        self.outbox = Outbox(stores.mongo, {"CopyRelay": CopyRelay, "GatedRelay": GatedRelay})
        self._sequencer = Sequencer(stores.mongo, lambda *_: None, self.outbox.nudge)
        self.outbox.start(self._sequencer)

    async def aclose(self) -> None:
        await self.outbox.close()
        await self._sequencer.close()

    async def insert_rows(self, count: int, kind: str = "CopyRelay", age_s: float = 0) -> None:
        """Inserts outbox rows without a nudge, like a process that dies before it relays them."""
        rows = [{"_id": ObjectId(), "stream": self.stream.name, "kind": kind, "ref": n} for n in range(count)]
        await self.stores.mongo["outbox"].insert_many(rows)
        written_at = {"$subtract": ["$$NOW", int(age_s * 1000)]}
        ids = [row["_id"] for row in rows]
        await self.stores.mongo["outbox"].update_many({"_id": {"$in": ids}}, [{"$set": {"at": written_at}}])

    async def relayed_refs(self) -> list[int]:
        """Returns the references of the relayed rows, in the order of the stream."""
        events = await self.stores.events.read(self.stream, 0, limit=10_000)
        assert [event.n for event in events] == list(range(1, len(events) + 1))
        return [event.ref for event in events]

    async def row_count(self) -> int:
        return await self.stores.mongo["outbox"].count_documents({"stream": self.stream.name})

    async def is_empty(self) -> bool:
        return await self.row_count() == 0


OpenScenario = Callable[..., OutboxScenario]


@pytest.fixture
async def open_scenario(shared_stores: Stores) -> AsyncIterator[OpenScenario]:
    """A function that creates scenarios, each with the outbox of a separate process. They are closed after the test."""
    scenarios: list[OutboxScenario] = []

    def new_scenario(stores: Stores = shared_stores, stream: Stream | None = None) -> OutboxScenario:
        scenarios.append(OutboxScenario(stores, stream))
        return scenarios[-1]

    yield new_scenario
    for scenario in scenarios:
        await scenario.aclose()


@pytest.fixture
def scenario(open_scenario: OpenScenario) -> OutboxScenario:
    return open_scenario()


async def test_outbox_rows_are_relayed_in_order_and_deleted(scenario: OutboxScenario) -> None:
    await scenario.insert_rows(3)
    scenario.outbox.nudge(scenario.stream.name)
    assert await poll_until_true(scenario.is_empty)
    assert await scenario.relayed_refs() == [0, 1, 2]


async def test_one_nudge_relays_more_rows_than_one_commit_takes(scenario: OutboxScenario) -> None:
    await scenario.insert_rows(2 * RELAY_LIMIT + 10)
    scenario.outbox.nudge(scenario.stream.name)
    assert await poll_until_true(scenario.is_empty)
    assert await scenario.relayed_refs() == list(range(2 * RELAY_LIMIT + 10))


async def test_concurrent_processes_relay_each_row_once(scenario: OutboxScenario, open_process: OpenStores) -> None:
    async with open_process() as stores, aclosing(OutboxScenario(stores, scenario.stream)) as other:
        scenarios = [scenario, other]
        for _ in range(5):
            await scenario.insert_rows(100)
            for each in scenarios:
                each.outbox.nudge(scenario.stream.name)
        assert await poll_until_true(scenario.is_empty)
        assert await scenario.relayed_refs() == list(range(100)) * 5


async def test_nudge_during_relay_is_not_lost(scenario: OutboxScenario) -> None:
    for _ in range(20):
        await scenario.insert_rows(1)
        scenario.outbox.nudge(scenario.stream.name)
    assert await poll_until_true(scenario.is_empty)
    assert len(await scenario.relayed_refs()) == 20


async def test_sweep_relays_old_rows_and_leaves_fresh_ones(stores: Stores, open_scenario: OpenScenario) -> None:
    abandoned, fresh = open_scenario(stores), open_scenario(stores)
    await abandoned.insert_rows(3, age_s=4)
    await fresh.insert_rows(3)
    assert await abandoned.outbox.sweep() == 1
    assert await poll_until_true(abandoned.is_empty)
    assert await abandoned.relayed_refs() == [0, 1, 2]
    assert await fresh.row_count() == 3
    assert await abandoned.outbox.sweep() == 0


async def test_rows_of_unknown_kind_stay_and_block_no_others(stores: Stores, open_scenario: OpenScenario) -> None:
    scenario = open_scenario(stores)
    await scenario.insert_rows(RELAY_LIMIT + 1, kind="FromTheFuture", age_s=4)
    await scenario.insert_rows(2, age_s=4)
    assert await scenario.outbox.sweep() == 1

    async def is_relayed() -> bool:
        return await scenario.relayed_refs() == [0, 1]

    assert await poll_until_true(is_relayed)
    assert await scenario.row_count() == RELAY_LIMIT + 1
    assert await scenario.outbox.sweep() == 0


async def test_deferred_rows_are_retried_at_intervals(scenario: OutboxScenario) -> None:
    GatedRelay.gate, GatedRelay.tries = asyncio.Event(), 0
    await scenario.insert_rows(RELAY_LIMIT, kind="GatedRelay")
    scenario.outbox.nudge(scenario.stream.name)

    async def was_tried_thrice() -> bool:
        return GatedRelay.tries >= 3 * RELAY_LIMIT

    began_at = asyncio.get_running_loop().time()
    assert await poll_until_true(was_tried_thrice)
    assert asyncio.get_running_loop().time() - began_at >= 0.2, "Rows were retried before the requested delay."
    GatedRelay.gate.set()
    assert await poll_until_true(scenario.is_empty)
    assert await scenario.relayed_refs() == list(range(RELAY_LIMIT))


async def test_deferred_rows_do_not_block_other_rows_of_stream(scenario: OutboxScenario) -> None:
    GatedRelay.gate = asyncio.Event()
    await scenario.insert_rows(5, kind="GatedRelay")
    await scenario.insert_rows(2)
    scenario.outbox.nudge(scenario.stream.name)

    async def is_relayed() -> bool:
        return await scenario.relayed_refs() == [0, 1]

    assert await poll_until_true(is_relayed)
    assert await scenario.row_count() == 5
    await scenario.outbox.close()


@pytest.mark.parametrize("wait_s", [0.1, 0.001], ids=["waiting", "due again at once"])
async def test_more_deferred_rows_than_limit_block_no_other_rows(
    scenario: OutboxScenario, monkeypatch: pytest.MonkeyPatch, wait_s: float
) -> None:
    monkeypatch.setattr(GatedRelay, "wait_s", wait_s)
    GatedRelay.gate = asyncio.Event()
    await scenario.insert_rows(2 * RELAY_LIMIT, kind="GatedRelay")
    await scenario.insert_rows(2)
    scenario.outbox.nudge(scenario.stream.name)

    async def is_relayed() -> bool:
        return await scenario.relayed_refs() == [0, 1]

    assert await poll_until_true(is_relayed)
    assert await scenario.row_count() == 2 * RELAY_LIMIT
    GatedRelay.gate.set()
    assert await poll_until_true(scenario.is_empty)


async def test_equal_deferred_rows_become_one_row(scenario: OutboxScenario) -> None:
    GatedRelay.gate = asyncio.Event()
    for _ in range(3):
        await scenario.insert_rows(2, kind="GatedRelay")
    scenario.outbox.nudge(scenario.stream.name)

    async def are_merged() -> bool:
        return await scenario.row_count() == 2

    assert await poll_until_true(are_merged)
    GatedRelay.gate.set()
    assert await poll_until_true(scenario.is_empty)
    assert await scenario.relayed_refs() == [0, 1]


async def test_row_deferred_before_clock_was_set_back_is_relayed(scenario: OutboxScenario) -> None:
    await scenario.insert_rows(1)
    an_hour_ahead = [{"$set": {"due": {"$add": ["$$NOW", 3_600_000]}}}]
    await scenario.stores.mongo["outbox"].update_one({"stream": scenario.stream.name}, an_hour_ahead)
    scenario.outbox.nudge(scenario.stream.name)
    assert await poll_until_true(scenario.is_empty)
    assert await scenario.relayed_refs() == [0]


async def test_failed_relay_is_repeated_by_next_nudge(
    own_stores: Stores, own_mongod: Mongod, open_scenario: OpenScenario
) -> None:
    scenario = open_scenario(own_stores)
    await scenario.insert_rows(3)
    async with failpoint(own_mongod.uri, "commitTransaction", errorCode=20):
        scenario.outbox.nudge(scenario.stream.name)
        assert await poll_until_true(lambda: is_idle(scenario))
    assert await scenario.row_count() == 3
    scenario.outbox.nudge(scenario.stream.name)
    assert await poll_until_true(scenario.is_empty)
    assert await scenario.relayed_refs() == [0, 1, 2]


async def is_idle(scenario: OutboxScenario) -> bool:
    return not scenario.outbox._tasks


async def test_closed_outbox_relays_nothing(scenario: OutboxScenario) -> None:
    await scenario.outbox.close()
    await scenario.insert_rows(1)
    scenario.outbox.nudge(scenario.stream.name)
    assert not scenario.outbox._tasks
    assert await scenario.row_count() == 1


async def test_outbox_row_for_topic_of_other_kind_is_refused(shared_stores: Stores) -> None:
    topic = Stream("topic", new_id())
    with pytest.raises(ValueError, match="takes no outbox rows"):
        await add_rows(shared_stores.mongo, topic, "CopyRelay", [1])
    assert not await shared_stores.mongo["outbox"].count_documents({"stream": topic.name})

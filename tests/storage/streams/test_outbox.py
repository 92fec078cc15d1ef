"""Rows for other streams: moved once, in order, whoever wrote them and whoever died."""

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
from storage.streams.outbox import RELAY_LIMIT, Outbox, OutboxRelay, RelayRows, add_rows
from storage.streams.sequencer import Sequencer
from storage.streams.write_leases import WriteLeases
from tests.storage.faults import failing
from tests.storage.places import OpenStores, soon

pytestmark = pytest.mark.anyio


class Copy(OutboxRelay):
    """Moves every row at once."""

    async def load(self, mongo: Mongo, session: Session, rows: Sequence[Document], batch: Batch) -> None:
        return

    def relay(self, row: Document, batch: Batch) -> float:
        batch.emit("Copied", row["ref"])
        return 0.0


class Patient(Copy):
    """Moves rows once the gate is open, and counts how often it was asked."""

    gate: ClassVar[asyncio.Event]
    tries: ClassVar[int] = 0

    def relay(self, row: Document, batch: Batch) -> float:
        Patient.tries += 1
        return Copy.relay(self, row, batch) if Patient.gate.is_set() else 0.1


class Mailbox:
    """A stream, and one process's way to move what waits for it."""

    def __init__(self, stores: Stores, stream: Stream | None = None) -> None:
        self.stores = stores
        self.stream = stream or Stream("user", f"org/{new_id()}")
        self.outbox = Outbox(stores.mongo, {"Copy": Copy, "Patient": Patient})
        leases = WriteLeases(stores.redis, stores.keys)
        self._sequencer = Sequencer(stores.mongo, leases, lambda *_: None, self.outbox.nudge)
        self.outbox.start(self._sequencer)

    async def aclose(self) -> None:
        await self.outbox.close()
        await self._sequencer.close()

    async def write(self, count: int, kind: str = "Copy", age_s: float = 0) -> None:
        """Rows as a process leaves them that dies before it moves them."""
        rows = [{"_id": ObjectId(), "stream": self.stream.name, "kind": kind, "ref": n} for n in range(count)]
        await self.stores.mongo["outbox"].insert_many(rows)
        written_at = {"$subtract": ["$$NOW", int(age_s * 1000)]}
        ids = [row["_id"] for row in rows]
        await self.stores.mongo["outbox"].update_many({"_id": {"$in": ids}}, [{"$set": {"at": written_at}}])

    async def copied(self) -> list[int]:
        """What arrived in the stream, in its order."""
        events = await self.stores.events.read(self.stream, 0, limit=10_000)
        assert [event.n for event in events] == list(range(1, len(events) + 1))
        return [event.ref for event in events]

    async def waiting(self) -> int:
        return await self.stores.mongo["outbox"].count_documents({"stream": self.stream.name})

    async def is_empty(self) -> bool:
        return await self.waiting() == 0


OpenBox = Callable[..., Mailbox]


@pytest.fixture
async def new_box(shared_stores: Stores) -> AsyncIterator[OpenBox]:
    """Makes mailboxes, and closes them afterwards."""
    boxes: list[Mailbox] = []

    def opened(stores: Stores = shared_stores, stream: Stream | None = None) -> Mailbox:
        boxes.append(Mailbox(stores, stream))
        return boxes[-1]

    yield opened
    for box in boxes:
        await box.aclose()


@pytest.fixture
def box(new_box: OpenBox) -> Mailbox:
    return new_box()


async def test_outbox_rows_are_relayed_in_order_and_deleted(box: Mailbox) -> None:
    await box.write(3)
    box.outbox.nudge(box.stream.name)
    assert await soon(box.is_empty)
    assert await box.copied() == [0, 1, 2]


async def test_one_nudge_relays_more_rows_than_one_commit_takes(box: Mailbox) -> None:
    await box.write(2 * RELAY_LIMIT + 10)
    box.outbox.nudge(box.stream.name)
    assert await soon(box.is_empty)
    assert await box.copied() == list(range(2 * RELAY_LIMIT + 10))


async def test_concurrent_processes_relay_each_row_once(box: Mailbox, another: OpenStores) -> None:
    async with another() as stores, aclosing(Mailbox(stores, box.stream)) as other:
        boxes = [box, other]
        for _ in range(5):
            await box.write(100)
            for each in boxes:
                each.outbox.nudge(box.stream.name)
        assert await soon(box.is_empty)
        assert await box.copied() == list(range(100)) * 5


async def test_nudge_during_relay_is_not_lost(box: Mailbox) -> None:
    for _ in range(20):
        await box.write(1)
        box.outbox.nudge(box.stream.name)
    assert await soon(box.is_empty)
    assert len(await box.copied()) == 20


async def test_sweep_relays_old_rows_and_leaves_fresh_ones(stores: Stores, new_box: OpenBox) -> None:
    left, fresh = new_box(stores), new_box(stores)
    await left.write(3, age_s=4)
    await fresh.write(3)
    assert await left.outbox.sweep() == 1
    assert await soon(left.is_empty)
    assert await left.copied() == [0, 1, 2]
    assert await fresh.waiting() == 3
    assert await left.outbox.sweep() == 0


async def test_rows_of_unknown_kind_stay_and_block_no_others(stores: Stores, new_box: OpenBox) -> None:
    box = new_box(stores)
    await box.write(RELAY_LIMIT + 1, kind="FromTheFuture", age_s=4)
    await box.write(2, age_s=4)
    assert await box.outbox.sweep() == 1

    async def is_moved() -> bool:
        return await box.copied() == [0, 1]

    assert await soon(is_moved)
    assert await box.waiting() == RELAY_LIMIT + 1
    assert await box.outbox.sweep() == 0


async def test_deferred_rows_are_retried_at_intervals(box: Mailbox) -> None:
    Patient.gate, Patient.tries = asyncio.Event(), 0
    await box.write(RELAY_LIMIT, kind="Patient")
    box.outbox.nudge(box.stream.name)

    async def was_asked_thrice() -> bool:
        return Patient.tries >= 3 * RELAY_LIMIT

    began = asyncio.get_running_loop().time()
    assert await soon(was_asked_thrice)
    assert asyncio.get_running_loop().time() - began >= 0.2, "it waits as long as it was told"
    Patient.gate.set()
    assert await soon(box.is_empty)
    assert await box.copied() == list(range(RELAY_LIMIT))


async def test_deferred_rows_do_not_block_rows_of_same_stream(box: Mailbox) -> None:
    Patient.gate = asyncio.Event()
    await box.write(5, kind="Patient")
    await box.write(2)
    box.outbox.nudge(box.stream.name)

    async def is_moved() -> bool:
        return await box.copied() == [0, 1]

    assert await soon(is_moved)
    assert await box.waiting() == 5
    await box.outbox.close()


async def test_failed_relay_is_repeated_by_next_nudge(own_stores: Stores, own_mongod: Mongod, new_box: OpenBox) -> None:
    box = new_box(own_stores)
    await box.write(3)
    async with failing(own_mongod.uri, "commitTransaction", errorCode=20):
        box.outbox.nudge(box.stream.name)
        assert await soon(lambda: is_idle(box))
    assert await box.waiting() == 3
    box.outbox.nudge(box.stream.name)
    assert await soon(box.is_empty)
    assert await box.copied() == [0, 1, 2]


async def is_idle(box: Mailbox) -> bool:
    return not box.outbox._tasks


async def test_closed_outbox_relays_nothing(box: Mailbox) -> None:
    await box.outbox.close()
    await box.write(1)
    box.outbox.nudge(box.stream.name)
    assert not box.outbox._tasks
    assert await box.waiting() == 1


async def test_outbox_row_for_a_topic_is_refused_on_relay(shared_stores: Stores) -> None:
    topic = Stream("topic", new_id())
    with pytest.raises(ValueError, match="takes no outbox rows"):
        await add_rows(shared_stores.mongo, topic, "Copy", [1])
    with pytest.raises(ValueError, match="takes no outbox rows"):
        RelayRows(topic, {})
    assert not await shared_stores.mongo["outbox"].count_documents({"stream": topic.name})

"""The queue of messages that a socket has received."""

import asyncio

import pytest

from server.graphql.single_reader_queue import SingleReaderQueue

pytestmark = pytest.mark.anyio


async def test_items_are_read_in_order() -> None:
    queue = SingleReaderQueue[int]()
    for number in range(3):
        queue.put_nowait(number)
    assert [await queue.get() for _ in range(3)] == [0, 1, 2]
    assert queue.empty()


async def test_reader_waits_for_the_next_item() -> None:
    queue = SingleReaderQueue[str]()
    reading = asyncio.create_task(queue.get())
    await asyncio.sleep(0)
    assert not reading.done()
    queue.put_nowait("one")
    queue.put_nowait("two")
    assert await reading == "one"
    assert not queue.empty()


async def test_cancelled_reader_removes_no_item() -> None:
    queue = SingleReaderQueue[str]()
    reading = asyncio.create_task(queue.get())
    await asyncio.sleep(0)
    queue.put_nowait("one")
    reading.cancel()
    await asyncio.gather(reading, return_exceptions=True)
    assert await queue.get() == "one"

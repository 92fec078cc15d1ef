"""The queue of messages that a socket has received."""

import asyncio

import pytest

from server.graphql.inbox import Inbox

pytestmark = pytest.mark.anyio


async def test_items_are_read_in_order() -> None:
    inbox = Inbox[int]()
    for number in range(3):
        inbox.put_nowait(number)
    assert [await inbox.get() for _ in range(3)] == [0, 1, 2]
    assert inbox.empty()


async def test_reader_waits_for_the_next_item() -> None:
    inbox = Inbox[str]()
    reading = asyncio.create_task(inbox.get())
    await asyncio.sleep(0)
    assert not reading.done()
    inbox.put_nowait("one")
    inbox.put_nowait("two")
    assert await reading == "one"
    assert not inbox.empty()


async def test_cancelled_reader_removes_no_item() -> None:
    inbox = Inbox[str]()
    reading = asyncio.create_task(inbox.get())
    await asyncio.sleep(0)
    inbox.put_nowait("one")
    reading.cancel()
    await asyncio.gather(reading, return_exceptions=True)
    assert await inbox.get() == "one"

"""The small queue and the small event of a socket."""

import asyncio
import sys

import pytest

from server.graphql.inbox import Gate, Inbox

pytestmark = pytest.mark.anyio


async def test_items_are_read_in_the_order_they_came_in() -> None:
    inbox = Inbox[int]()
    for number in range(3):
        inbox.put_nowait(number)
    assert [await inbox.get() for _ in range(3)] == [0, 1, 2]
    assert inbox.empty()


async def test_a_reader_waits_for_the_next_item() -> None:
    inbox = Inbox[str]()
    reading = asyncio.create_task(inbox.get())
    await asyncio.sleep(0)
    assert not reading.done()
    inbox.put_nowait("one")
    inbox.put_nowait("two")
    assert await reading == "one"
    assert not inbox.empty()


async def test_a_cancelled_reader_takes_nothing_with_it() -> None:
    inbox = Inbox[str]()
    reading = asyncio.create_task(inbox.get())
    await asyncio.sleep(0)
    inbox.put_nowait("one")
    reading.cancel()
    await asyncio.gather(reading, return_exceptions=True)
    assert await inbox.get() == "one"


async def test_everybody_waiting_at_a_gate_passes_when_it_opens() -> None:
    gate = Gate()
    waiting = [asyncio.create_task(gate.wait()) for _ in range(3)]
    given_up = asyncio.create_task(gate.wait())
    await asyncio.sleep(0)
    given_up.cancel()
    await asyncio.gather(given_up, return_exceptions=True)
    gate.set()
    assert await asyncio.gather(*waiting) == [True, True, True]
    gate.clear()
    assert not gate.is_set()


def test_an_idle_pair_takes_a_tenth_of_the_memory() -> None:
    def of_deques(event: asyncio.Event) -> int:
        return sys.getsizeof(event._waiters)

    assert of_deques(Gate()) * 10 < of_deques(asyncio.Event())

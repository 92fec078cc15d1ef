"""Many look-ups of one moment become few queries, and nobody's trouble is anybody else's."""

import asyncio
from collections.abc import Mapping, Sequence

import pytest

from storage.batch_loader import MAX_KEYS, Gather

pytestmark = pytest.mark.anyio


class Squares:
    """Knows the squares of even numbers. Fails as often as it is told to."""

    def __init__(self, failures: int = 0) -> None:
        self.asked: list[list[int]] = []
        self.failures = failures

    async def load(self, keys: Sequence[int]) -> Mapping[int, int]:
        self.asked.append(list(keys))
        await asyncio.sleep(0)
        if self.failures:
            self.failures -= 1
            raise ConnectionError("not now")
        return {key: key * key for key in keys if key % 2 == 0}


class Slow(Squares):
    """The same, but the first look-up takes until it may go on."""

    def __init__(self) -> None:
        super().__init__()
        self.reading, self.go_on = asyncio.Event(), asyncio.Event()

    async def load(self, keys: Sequence[int]) -> Mapping[int, int]:
        found = await super().load(keys)
        if not self.reading.is_set():
            self.reading.set()
            await self.go_on.wait()
        return found


async def test_what_is_asked_for_in_one_moment_is_one_query_with_each_key_once() -> None:
    squares = Squares()
    gather = Gather(squares.load)
    assert await asyncio.gather(*map(gather.get, [2, 4, 2, 3, 4])) == [4, 16, 4, None, 16]
    assert [sorted(each) for each in squares.asked] == [[2, 3, 4]]


async def test_what_is_asked_for_later_is_read_anew() -> None:
    squares = Squares()
    gather = Gather(squares.load)
    assert [await gather.get(2), await gather.get(2)] == [4, 4]
    assert squares.asked == [[2], [2]]


async def test_what_is_asked_for_while_a_read_is_under_way_is_one_query_after_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # However slow the machine is.
    monkeypatch.setattr("storage.batch_loader.PATIENCE_S", 3600.0)
    slow = Slow()
    gather = Gather(slow.load)
    first = asyncio.create_task(gather.get(2))
    await slow.reading.wait()
    others = []
    for key in (2, 4, 6):
        others.append(asyncio.create_task(gather.get(key)))
        for _ in range(5):
            await asyncio.sleep(0)
    assert slow.asked == [[2]]
    slow.go_on.set()
    # The second one wants what is read after it asked.
    assert await asyncio.gather(first, *others) == [4, 4, 16, 36]
    assert slow.asked == [[2], [2, 4, 6]]


async def test_a_read_that_hangs_holds_up_the_next_one_for_a_moment_only() -> None:
    slow = Slow()
    gather = Gather(slow.load)
    hanging = asyncio.create_task(gather.get(2))
    await slow.reading.wait()
    async with asyncio.timeout(10):
        assert await gather.get(4) == 16
    assert not hanging.done()
    slow.go_on.set()
    assert await hanging == 4


async def test_many_come_in_their_order_without_those_that_are_missing() -> None:
    assert await Gather(Squares().load).get_many([8, 3, 2, 8]) == [64, 4, 64]


async def test_more_keys_than_a_query_takes_become_several() -> None:
    squares = Squares()
    keys = range(0, 2 * (2 * MAX_KEYS + 1), 2)
    assert await Gather(squares.load).get_many(keys) == [key * key for key in keys]
    assert [len(asked) for asked in squares.asked] == [MAX_KEYS, MAX_KEYS, 1]


async def test_a_failure_reaches_all_who_asked_and_is_not_remembered() -> None:
    gather = Gather(Squares(failures=1).load)
    failed = await asyncio.gather(gather.get(2), gather.get(4), return_exceptions=True)
    assert [type(error) for error in failed] == [ConnectionError, ConnectionError]
    assert await gather.get(2) == 4


async def test_one_that_stops_waiting_takes_nothing_from_the_others() -> None:
    gather = Gather(Squares().load)
    waiting = [asyncio.create_task(gather.get(2)) for _ in range(3)]
    await asyncio.sleep(0)
    waiting[0].cancel()
    done = await asyncio.gather(*waiting, return_exceptions=True)
    assert isinstance(done[0], asyncio.CancelledError)
    assert done[1:] == [4, 4]


async def test_a_failure_that_nobody_waits_for_any_more_disturbs_nobody() -> None:
    gather = Gather(Squares(failures=1).load)
    waiting = asyncio.create_task(gather.get(2))
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    assert await gather.get(4) == 16

"""Concurrent lookups share queries, and a failed or cancelled caller does not affect the others."""

import asyncio
from collections.abc import Mapping, Sequence

import pytest

import storage.mongo.batch_loader
from storage.errors import NotFound, RateLimited
from storage.mongo.batch_loader import MAX_KEYS, BatchLoader
from storage.stores import Stores
from tests.storage.topic_scenario import create_topic_scenario

pytestmark = pytest.mark.anyio


class SquareLoader:
    """Loads the squares of numbers. Odd numbers count as missing. The first `failures` queries fail."""

    def __init__(self, failures: int = 0) -> None:
        self.queries: list[list[int]] = []
        self.failures = failures

    async def load(self, keys: Sequence[int]) -> Mapping[int, int]:
        self.queries.append(list(keys))
        await asyncio.sleep(0)
        if self.failures:
            self.failures -= 1
            raise ConnectionError("no connection")
        return {key: key * key for key in keys if key % 2 == 0}


class SlowSquareLoader(SquareLoader):
    """A loader whose first query lasts until `proceed` is set."""

    def __init__(self) -> None:
        super().__init__()
        self.started, self.proceed = asyncio.Event(), asyncio.Event()

    async def load(self, keys: Sequence[int]) -> Mapping[int, int]:
        squares = await super().load(keys)
        if not self.started.is_set():
            self.started.set()
            await self.proceed.wait()
        return squares


async def test_concurrent_lookups_share_one_query_of_distinct_keys() -> None:
    squares = SquareLoader()
    loader = BatchLoader(squares.load)
    assert await asyncio.gather(*map(loader.get, [2, 4, 2, 3, 4])) == [4, 16, 4, None, 16]
    assert [sorted(query) for query in squares.queries] == [[2, 3, 4]]


async def test_lookups_of_a_few_steps_share_one_query() -> None:
    squares = SquareLoader()
    loader = BatchLoader(squares.load)

    async def look_up_after(steps: int) -> int | None:
        for _ in range(steps):
            await asyncio.sleep(0)
        return await loader.get(2 * steps)

    assert await asyncio.gather(*map(look_up_after, range(4))) == [0, 4, 16, 36]
    assert [sorted(query) for query in squares.queries] == [[0, 2, 4, 6]]


async def test_lookup_without_keys_waits_for_no_query() -> None:
    slow_squares = SlowSquareLoader()
    loader = BatchLoader(slow_squares.load)
    first = asyncio.create_task(loader.get(2))
    await slow_squares.started.wait()
    assert await loader.find([]) == {}
    assert slow_squares.queries == [[2]]
    slow_squares.proceed.set()
    assert await first == 4


async def test_result_of_a_shared_lookup_has_own_keys_only() -> None:
    squares = SquareLoader()
    loader = BatchLoader(squares.load)
    assert await asyncio.gather(loader.find([2, 3]), loader.find([2, 4]), loader.find([])) == [
        {2: 4},
        {2: 4, 4: 16},
        {},
    ]
    assert len(squares.queries) == 1


async def test_later_lookup_reads_again() -> None:
    squares = SquareLoader()
    loader = BatchLoader(squares.load)
    assert [await loader.get(2), await loader.get(2)] == [4, 4]
    assert squares.queries == [[2], [2]]


async def test_lookups_during_a_lookup_share_the_next_query(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # The batch must not start early on a slow machine.
    monkeypatch.setattr("storage.mongo.batch_loader.MAX_WAIT_S", 3600.0)
    slow_squares = SlowSquareLoader()
    loader = BatchLoader(slow_squares.load)
    first = asyncio.create_task(loader.get(2))
    await slow_squares.started.wait()
    others = []
    for key in (2, 4, 6):
        others.append(asyncio.create_task(loader.get(key)))
        for _ in range(5):
            await asyncio.sleep(0)
    assert slow_squares.queries == [[2]]
    slow_squares.proceed.set()
    # Key 2 is read again: its second caller must get data that was read after its call.
    assert await asyncio.gather(first, *others) == [4, 4, 16, 36]
    assert slow_squares.queries == [[2], [2, 4, 6]]


async def test_hanging_lookup_delays_the_next_one_briefly() -> None:
    slow_squares = SlowSquareLoader()
    loader = BatchLoader(slow_squares.load)
    hanging = asyncio.create_task(loader.get(2))
    await slow_squares.started.wait()
    async with asyncio.timeout(10):
        assert await loader.get(4) == 16
    assert not hanging.done()
    slow_squares.proceed.set()
    assert await hanging == 4


async def test_get_many_keeps_key_order_and_omits_missing_keys() -> None:
    assert await BatchLoader(SquareLoader().load).get_many([8, 3, 2, 8]) == [64, 4, 64]


async def test_keys_beyond_the_maximum_use_several_queries() -> None:
    squares = SquareLoader()
    keys = range(0, 2 * (2 * MAX_KEYS + 1), 2)
    assert await BatchLoader(squares.load).get_many(keys) == [key * key for key in keys]
    assert [len(query) for query in squares.queries] == [MAX_KEYS, MAX_KEYS, 1]


async def test_failure_reaches_every_caller_and_is_not_cached() -> None:
    loader = BatchLoader(SquareLoader(failures=1).load)
    errors = await asyncio.gather(loader.get(2), loader.get(4), return_exceptions=True)
    assert [type(error) for error in errors] == [ConnectionError, ConnectionError]
    assert await loader.get(2) == 4


async def test_cancelled_caller_leaves_other_callers_their_values() -> None:
    loader = BatchLoader(SquareLoader().load)
    waiting = [asyncio.create_task(loader.get(2)) for _ in range(3)]
    await asyncio.sleep(0)
    waiting[0].cancel()
    outcomes = await asyncio.gather(*waiting, return_exceptions=True)
    assert isinstance(outcomes[0], asyncio.CancelledError)
    assert outcomes[1:] == [4, 4]


async def test_failure_after_every_caller_left_affects_no_later_lookup() -> None:
    squares = SquareLoader(failures=1)
    loader = BatchLoader(squares.load)
    waiting = asyncio.create_task(loader.get(2))
    while not squares.queries:
        await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    assert await loader.get(4) == 16


@pytest.mark.parametrize("is_pair", [False, True])
async def test_long_ids_do_not_affect_other_callers(shared_stores: Stores, is_pair: bool) -> None:
    scenario = await create_topic_scenario(shared_stores)
    organization_id, long_ids = scenario.organization_id, [f"{n}" * 1_000_000 for n in range(10, 30)]

    async def look_up(id_: str) -> object:
        if is_pair:
            return await shared_stores.users.find(organization_id, id_)
        return await shared_stores.communities.get(organization_id, id_)

    existing_id = "ann" if is_pair else scenario.community.id
    found, *missing = await asyncio.gather(*map(look_up, [existing_id, *long_ids]), return_exceptions=True)
    assert found is not None
    assert not isinstance(found, BaseException)
    assert all(each is None or isinstance(each, NotFound) for each in missing)


async def test_lookups_over_the_limit_of_waiting_keys_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storage.mongo.batch_loader, "MAX_WAITING_KEYS", 3)
    squares = SlowSquareLoader()
    loader = BatchLoader(squares.load)
    first = asyncio.create_task(loader.get(2))
    await squares.started.wait()
    later = asyncio.create_task(loader.get_many([4, 6, 6]))
    await asyncio.sleep(0)
    with pytest.raises(RateLimited):
        await loader.get(8)
    squares.proceed.set()
    assert (await first, await later) == (4, [16, 36, 36])
    assert await loader.get(8) == 64

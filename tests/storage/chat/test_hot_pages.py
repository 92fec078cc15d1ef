"""No page is older than a change that returned, in any process, and with any fault of Redis."""

import asyncio
import shutil
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path

import pytest
from redis.asyncio import Redis

from server.embedded import Valkey
from storage.chat.hot_pages import LEASE_S, MAYBE_HOT_PER_MINUTE
from storage.chat.records import Message
from storage.keys import Keys
from storage.link_previews import LinkPreview
from storage.streams.log import Stream
from tests.storage.chat.hot_page_scenario import (
    heat,
    hit,
    hits,
    lease_for,
    newest,
    process,
    wait_for_hot_page,
)
from tests.storage.faults import sigstopped
from tests.storage.faulty_proxy import FaultyProxy, faulty_proxy
from tests.storage.topic_scenario import OpenStores, TopicScenario, create_topic_scenario, poll_until_true

pytestmark = pytest.mark.anyio

SLACK_S = 15.0
"""Allowance for a busy machine."""


async def assert_seen(message: Message, *scenarios: TopicScenario) -> None:
    """Asserts that the newest page of each process contains the message."""
    for scenario in scenarios:
        assert message in await newest(scenario), f"The page is stale: {message.text!r} had returned."


async def timed(work: Awaitable[Message]) -> tuple[Message, float]:
    """Returns the result and the duration in seconds."""
    began = time.monotonic()
    return await work, time.monotonic() - began


@pytest.fixture
async def hot(scenario: TopicScenario) -> TopicScenario:
    """A hot topic whose hot page has not been built."""
    await scenario.post("the first")
    return await heat(scenario)


@pytest.fixture
async def proxy(redis_url: str) -> AsyncIterator[FaultyProxy]:
    """A proxy to Redis that can be interrupted."""
    async with faulty_proxy(redis_url) as proxy:
        yield proxy


@asynccontextmanager
async def reading(*scenarios: TopicScenario) -> AsyncIterator[None]:
    """Reads continuously in each process, so that hot pages are built and renewed."""

    async def read(scenario: TopicScenario) -> None:
        while True:
            await newest(scenario)
            await asyncio.sleep(0.02)

    tasks = [asyncio.create_task(read(scenario)) for scenario in scenarios]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        for task in tasks:
            with suppress(asyncio.CancelledError):
                await task


async def test_pages_contain_every_returned_post_in_all_processes(hot: TopicScenario, open_process: OpenStores) -> None:
    async with open_process() as second, open_process() as third:
        scenarios = [hot, hot.through(second), hot.through(third)]
        await wait_for_hot_page(hot)
        before = hits()

        async def post(scenario: TopicScenario) -> None:
            for number in range(30):
                await assert_seen(await scenario.post(str(number)), *scenarios)

        await asyncio.gather(post(scenarios[0]), post(scenarios[1]))
        assert hits() - before > 50, "Too few pages came from the hot page."


async def test_edit_deletion_and_reaction_are_visible_once_returned(
    hot: TopicScenario, open_process: OpenStores
) -> None:
    async with open_process() as other:
        reader, messages = hot.through(other), hot.stores.messages
        posted = await hot.post("see https://beacon.example/")
        await wait_for_hot_page(reader)
        before = hits()
        await assert_seen(await messages.edit(posted.key, "ann", "look: https://beacon.example/", ["bob"]), reader)
        preview = LinkPreview("https://beacon.example/", "Beacon", None, None, None)
        await assert_seen(await messages.set_preview(posted.key, "https://beacon.example/", preview), reader)
        await assert_seen(await messages.add_reaction(hot.organization_id, posted.key, "bob", "🔥"), reader)
        await assert_seen(await messages.add_reaction(hot.organization_id, posted.key, "ann", "🔥"), reader)
        await assert_seen(await messages.remove_reaction(hot.organization_id, posted.key, "bob", "🔥"), reader)
        await assert_seen(await messages.delete(posted.key, "ann", may_delete_any=False), reader)
        assert hits() - before == 6, "Not every page came from the hot page."


@pytest.mark.parametrize("cut", [FaultyProxy.refuse, FaultyProxy.swallow])
async def test_poster_without_redis_returns_after_every_lease(
    hot: TopicScenario, open_process: OpenStores, proxy: FaultyProxy, cut: Callable[[FaultyProxy], Awaitable[None]]
) -> None:
    async with open_process() as reading_stores, open_process(proxy.url) as posting_stores:
        reader, poster = hot.through(reading_stores), hot.through(posting_stores)
        await wait_for_hot_page(reader)
        await assert_seen(await poster.post("still reached"), reader)

        async def post(number: int) -> float:
            await asyncio.sleep(number / 50)
            posted, took_s = await timed(poster.post(str(number)))
            await assert_seen(posted, hot, reader)
            return took_s

        async with reading(reader):
            await cut(proxy)
            before = hits()
            posts = [asyncio.create_task(post(number)) for number in range(25)]
            took_s = await asyncio.gather(*posts)
        assert hits() > before, "The hot page answered nothing during its lease."
        assert all(LEASE_S - 0.1 < each < LEASE_S + SLACK_S for each in took_s), took_s
        await proxy.restore()
        await wait_for_hot_page(reader)

        async def quick() -> bool:
            posted, took_s = await timed(poster.post("reached again, or soon"))
            await assert_seen(posted, reader)
            return took_s < LEASE_S / 2

        assert await poll_until_true(quick)


@pytest.mark.parametrize("renews", [True, False], ids=["renewed", "built"])
async def test_lease_runs_from_before_mongodb_was_read(
    hot: TopicScenario, open_process: OpenStores, proxy: FaultyProxy, renews: bool
) -> None:
    async with open_process(proxy.url) as slow, open_process("redis://127.0.0.1:9/0") as cut_off:
        keeper, poster = hot.through(slow), hot.through(cut_off)
        if renews:
            await wait_for_hot_page(hot)
        # A builder reads the clock twice: before trying to renew, and before building.
        proxy.hold("clock", skip=0 if renews else 1)
        await newest(keeper)
        await asyncio.wait_for(proxy.holding.wait(), 30)
        post = asyncio.create_task(poster.post("unknown to Redis"))
        await poll_until_true(
            lambda: poster.stores.mongo["messages"].find_one({"_id.t": hot.topic.id, "text": "unknown to Redis"})
        )
        # Shorter than the timeout of Redis.
        await asyncio.sleep(0.3)
        proxy.release()
        await assert_seen(await post, hot)


async def test_page_restored_from_an_older_file_is_dropped(
    scenario: TopicScenario, open_process: OpenStores, own_valkey: Valkey, tmp_path: Path, shared_database: str
) -> None:
    older = tmp_path / "older"
    async with open_process(own_valkey.url) as one, open_process(own_valkey.url) as two:
        scenarios = [scenario.through(one), scenario.through(two)]
        await heat(scenario)
        await scenario.through(one).post("before")
        await wait_for_hot_page(scenarios[0])
        await asyncio.to_thread(shutil.copytree, own_valkey.data, older)
        for number in range(3):
            await assert_seen(await scenarios[0].post(f"after {number}"), *scenarios)
        last = await scenarios[0].post("the last")
        own_valkey.kill()
        await own_valkey.wait()
        await asyncio.to_thread(shutil.rmtree, own_valkey.data)
        await asyncio.to_thread(shutil.copytree, older, own_valkey.data)
        await own_valkey.restart()
        async with Redis.from_url(own_valkey.url) as client:
            # Simulates a restart that takes no time.
            await lease_for(client, Keys(shared_database).hot_page(scenario.topic.id)[0], LEASE_S)
        for _ in range(20):
            await assert_seen(last, *scenarios)
        await wait_for_hot_page(scenarios[1])
        await assert_seen(await scenarios[0].post("on it goes"), *scenarios)


@pytest.mark.parametrize("delay_s", [0.3, 2.5], ids=["slow", "slower than the timeout"])
async def test_slow_redis_causes_no_stale_page(
    hot: TopicScenario, open_process: OpenStores, proxy: FaultyProxy, delay_s: float
) -> None:
    async with open_process(proxy.url) as slow:
        distant = hot.through(slow)
        await wait_for_hot_page(hot)
        await wait_for_hot_page(distant)
        proxy.delay_s = delay_s
        async with reading(hot, distant):

            async def post(number: int) -> float:
                await asyncio.sleep(number / 10)
                posted, took_s = await timed(distant.post(str(number)))
                await assert_seen(posted, hot, distant)
                await assert_seen(await hot.post(f"{number}, from nearby"), hot, distant)
                return took_s

            took_s = await asyncio.gather(*(post(number) for number in range(5)))
        assert delay_s < LEASE_S or min(took_s) > LEASE_S - 0.1, took_s
        proxy.delay_s = 0
        await wait_for_hot_page(distant)


async def _dead(valkey: Valkey, stack: AsyncExitStack) -> None:
    valkey.kill()
    await valkey.wait()


async def _hung(valkey: Valkey, stack: AsyncExitStack) -> None:
    stack.enter_context(sigstopped(valkey.pid))


@pytest.mark.parametrize("gone", [_dead, _hung])
async def test_dead_redis_delays_only_hot_posts_by_a_lease(
    scenario: TopicScenario,
    open_process: OpenStores,
    own_valkey: Valkey,
    gone: Callable[[Valkey, AsyncExitStack], Awaitable[None]],
) -> None:
    async with open_process(own_valkey.url) as one, open_process(own_valkey.url) as two, AsyncExitStack() as stack:
        warm, cold, reader = await heat(scenario.through(one)), await create_topic_scenario(one), scenario.through(two)
        await warm.post("before")
        await cold.post("before")
        await wait_for_hot_page(reader)
        await gone(own_valkey, stack)
        (posted, took_s), (_, cold_s) = await asyncio.gather(timed(warm.post("hot")), timed(cold.post("cold")))
        assert LEASE_S - 0.1 < took_s < LEASE_S + SLACK_S
        assert cold_s < LEASE_S - 0.1 or took_s - cold_s > LEASE_S / 2, "The quiet topic was delayed by a lease."
        await assert_seen(posted, reader, warm)
        before = hits()
        began = time.monotonic()
        for _ in range(20):
            await assert_seen(posted, reader)
        assert time.monotonic() - began < 2 * LEASE_S + SLACK_S, "Every read waited for the hanging Redis."
        assert hits() == before


async def test_post_of_a_killed_process_is_missing_for_a_lease_at_most(
    hot: TopicScenario, open_process: OpenStores
) -> None:
    async with process(hot, forgetful=True) as killed, open_process() as other:
        reader = hot.through(other)
        await wait_for_hot_page(reader)
        posted, committed = await killed.post("nobody heard that it was committed"), time.monotonic()

        last_without = committed

        async def seen() -> bool:
            nonlocal last_without
            began = time.monotonic()
            if posted in await newest(reader):
                return True
            last_without = began
            return False

        assert await poll_until_true(seen)
        assert last_without - committed < LEASE_S
        async with reading(reader):
            while time.monotonic() - committed < LEASE_S + 0.5:
                await assert_seen(posted, reader)
        await wait_for_hot_page(reader)
        await assert_seen(await hot.post("the next"), reader)


async def test_repeated_request_returns_once_every_reader_sees_it(hot: TopicScenario, open_process: OpenStores) -> None:
    async with process(hot, forgetful=True) as killed, open_process() as other:
        reader, org = hot.through(other), hot.organization_id
        await wait_for_hot_page(reader)
        await killed.post("posted", key="again")
        await assert_seen(await hot.post("posted", key="again"), reader)
        await wait_for_hot_page(reader)
        message = (await newest(reader))[0]
        await killed.stores.messages.add_reaction(org, message.key, "bob", "🔥")
        await assert_seen(await hot.stores.messages.add_reaction(org, message.key, "bob", "🔥"), reader)


async def test_late_extension_is_awaited_and_applied(
    hot: TopicScenario, open_process: OpenStores, proxy: FaultyProxy
) -> None:
    async with open_process(proxy.url) as late:
        await wait_for_hot_page(hot)
        proxy.hold("extend")
        first = asyncio.create_task(hot.through(late).post("first"))
        await asyncio.wait_for(proxy.holding.wait(), 30)
        await assert_seen(await hot.post("second"), hot)
        assert not await hit(hot), "The hot page lacks the first post."
        proxy.release()
        await assert_seen(await first, hot)
        assert await hit(hot), "The hot page was not extended with both posts."


async def test_gap_that_is_never_filled_leads_to_a_new_page(hot: TopicScenario) -> None:
    async with process(hot, forgetful=True) as killed:
        await wait_for_hot_page(hot)
        await killed.post("lost")
        posted = await hot.post("the next")
        await assert_seen(posted, hot)
        assert not await hit(hot)
        await wait_for_hot_page(hot)
        assert [each.text for each in await newest(hot)] == ["the next", "lost", "the first"]


async def test_pages_deleted_and_rebuilt_under_load_are_never_stale(
    hot: TopicScenario, open_process: OpenStores
) -> None:
    keys = hot.stores.keys.hot_page(hot.topic.id)
    async with open_process() as second, AsyncExitStack() as stack:
        poster = hot.through(second)

        async def post(scenario: TopicScenario) -> None:
            for number in range(20):
                # New processes, since one process builds a page at most once per second.
                reader = await stack.enter_async_context(process(scenario))
                await assert_seen(await scenario.post(str(number)), hot, reader)
                if number % 3 == 0:
                    await hot.stores.redis.delete(keys[number % len(keys)])

        before = hits()
        await asyncio.gather(post(hot), post(poster))
        assert hits() > before
    await wait_for_hot_page(hot)


@pytest.mark.parametrize(
    "item",
    [b"", b"\xff\xfe", b"5", b"[]", b'["1"]', b'["x","ann","",null,[],[],null,null,null]', b'["1",1,2,3,4,5,6,7,8]'],
)
async def test_corrupt_item_is_read_from_mongodb_and_page_rebuilt(hot: TopicScenario, item: bytes) -> None:
    _, items, _ = hot.stores.keys.hot_page(hot.topic.id)
    await wait_for_hot_page(hot)
    (posted,) = await newest(hot)
    await hot.stores.redis.delete(items)
    await hot.stores.redis.zadd(items, {item: posted.timestamp})
    assert await newest(hot) == [posted]
    await wait_for_hot_page(hot)
    assert await newest(hot) == [posted]


async def test_cooling_topic_loses_its_lease_before_posters_stop(hot: TopicScenario) -> None:
    await wait_for_hot_page(hot)
    await heat(hot, MAYBE_HOT_PER_MINUTE * 1.5)
    await lease_for(hot.stores.redis, hot.stores.keys.hot_page(hot.topic.id)[0], 0.2)

    async def silent() -> bool:
        return not await hit(hot)

    assert await poll_until_true(silent)
    async with reading(hot):
        await assert_seen(await hot.post("lukewarm"), hot)


async def test_posts_to_a_quiet_topic_do_not_use_redis(scenario: TopicScenario, open_process: OpenStores) -> None:
    async with open_process("redis://127.0.0.1:9/0") as cut_off:
        took_s = [(await timed(scenario.through(cut_off).post("hello")))[1] for _ in range(5)]
    assert min(took_s) < LEASE_S - 0.1


async def test_settled_position_is_contained_in_every_later_page(
    hot: TopicScenario, open_process: OpenStores, proxy: FaultyProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A message before StreamReady is not delivered as an event, so a page read afterwards must contain it."""
    now_s = time.time
    async with open_process() as reading_stores, open_process(proxy.url) as posting_stores:
        reader, poster = hot.through(reading_stores), hot.through(posting_stores)
        await wait_for_hot_page(reader)
        await proxy.refuse()
        posting = asyncio.create_task(poster.post("not returned yet"))
        stream = Stream("topic", hot.topic.id)
        before = await reading_stores.hub.head(stream)

        async def committed() -> bool:
            return (await reading_stores.hub.head(stream)).n > before.n or posting.done()

        assert await poll_until_true(committed)
        position = await reading_stores.hub.head(stream)
        with monkeypatch.context() as patch:
            # By this host's clock the topic has cooled.
            patch.setattr(time, "time", lambda: now_s() + 3600)
            await reading_stores.messages.settle(hot.topic.id, position.n)
        assert (await newest(reader))[0].text == "not returned yet"
        await posting

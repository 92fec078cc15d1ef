"""Once a change has returned, the pages of every process contain it, whatever fault Redis has."""

import asyncio
import shutil
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path

import pytest
from redis.asyncio import Redis

from server.embedded import Valkey, find_valkey
from storage.chat.hot_pages import LEASE_S, MAYBE_HOT_PER_MINUTE
from storage.chat.records import Message
from storage.chat.roles import Moderator
from storage.files.link_previews import LinkPreview
from storage.redis.keys import RedisKeys
from storage.streams.log import Stream
from tests.storage.chat.hot_page_scenario import (
    another_process,
    end_lease_in,
    hit_count,
    is_hit,
    make_hot,
    newest_page,
    wait_for_hot_page,
)
from tests.storage.faults import sigstopped
from tests.storage.faulty_proxy import FaultyProxy, faulty_proxy
from tests.storage.topic_scenario import OpenStores, TopicScenario, create_topic_scenario
from tests.waiting import poll_until_true

pytestmark = pytest.mark.anyio

SLACK_S = 15.0
"""Time that a busy machine may add to a duration."""


BLOCKED = "zed"
"""The author of messages that half of the readers do not see."""

HITS_PER_ASSERTION = 4
"""Reads of the hot page in `assert_visible`: one for each newest page, two for the page around the message."""


async def assert_visible(message: Message, *scenarios: TopicScenario) -> None:
    """Asserts that the pages of each process contain the message, also those of viewers who have blocked somebody."""
    for scenario in scenarios:
        messages, topic_id = scenario.stores.messages, scenario.topic.id
        pages = [await newest_page(scenario, blocked=blocked) for blocked in (frozenset[str](), frozenset({BLOCKED}))]
        around = await messages.around(topic_id, message.timestamp, 5, frozenset({BLOCKED}), is_hot=True)
        for page in (*pages, around.items):
            assert message in page, f"The page lacks {message.text!r}, whose change has returned."
        for page in (pages[1], around.items):
            assert BLOCKED not in {each.author_id for each in page}


async def measure_duration(work: Awaitable[Message]) -> tuple[Message, float]:
    """Awaits the work. Returns its result, and its duration in seconds."""
    began_at = time.monotonic()
    return await work, time.monotonic() - began_at


@pytest.fixture
async def hot_topic(scenario: TopicScenario) -> TopicScenario:
    """A hot topic whose hot page has not been built."""
    await scenario.post("the first")
    return await make_hot(scenario)


@pytest.fixture
async def proxy(redis_url: str) -> AsyncIterator[FaultyProxy]:
    """A proxy to Redis that can be interrupted."""
    async with faulty_proxy(redis_url) as proxy:
        yield proxy


@asynccontextmanager
async def read_continuously(*scenarios: TopicScenario) -> AsyncIterator[None]:
    """Reads continuously in each process, so that hot pages are built and renewed."""

    async def read(scenario: TopicScenario) -> None:
        while True:
            await newest_page(scenario)
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


async def test_pages_contain_every_returned_post_in_all_processes(
    hot_topic: TopicScenario, open_process: OpenStores
) -> None:
    async with open_process() as second, open_process() as third:
        scenarios = [hot_topic, hot_topic.with_stores(second), hot_topic.with_stores(third)]
        await wait_for_hot_page(hot_topic)
        hits_before = hit_count()

        async def post(scenario: TopicScenario) -> None:
            for number in range(30):
                if number % 3 == 0:
                    await scenario.post("hidden", BLOCKED)
                await assert_visible(await scenario.post(str(number)), *scenarios)

        await asyncio.gather(post(scenarios[0]), post(scenarios[1]))
        assert hit_count() - hits_before > 50, "Too few pages came from the hot page."


async def test_edit_deletion_and_reaction_are_visible_once_returned(
    hot_topic: TopicScenario, open_process: OpenStores
) -> None:
    async with open_process() as other:
        reader = hot_topic.with_stores(other)
        # On a busy machine the lease of the hot page may expire. Then pages come from MongoDB, which proves nothing.
        for _ in range(10):
            await wait_for_hot_page(reader)
            hits_before = hit_count()
            await change_message_and_read(hot_topic, reader)
            if hit_count() - hits_before == 6 * HITS_PER_ASSERTION:
                return
        pytest.fail("Not every page came from the hot page.")


async def change_message_and_read(topic: TopicScenario, reader: TopicScenario) -> None:
    """Changes a new message in six ways, each of which the reader must see at once."""
    messages, organization_id = topic.stores.messages, topic.organization_id
    posted = await topic.post("see https://beacon.example/")
    await topic.post("hidden", BLOCKED)
    await assert_visible(await messages.edit(posted.key, "ann", "look: https://beacon.example/", ["bob"]), reader)
    preview = LinkPreview("https://beacon.example/", "Beacon", None, None, None)
    await assert_visible(await messages.set_preview(posted.key, "https://beacon.example/", preview), reader)
    await assert_visible(await messages.add_reaction(organization_id, posted.key, "bob", "🔥"), reader)
    await assert_visible(await messages.add_reaction(organization_id, posted.key, "ann", "🔥"), reader)
    await assert_visible(await messages.remove_reaction(organization_id, posted.key, "bob", "🔥"), reader)
    await assert_visible(await messages.delete(posted.key, Moderator("ann")), reader)


@pytest.mark.parametrize("interrupt", [FaultyProxy.refuse_connections, FaultyProxy.drop_traffic])
async def test_poster_without_redis_waits_for_the_end_of_all_leases(
    hot_topic: TopicScenario,
    open_process: OpenStores,
    proxy: FaultyProxy,
    interrupt: Callable[[FaultyProxy], Awaitable[None]],
) -> None:
    async with open_process() as reading_stores, open_process(proxy.redis_url) as posting_stores:
        reader, poster = hot_topic.with_stores(reading_stores), hot_topic.with_stores(posting_stores)
        await wait_for_hot_page(reader)
        await assert_visible(await poster.post("before the interruption"), reader)

        async def post(number: int) -> float:
            await asyncio.sleep(number / 50)
            posted, duration_s = await measure_duration(poster.post(str(number)))
            await assert_visible(posted, hot_topic, reader)
            return duration_s

        async with read_continuously(reader):
            await interrupt(proxy)
            hits_before = hit_count()
            posts = [asyncio.create_task(post(number)) for number in range(25)]
            durations_s = await asyncio.gather(*posts)
        assert hit_count() > hits_before, "The hot page answered nothing during its lease."
        assert all(LEASE_S - 0.1 < duration_s < LEASE_S + SLACK_S for duration_s in durations_s), durations_s
        await proxy.restore()
        await wait_for_hot_page(reader)

        async def is_quick() -> bool:
            posted, duration_s = await measure_duration(poster.post("after the interruption"))
            await assert_visible(posted, reader)
            return duration_s < LEASE_S / 2

        assert await poll_until_true(is_quick)


class ReplacedMaster(Valkey):
    """A master that refuses writes because its replicas are gone: Sentinel has made one of them the master."""

    def command(self) -> list[str]:
        return [*super().command(), "--min-replicas-to-write", "1"]


async def test_post_through_replaced_master_is_in_every_page(
    hot_topic: TopicScenario, open_process: OpenStores, tmp_path: Path
) -> None:
    master = ReplacedMaster(tmp_path, find_valkey())
    await master.start()
    try:
        async with open_process(master.url) as posting_stores:
            poster = hot_topic.with_stores(posting_stores)
            await wait_for_hot_page(hot_topic)
            async with read_continuously(hot_topic):
                for number in range(3):
                    await assert_visible(await poster.post(str(number)), hot_topic)
    finally:
        await master.stop(0)


@pytest.mark.parametrize("renews", [True, False], ids=["renewed", "built"])
async def test_lease_runs_from_before_mongodb_was_read(
    hot_topic: TopicScenario, open_process: OpenStores, proxy: FaultyProxy, renews: bool
) -> None:
    async with open_process(proxy.redis_url) as slow, open_process("redis://127.0.0.1:9/0") as without_redis:
        slow_reader, poster = hot_topic.with_stores(slow), hot_topic.with_stores(without_redis)
        if renews:
            await wait_for_hot_page(hot_topic)
        # A builder reads the clock twice: before trying to renew, and before building.
        proxy.hold("clock", skip=0 if renews else 1)
        await newest_page(slow_reader)
        await asyncio.wait_for(proxy.has_held.wait(), 30)
        post = asyncio.create_task(poster.post("unknown to Redis"))
        assert await poll_until_true(
            lambda: poster.stores.mongo["messages"].find_one({"_id.t": hot_topic.topic.id, "text": "unknown to Redis"})
        )
        # Shorter than the timeout of Redis commands.
        await asyncio.sleep(0.3)
        proxy.release()
        await assert_visible(await post, hot_topic)


async def test_page_restored_from_an_older_file_is_dropped(
    scenario: TopicScenario, open_process: OpenStores, own_valkey: Valkey, tmp_path: Path, shared_database: str
) -> None:
    older_data = tmp_path / "older"
    async with open_process(own_valkey.url) as one, open_process(own_valkey.url) as two:
        scenarios = [scenario.with_stores(one), scenario.with_stores(two)]
        await make_hot(scenario)
        await scenario.with_stores(one).post("before")
        await wait_for_hot_page(scenarios[0])
        await asyncio.to_thread(shutil.copytree, own_valkey.data, older_data)
        for number in range(3):
            await assert_visible(await scenarios[0].post(f"after {number}"), *scenarios)
        last = await scenarios[0].post("the last")
        own_valkey.kill()
        await own_valkey.wait()
        await asyncio.to_thread(shutil.rmtree, own_valkey.data)
        await asyncio.to_thread(shutil.copytree, older_data, own_valkey.data)
        await own_valkey.restart()
        async with Redis.from_url(own_valkey.url) as client:
            # Simulates a restart that takes no time, so that the restored lease is still valid.
            await end_lease_in(client, RedisKeys(shared_database).hot_page(scenario.topic.id)[0], LEASE_S)
        for _ in range(20):
            await assert_visible(last, *scenarios)
        await wait_for_hot_page(scenarios[1])
        await assert_visible(await scenarios[0].post("after the restart"), *scenarios)


@pytest.mark.parametrize("delay_s", [0.3, 2.5], ids=["slow", "slower than the timeout"])
async def test_slow_redis_causes_no_stale_page(
    hot_topic: TopicScenario, open_process: OpenStores, proxy: FaultyProxy, delay_s: float
) -> None:
    async with open_process(proxy.redis_url) as slow_stores:
        slow_process = hot_topic.with_stores(slow_stores)
        await wait_for_hot_page(hot_topic)
        await wait_for_hot_page(slow_process)
        proxy.delay_s = delay_s
        async with read_continuously(hot_topic, slow_process):

            async def post(number: int) -> float:
                await asyncio.sleep(number / 10)
                posted, duration_s = await measure_duration(slow_process.post(str(number)))
                await assert_visible(posted, hot_topic, slow_process)
                await assert_visible(await hot_topic.post(f"{number}, from nearby"), hot_topic, slow_process)
                return duration_s

            durations_s = await asyncio.gather(*(post(number) for number in range(5)))
        assert delay_s < LEASE_S or min(durations_s) > LEASE_S - 0.1, durations_s
        proxy.delay_s = 0
        await wait_for_hot_page(slow_process)


async def kill_redis(valkey: Valkey, stack: AsyncExitStack) -> None:
    valkey.kill()
    await valkey.wait()


async def suspend_redis(valkey: Valkey, stack: AsyncExitStack) -> None:
    stack.enter_context(sigstopped(valkey.pid))


@pytest.mark.parametrize("fail_redis", [kill_redis, suspend_redis])
async def test_dead_redis_delays_only_hot_posts_by_a_lease(
    scenario: TopicScenario,
    open_process: OpenStores,
    own_valkey: Valkey,
    fail_redis: Callable[[Valkey, AsyncExitStack], Awaitable[None]],
) -> None:
    async with open_process(own_valkey.url) as one, open_process(own_valkey.url) as two, AsyncExitStack() as stack:
        hot, quiet, reader = (
            await make_hot(scenario.with_stores(one)),
            await create_topic_scenario(one),
            scenario.with_stores(two),
        )
        await hot.post("before")
        await quiet.post("before")
        await wait_for_hot_page(reader)
        await fail_redis(own_valkey, stack)
        (posted, duration_s), (_, quiet_s) = await asyncio.gather(
            measure_duration(hot.post("hot")), measure_duration(quiet.post("quiet"))
        )
        assert LEASE_S - 0.1 < duration_s < LEASE_S + SLACK_S
        assert quiet_s < LEASE_S - 0.1 or duration_s - quiet_s > LEASE_S / 2, "The quiet topic was delayed by a lease."
        await assert_visible(posted, reader, hot)
        hits_before = hit_count()
        began_at = time.monotonic()
        for _ in range(20):
            await assert_visible(posted, reader)
        assert time.monotonic() - began_at < 2 * LEASE_S + SLACK_S, "Every read waited for the failed Redis."
        assert hit_count() == hits_before


async def test_post_of_a_killed_process_is_missing_for_a_lease_at_most(
    hot_topic: TopicScenario, open_process: OpenStores
) -> None:
    async with another_process(hot_topic, extends_pages=False) as killed_process, open_process() as other:
        reader = hot_topic.with_stores(other)
        await wait_for_hot_page(reader)
        posted, committed_at_s = await killed_process.post("committed, but not announced"), time.monotonic()

        last_stale_read_s = committed_at_s

        async def is_visible() -> bool:
            nonlocal last_stale_read_s
            began_at = time.monotonic()
            if posted in await newest_page(reader):
                return True
            last_stale_read_s = began_at
            return False

        assert await poll_until_true(is_visible)
        assert last_stale_read_s - committed_at_s < LEASE_S
        async with read_continuously(reader):
            while time.monotonic() - committed_at_s < LEASE_S + 0.5:
                await assert_visible(posted, reader)
        await wait_for_hot_page(reader)
        await assert_visible(await hot_topic.post("the next"), reader)


async def test_repeated_request_returns_once_every_reader_sees_it(
    hot_topic: TopicScenario, open_process: OpenStores
) -> None:
    async with another_process(hot_topic, extends_pages=False) as killed_process, open_process() as other:
        reader, org = hot_topic.with_stores(other), hot_topic.organization_id
        await wait_for_hot_page(reader)
        await killed_process.post("posted", key="again")
        await assert_visible(await hot_topic.post("posted", key="again"), reader)
        await wait_for_hot_page(reader)
        message = (await newest_page(reader))[0]
        await killed_process.stores.messages.add_reaction(org, message.key, "bob", "🔥")
        await assert_visible(await hot_topic.stores.messages.add_reaction(org, message.key, "bob", "🔥"), reader)


async def test_late_extension_is_awaited_and_applied(
    hot_topic: TopicScenario, open_process: OpenStores, proxy: FaultyProxy
) -> None:
    async with open_process(proxy.redis_url) as late_stores:
        await wait_for_hot_page(hot_topic)
        proxy.hold("extend")
        first = asyncio.create_task(hot_topic.with_stores(late_stores).post("first"))
        await asyncio.wait_for(proxy.has_held.wait(), 30)
        await assert_visible(await hot_topic.post("second"), hot_topic)
        assert not await is_hit(hot_topic), "The hot page lacks the first post."
        proxy.release()
        await assert_visible(await first, hot_topic)
        assert await is_hit(hot_topic), "The hot page was not extended with both posts."


async def test_gap_that_is_never_filled_leads_to_a_new_page(hot_topic: TopicScenario) -> None:
    async with another_process(hot_topic, extends_pages=False) as killed_process:
        await wait_for_hot_page(hot_topic)
        await killed_process.post("lost")
        posted = await hot_topic.post("the next")
        await assert_visible(posted, hot_topic)
        assert not await is_hit(hot_topic)
        await wait_for_hot_page(hot_topic)
        assert [each.text for each in await newest_page(hot_topic)] == ["the next", "lost", "the first"]


async def test_pages_deleted_and_rebuilt_under_load_are_never_stale(
    hot_topic: TopicScenario, open_process: OpenStores
) -> None:
    keys = hot_topic.stores.keys.hot_page(hot_topic.topic.id)
    async with open_process() as second, AsyncExitStack() as stack:
        poster = hot_topic.with_stores(second)

        async def post(scenario: TopicScenario) -> None:
            for number in range(20):
                # A process builds a page at most once a second, so each iteration has a new process.
                reader = await stack.enter_async_context(another_process(scenario))
                await assert_visible(await scenario.post(str(number)), hot_topic, reader)
                if number % 3 == 0:
                    await hot_topic.stores.redis.delete(keys[number % len(keys)])

        hits_before = hit_count()
        await asyncio.gather(post(hot_topic), post(poster))
        assert hit_count() > hits_before
    await wait_for_hot_page(hot_topic)


@pytest.mark.parametrize(
    "item",
    [b"", b"\xff\xfe", b"5", b"[]", b'["1"]', b'["x","ann","",null,[],[],null,null,null]', b'["1",1,2,3,4,5,6,7,8]'],
)
async def test_corrupt_item_is_read_from_mongodb_and_page_rebuilt(hot_topic: TopicScenario, item: bytes) -> None:
    _, items, _ = hot_topic.stores.keys.hot_page(hot_topic.topic.id)
    await wait_for_hot_page(hot_topic)
    (posted,) = await newest_page(hot_topic)
    await hot_topic.stores.redis.delete(items)
    await hot_topic.stores.redis.zadd(items, {item: posted.timestamp})
    assert await newest_page(hot_topic) == [posted]
    await wait_for_hot_page(hot_topic)
    assert await newest_page(hot_topic) == [posted]


async def test_cooling_page_ends_before_posters_stop_extending_it(hot_topic: TopicScenario) -> None:
    await wait_for_hot_page(hot_topic)
    await make_hot(hot_topic, MAYBE_HOT_PER_MINUTE * 1.5)
    await end_lease_in(hot_topic.stores.redis, hot_topic.stores.keys.hot_page(hot_topic.topic.id)[0], 0.2)

    async def has_stopped_answering() -> bool:
        return not await is_hit(hot_topic)

    assert await poll_until_true(has_stopped_answering)
    async with read_continuously(hot_topic):
        await assert_visible(await hot_topic.post("lukewarm"), hot_topic)


async def test_posts_to_a_quiet_topic_do_not_use_redis(scenario: TopicScenario, open_process: OpenStores) -> None:
    async with open_process("redis://127.0.0.1:9/0") as without_redis:
        durations_s = [(await measure_duration(scenario.with_stores(without_redis).post("hello")))[1] for _ in range(5)]
    assert min(durations_s) < LEASE_S - 0.1


async def test_position_of_stream_ready_is_in_every_later_page(
    hot_topic: TopicScenario, open_process: OpenStores, proxy: FaultyProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A message before StreamReady is not delivered as an event, so a page read afterwards must contain it."""
    now_s = time.time
    async with open_process() as reading_stores, open_process(proxy.redis_url) as posting_stores:
        reader, poster = hot_topic.with_stores(reading_stores), hot_topic.with_stores(posting_stores)
        await wait_for_hot_page(reader)
        await proxy.refuse_connections()
        posting = asyncio.create_task(poster.post("not returned yet"))
        stream = Stream("topic", hot_topic.topic.id)
        head_before = await reading_stores.hub.head(stream)

        async def is_committed() -> bool:
            return (await reading_stores.hub.head(stream)).n > head_before.n or posting.done()

        assert await poll_until_true(is_committed)
        position = await reading_stores.hub.head(stream)
        with monkeypatch.context() as patch:
            # According to this host's clock, the topic is no longer hot.
            patch.setattr(time, "time", lambda: now_s() + 3600)
            await reading_stores.messages.wait_until_readable(hot_topic.topic.id, position.n)
        assert (await newest_page(reader))[0].text == "not returned yet"
        await posting

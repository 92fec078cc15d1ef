"""Execute once, for whom, and that sharing loses, doubles and leaks nothing."""

import asyncio
import gc
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from collections.abc import Set as AbstractSet
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import orjson
import pytest
from graphql.execution import Executor
from prometheus_client import REGISTRY

from resolvers.chat.events import ChatEventSource
from server.graphql.broadcasts import RECHECK_S
from server.graphql.frames import Listener
from storage.streams.log import Position as At
from storage.streams.log import Stream, format_cursor
from tests.e2e.chat_topic import number
from tests.server.graphql.listeners import PATIENCE_S, PLAIN, Heard, House, eventually
from tests.server.in_process import RawClient, raw_client
from tests.storage.topic_scenario import TopicScenario

pytestmark = pytest.mark.anyio

TEXT = 0x81
# Of different lengths, and with what JSON writes differently.
IDS = ["1", "7f3c1d5e-9b1a-4c57-8a0e-3f7f0d8c2b11", "狼煙", 'a "quoted" \\ id', "line\nbreak\t\u2028\0", "🔥" * 40]
VIEWERS_OWN = PLAIN.replace("author { id }", "author { id } reactions { emoji }")
CHOSEN = PLAIN.replace("$since: Cursor", "$since: Cursor, $with: Boolean! = false").replace(
    "text", "text @include(if: $with)"
)


def executions() -> float:
    """The number of events executed by all broadcasts of this process so far."""
    return REGISTRY.get_sample_value("noroshi_broadcast_executions_total") or 0.0


async def post(place: TopicScenario, count: int, author: str = "ann") -> None:
    await asyncio.gather(*(place.post(f"{author} {n}", author) for n in range(count)))


def cursor(house: House, n: int, epoch: str) -> str:
    return format_cursor(house.place.stream, At(epoch, n))


async def epoch(house: House) -> str:
    return (await house.stores.events.head(house.place.stream)).epoch


@pytest.fixture
def hydrated(house: House, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The numbers of the events whose objects were read, as often as they were."""
    numbers: list[int] = []
    hydrate = house.stores.hub._hydrate

    async def counting(stream: Stream, events: Any) -> Any:
        numbers.extend(event.n for event in events)
        return await hydrate(stream, events)

    monkeypatch.setattr(house.stores.hub, "_hydrate", counting)
    return numbers


async def test_event_is_read_and_executed_once_for_all_listeners(house: House, hydrated: list[int]) -> None:
    people = [f"user{n}" for n in range(20)]
    await house.join(*people)
    async with AsyncExitStack() as stack:
        heard = [
            await stack.enter_async_context(house.hears(person, id_=IDS[n % len(IDS)]))
            for n, person in enumerate(people)
        ]
        before = executions()
        await post(house.place, 10)
        for each in heard:
            assert await each.has(10)
        assert len(house.view.broadcasts) == 1
        assert executions() == before + 10
        assert sorted(hydrated) == list(range(1, 11))
        for each in heard:
            assert each.numbers == list(range(1, 11))
            assert each.all == heard[0].all
            for text, first in zip(each.texts[1:], heard[0].texts[1:], strict=True):
                assert text.replace(_in_json(each.id), _in_json("1"), 1) == first


def _in_json(id_: str) -> str:
    return orjson.dumps({"id": id_}).decode()[1:-1]


@asynccontextmanager
async def two(house: House, first: dict[str, Any], second: dict[str, Any]) -> AsyncIterator[tuple[Heard, Heard]]:
    async with house.hears(**first) as one, house.hears(**second) as other:
        yield one, other


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({}, {"user_id": "bob"}),
        ({}, {"id_": "other"}),
        ({"roles": ("MEMBER",)}, {"roles": ("ADMIN",)}),
        ({"query": CHOSEN, "with": True}, {"query": CHOSEN, "with": True, "user_id": "bob"}),
        ({"query": VIEWERS_OWN}, {"query": VIEWERS_OWN}),
    ],
    ids=["viewers", "ids", "roles", "variables", "one viewer twice"],
)
async def test_identical_subscriptions_share_one_broadcast(
    house: House, first: dict[str, Any], second: dict[str, Any]
) -> None:
    await house.join("bob")
    async with two(house, first, second) as (one, other):
        before = executions()
        await post(house.place, 3)
        assert await one.has(3)
        assert await other.has(3)
        assert one.events == other.events
        assert (len(house.view.broadcasts), executions()) == (1, before + 3)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"query": CHOSEN, "with": True}, {"query": CHOSEN, "with": False}),
        ({"query": PLAIN}, {"query": PLAIN.replace("text", "id")}),
        ({"query": VIEWERS_OWN}, {"query": VIEWERS_OWN, "user_id": "bob"}),
        ({"query": VIEWERS_OWN, "roles": ("MEMBER",)}, {"query": VIEWERS_OWN, "roles": ("ADMIN",)}),
        (
            {"query": f"{PLAIN.replace('(', ' A(', 1)} {CHOSEN.replace('(', ' B(', 1)}", "operation_name": "A"},
            {"query": f"{PLAIN.replace('(', ' A(', 1)} {CHOSEN.replace('(', ' B(', 1)}", "operation_name": "B"},
        ),
    ],
    ids=["variables", "documents", "viewers of what depends on them", "rights", "operations of one document"],
)
async def test_different_subscriptions_are_not_shared(
    house: House, first: dict[str, Any], second: dict[str, Any]
) -> None:
    await house.join("bob")
    async with two(house, first, second) as (one, other):
        before = executions()
        await post(house.place, 3)
        assert await one.has(3)
        assert await other.has(3)
        assert (len(house.view.broadcasts), executions()) == (2, before + 6)


async def test_wherever_they_come_from_they_share_one_execution(house: House) -> None:
    await post(house.place, 20)
    at = await epoch(house)
    async with AsyncExitStack() as stack:
        starts = [0, 7, 19, 20]
        heard = [await stack.enter_async_context(house.hears(since=cursor(house, n, at))) for n in starts]
        assert len(house.view.broadcasts) == 1
        for start, each in zip(starts, heard, strict=True):
            assert await each.has(20 - start)
            assert [event["resumed"] for event in each.ready] == [True]
            assert each.ready[0]["cursor"] == cursor(house, start, at)
        before = executions()
        await post(house.place, 1)
        for start, each in zip(starts, heard, strict=True):
            assert await each.reaches(21)
            assert each.numbers == list(range(start + 1, 22))
        assert executions() == before + 1


async def test_concurrent_resumes_from_one_cursor_share_replay(house: House) -> None:
    await post(house.place, 50)
    since = cursor(house, 0, await epoch(house))
    async with house.hears() as first:
        before = executions()
        async with AsyncExitStack() as stack:
            opening = [stack.enter_async_context(house.hears(since=since)) for _ in range(20)]
            heard = await asyncio.gather(*opening)
            for each in heard:
                assert await each.has(50)
                assert each.numbers == list(range(1, 51))
            assert executions() < before + 20 * 50 / 2
        assert first.numbers == []


async def test_listeners_that_come_and_go_get_each_event_once(house: House) -> None:
    people = [f"user{n}" for n in range(6)]
    await house.join(*people)
    first = cursor(house, 0, await epoch(house))
    visits: dict[str, list[list[int]]] = {person: [] for person in people}
    posting, posted = True, 0
    chance = random.Random(7)

    async def come_and_go(person: str) -> None:
        position = first
        while posting or number(position) < posted:
            async with house.hears(person, position) as heard:
                await asyncio.sleep(chance.uniform(0, 0.2))
                position, numbers = heard.cursor, heard.numbers
                assert [event["resumed"] for event in heard.ready] == [True]
            visits[person].append(numbers)

    async with house.hears() as constant, asyncio.TaskGroup() as group:
        for person in people:
            group.create_task(come_and_go(person))
        while posted < 200 or min(len(each) for each in visits.values()) < 4:
            await post(house.place, 5)
            posted += 5
            # Who is slow to come and go is waited for, and not drowned.
            await asyncio.sleep(chance.uniform(0, 0.03) if posted < 200 else 0.5)
        posting = False
        assert await constant.reaches(posted)
    assert constant.numbers == list(range(1, posted + 1))
    for numbers in visits.values():
        assert [n for visit in numbers for n in visit] == constant.numbers


async def test_listener_ahead_of_process_gets_no_repetition(house: House, mute: TopicScenario) -> None:
    at = await epoch(house)
    async with house.hears() as behind:
        await post(mute, 4)
        async with house.hears(since=cursor(house, 4, at)) as ahead, house.hears(since=cursor(house, 2, at)) as between:
            assert [event["resumed"] for event in ahead.ready] == [True]
            assert not await behind.has(1, 0.2)
            await house.stores.hub.compare()
            assert await behind.has(4)
            await post(house.place, 1)
            for each, start in ((behind, 0), (between, 2), (ahead, 4)):
                assert await each.reaches(5)
                assert each.numbers == list(range(start + 1, 6))


async def test_block_withholds_events_from_blocker_only(house: House) -> None:
    await house.join("bob", "eve", "joe")
    org, relations = house.place.organization_id, house.stores.relations
    await relations.block(org, "joe", "bob")
    async with house.all_hear("ann", "bob", "eve", "joe") as heard:
        for author in ("ann", "bob", "eve"):
            await post(house.place, 1, author)
        assert await eventually(lambda: all(each.numbers[-1:] == [3] for each in heard))
        await relations.block(org, "eve", "bob")
        await relations.unblock(org, "joe", "bob")
        await post(house.place, 1, "bob")
        await post(house.place, 1, "eve")
        assert await eventually(lambda: all(each.numbers[-1:] == [5] for each in heard))
        assert len(house.view.broadcasts) == 1
    seen = dict(zip(["ann", "bob", "eve", "joe"], [each.numbers for each in heard], strict=True))
    assert seen == {"ann": [1, 2, 3, 4, 5], "bob": [1, 2, 3, 4, 5], "eve": [1, 2, 3, 5], "joe": [1, 3, 4, 5]}


async def test_block_withholds_replayed_events(house: House) -> None:
    await house.join("bob", "eve")
    await house.stores.relations.block(house.place.organization_id, "eve", "bob")
    for n in range(6):
        await post(house.place, 1, "bob" if n % 2 else "ann")
    since = cursor(house, 0, await epoch(house))
    async with house.hears("ann"), house.hears("eve", since) as eve, house.hears("bob", since) as bob:
        assert await bob.has(6)
        assert await eve.reaches(5)
    assert (bob.numbers, eve.numbers) == ([1, 2, 3, 4, 5, 6], [1, 3, 5])


async def test_leaving_ends_only_own_subscription_within_5_s(house: House) -> None:
    assert RECHECK_S < 4, "the rest is for the lookup and the delivery"
    await house.join("bob", "eve")
    async with house.all_hear("ann", "bob", "eve") as (ann, bob, eve):
        await house.stores.communities.leave(house.place.community, "bob")
        assert await eventually(lambda: bob.codes)
        assert bob.codes == ["FORBIDDEN"]
        assert bob.ended is None
        await post(house.place, 2)
        assert await ann.has(2)
        assert await eve.has(2)
        assert not await bob.has(1, 0.2)
        assert (ann.codes, eve.codes) == ([], [])
        assert len(house.view.broadcasts) == 1


@pytest.fixture
def rechecked(monkeypatch: pytest.MonkeyPatch) -> list[set[str]]:
    """The users of each recheck whether they still belong to the community."""
    rechecks: list[set[str]] = []
    may_listen = ChatEventSource.may_listen

    async def recording(source: ChatEventSource, user_ids: Collection[str]) -> AbstractSet[str]:
        rechecks.append(set(user_ids))
        return await may_listen(source, user_ids)

    monkeypatch.setattr(ChatEventSource, "may_listen", recording)
    return rechecks


async def test_recheck_reads_only_new_listeners_until_departure(house: House, rechecked: list[set[str]]) -> None:
    await house.join("bob", "eve")
    async with house.all_hear("ann", "bob") as (_, bob):
        assert await eventually(lambda: rechecked == [{"ann", "bob"}])
        async with house.hears("eve"):
            assert await eventually(lambda: rechecked[1:] == [{"eve"}])
            await house.stores.communities.leave(house.place.community, "bob")
            assert await eventually(lambda: bob.codes)
            assert rechecked[2:] == [{"ann", "bob", "eve"}]


async def test_leaving_during_start_ends_subscription(house: House) -> None:
    await house.join("bob")
    async with house.hears("bob") as bob:
        # Not counted as a departure: as if that had happened before the broadcast first looked.
        await house.stores.mongo["memberships"].delete_one({"community": house.place.community.id, "user": "bob"})
        assert await eventually(lambda: bob.codes)
        assert bob.codes == ["FORBIDDEN"]


def executors() -> list[object]:
    gc.collect()
    return [each for each in gc.get_objects() if issubclass(type(each), Executor)]


async def test_listeners_share_one_executor(house: House) -> None:
    await house.join("bob", "eve")
    # Of other tests, which may have left some.
    before = executors()
    async with house.all_hear("ann", "bob", "eve"):
        assert sum(all(each is not known for known in before) for each in executors()) == 1


async def complete(house: House, heard: Heard) -> None:
    await heard.ws.send('{"id": "1", "type": "complete"}')


async def close(house: House, heard: Heard) -> None:
    await heard.ws.close()


async def cut(house: House, heard: Heard) -> None:
    heard.ws.transport.abort()


async def be_dropped(house: House, heard: Heard) -> None:
    assert await eventually(lambda: len(house.served.wires) == 1)
    house.served.wires[0].drop("Reading too slowly")


async def leave(house: House, heard: Heard) -> None:
    await house.stores.communities.leave(house.place.community, "bob")


@pytest.mark.parametrize("go", [complete, close, cut, be_dropped, leave])
async def test_the_last_one_to_go_turns_off_the_light(
    house: House, go: Callable[[House, Heard], Awaitable[None]]
) -> None:
    await house.join("bob")
    name = house.place.stream.name
    async with house.hears("bob") as last:
        async with house.hears("ann"):
            assert await listened_to(house, name)
        assert len(house.view.broadcasts) == 1
        await go(house, last)
        assert await eventually(lambda: len(house.view.broadcasts) == 0)
        assert await eventually(lambda: not tasks_of(name))
        assert name not in house.stores.hub._locals
        assert await nobody_listens_to(house, name)


def tasks_of(stream: str) -> list[str]:
    return [task.get_name() for task in asyncio.all_tasks() if stream in task.get_name()]


async def listened_to(house: House, stream: str) -> bool:
    """Whether any process has subscribed the stream's channel."""
    channel = house.stores.keys.channel(stream)
    ((_, subscribers),) = await house.stores.redis.pubsub_numsub(channel)
    return bool(subscribers)


async def nobody_listens_to(house: House, stream: str) -> bool:
    """Whether the last process that had subscribed the stream's channel gives it up before the deadline is over."""
    async with asyncio.timeout(PATIENCE_S):
        while await listened_to(house, stream):
            await asyncio.sleep(0.01)
    return True


class Failing:
    """A gate before a lookup that fails the next few calls."""

    def __init__(self, look_up: Callable[..., Awaitable[Any]], times: int) -> None:
        self.left = times
        self._look_up = look_up

    async def __call__(self, *args: Any) -> Any:
        if self.left:
            self.left -= 1
            raise ConnectionError("the database went away")
        return await self._look_up(*args)


async def test_after_a_failure_it_goes_on_from_where_it_was(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    await house.join("bob")
    async with house.all_hear("ann", "bob") as heard:
        await post(house.place, 2)
        assert await heard[1].has(2)
        failing = Failing(house.stores.relations.blockers_of, times=2)
        monkeypatch.setattr(house.stores.relations, "blockers_of", failing)
        await post(house.place, 3)
        for each in heard:
            assert await each.has(5)
        await post(house.place, 1)
        for each in heard:
            assert await each.reaches(6)
            assert each.numbers == [1, 2, 3, 4, 5, 6]
            assert len(each.ready) == 1
        assert failing.left == 0


async def test_a_failure_while_catching_up_delays_and_loses_nothing(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    await post(house.place, 5)
    since = cursor(house, 2, await epoch(house))
    async with house.hears():
        failing = [Failing(house.stores.hub.head, times=1), Failing(house.stores.relations.blockers_of, times=2)]
        monkeypatch.setattr(house.stores.hub, "head", failing[0])
        monkeypatch.setattr(house.stores.relations, "blockers_of", failing[1])
        async with house.hears(since=since) as late:
            assert await late.reaches(5)
            await post(house.place, 1)
            assert await late.reaches(6)
            assert late.numbers == [3, 4, 5, 6]
            assert [event["resumed"] for event in late.ready] == [True]
        assert [each.left for each in failing] == [0, 0]


async def test_pruned_log_restarts_every_listener(house: House, mute: TopicScenario) -> None:
    await house.join("bob")
    at = await epoch(house)
    async with house.all_hear("ann", "bob") as heard:
        await post(house.place, 1)
        for each in heard:
            assert await each.has(1)
        await post(mute, 5)
        await house.stores.events._delete_up_to({house.place.stream: 6})
        await house.stores.hub.compare()
        assert await eventually(lambda: all(len(each.ready) == 2 for each in heard))
        await post(house.place, 1)
        async with house.hears(since=cursor(house, 3, at)) as late:
            assert [event["resumed"] for event in late.ready] == [False]
        for each in heard:
            assert await each.reaches(7)
            assert each.numbers == [1, 7]
            assert (each.ready[1]["resumed"], each.ready[1]["cursor"]) == (False, cursor(house, 6, at))


async def begin_anew(house: House) -> None:
    """Replaces the log by another one, as restoring a backup does."""
    await house.stores.mongo["events"].delete_many({"_id.s": house.place.stream.name})
    anew = {"$set": {"epoch": "anew", "n": 0, "floor": 0}}
    await house.stores.mongo["topics"].update_one({"_id": house.place.topic.id}, anew)


async def test_new_epoch_restarts_every_listener(house: House) -> None:
    await house.join("bob")
    async with house.all_hear("ann", "bob") as heard:
        await post(house.place, 3)
        for each in heard:
            assert await each.has(3)
        await begin_anew(house)
        await house.stores.hub.compare()
        assert await eventually(lambda: all(len(each.ready) == 2 for each in heard))
        await post(house.place, 2)
        for each in heard:
            assert await each.has(5)
            assert each.numbers == [1, 2, 3, 1, 2]
            assert (each.ready[1]["resumed"], each.ready[1]["cursor"]) == (False, cursor(house, 0, "anew"))


class Gate:
    """A gate before a lookup that holds back its result."""

    def __init__(self, look_up: Callable[..., Awaitable[Any]]) -> None:
        self.reached, self.opened = asyncio.Event(), asyncio.Event()
        self._look_up = look_up

    async def __call__(self, *args: Any) -> Any:
        found = await self._look_up(*args)
        self.reached.set()
        await self.opened.wait()
        return found


async def test_new_epoch_restarts_listener_that_catches_up(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    await post(house.place, 5)
    since = cursor(house, 0, await epoch(house))
    async with house.hears() as live:
        gate = Gate(house.stores.hub.replay)
        with monkeypatch.context() as patch:
            patch.setattr(house.stores.hub, "replay", gate)
            async with house.hears(since=since) as late:
                assert await eventually(gate.reached.is_set)
                patch.undo()
                await begin_anew(house)
                await house.stores.hub.compare()
                assert await eventually(lambda: len(live.ready) == 2)
                gate.opened.set()
                assert await eventually(lambda: len(late.ready) == 2)
                await post(house.place, 1)
                assert await late.reaches(1)
                assert late.all[-1]["cursor"] == live.all[-1]["cursor"] == cursor(house, 1, "anew")
                assert [event["resumed"] for event in late.ready] == [True, False]


async def test_an_event_between_ready_and_live_is_not_lost(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    await post(house.place, 5)
    since = cursor(house, 2, await epoch(house))
    async with house.hears() as live:
        gate = Gate(house.stores.hub.replay)
        with monkeypatch.context() as patch:
            patch.setattr(house.stores.hub, "replay", gate)
            async with house.hears(since=since) as late:
                assert await eventually(gate.reached.is_set)
                patch.undo()
                await post(house.place, 3)
                assert await live.reaches(8)
                gate.opened.set()
                assert await late.reaches(8)
                assert late.numbers == [3, 4, 5, 6, 7, 8]


async def test_a_slow_line_that_is_far_behind_catches_up_on_one_socket(house: House) -> None:
    for _ in range(12):
        await asyncio.gather(*(house.place.post("x" * 1000) for _ in range(100)))
    async with house.hears() as live, raw_client(house.served.port, 16_384) as raw:
        given = {"topic": house.place.topic.id, "since": cursor(house, 0, await epoch(house))}
        for message in (
            {"type": "connection_init", "payload": {"authorization": f"Bearer {house.token('ann')}"}},
            {"id": "1", "type": "subscribe", "payload": {"query": PLAIN, "variables": given}},
        ):
            await raw.say(TEXT, orjson.dumps(message))
        heard = Heard(live.ws, "1")
        async with asyncio.timeout(120):
            while len(heard.frames) < 1202 + 20:
                opcode, text = await raw.frame()
                assert opcode == TEXT, text
                heard.frames.append(orjson.loads(text))
                if len(heard.frames) % 60 == 0:
                    await post(house.place, 1)
                    await asyncio.sleep(0.02)
        assert heard.numbers == list(range(1, 1221))


SLOWLY_S = 0.0005


async def begin(raw: RawClient, house: House, since: str | None, *queries: str) -> None:
    """Subscribes to each on one socket, with ids from 1."""
    authorization = f"Bearer {house.token('ann')}"
    await raw.say(TEXT, orjson.dumps({"type": "connection_init", "payload": {"authorization": authorization}}))
    given = {"topic": house.place.topic.id, "since": since}
    for id_, query in enumerate(queries, 1):
        subscribe = {"id": str(id_), "type": "subscribe", "payload": {"query": query, "variables": given}}
        await raw.say(TEXT, orjson.dumps(subscribe))


async def heard_slowly(raw: RawClient, house: House, until: int, *ids: str) -> dict[str, list[int]]:
    """The numbers that each subscription gets, read without a pause but slowly."""
    numbers: dict[str, list[int]] = {id_: [] for id_ in ids}
    async with asyncio.timeout(60):
        while any(each[-1:] != [until] for each in numbers.values()):
            opcode, text = await raw.frame()
            assert opcode == TEXT, text
            frame = orjson.loads(text)
            event = frame.get("payload", {}).get("data", {}).get("topicEvents", {})
            if event.get("__typename") == "MessagePosted":
                numbers[frame["id"]].append(number(event["cursor"]))
            await asyncio.sleep(SLOWLY_S)
    return numbers


async def test_several_that_are_far_behind_catch_up_on_one_socket(house: House) -> None:
    for _ in range(6):
        await asyncio.gather(*(house.place.post("x" * 1000) for _ in range(100)))
    async with raw_client(house.served.port, 16_384) as raw:
        await begin(raw, house, cursor(house, 0, await epoch(house)), PLAIN, PLAIN + " ", PLAIN + "  ")
        heard = await heard_slowly(raw, house, 600, "1", "2", "3")
    assert heard == {id_: list(range(1, 601)) for id_ in "123"}


async def test_listener_after_outage_catches_up_at_own_pace(house: House, mute: TopicScenario) -> None:
    async with raw_client(house.served.port, 16_384) as raw, house.hears() as fast:
        await begin(raw, house, None, PLAIN, PLAIN + " ")
        for _ in range(3):
            # The acknowledgement, and twice that it is ready.
            await raw.frame()
        await house.place.post("the first")
        for _ in range(12):
            await asyncio.gather(*(mute.post("x" * 1000) for _ in range(100)))
        await house.stores.hub.compare()
        heard = await heard_slowly(raw, house, 1201, "1", "2")
        assert await fast.reaches(1201)
        # All are live again.
        await house.place.post("the last")
        assert (await heard_slowly(raw, house, 1202, "1", "2")) == {id_: [1202] for id_ in "12"}
        assert await fast.reaches(1202)
    assert heard == {id_: list(range(1, 1202)) for id_ in "12"}
    assert fast.numbers == list(range(1, 1203))


async def test_listener_that_caught_up_is_live_before_the_next_event(house: House) -> None:
    """An event that is handed on between the last comparison and `live` would be lost for the listener."""
    async with house.hears() as heard:
        assert await eventually(lambda: all(each.live for each in _listeners(house)))
        (broadcast,) = house.view.broadcasts._broadcasts.values()
        (listener,) = broadcast.listeners
        assert broadcast.position is not None
        listener.live = False
        with pytest.raises(StopIteration):
            # The coroutine must end in one step, without a moment in which another task may run.
            broadcast._catch_up(listener, broadcast.position).send(None)
        assert listener.live
        await post(house.place, 1)
        assert await heard.has(1)


def _listeners(house: House) -> list[Listener]:
    return [each for broadcast in house.view.broadcasts._broadcasts.values() for each in broadcast.listeners]

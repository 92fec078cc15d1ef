"""Coming late, coming back, being slow, and failures: sharing loses nothing and gives nothing twice."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Any

import orjson
import pytest

from storage.events import Position as At
from storage.events import format_cursor
from tests.e2e.room import number
from tests.server.in_process import raw_client
from tests.server.listeners import PLAIN, Heard, House, eventually
from tests.storage.places import Place

pytestmark = pytest.mark.anyio

TEXT = 0x81


async def test_listeners_who_come_and_go_while_events_flow_miss_nothing_and_get_nothing_twice(house: House) -> None:
    people = [f"user{n}" for n in range(10)]
    await house.join(*people)
    first = cursor(house, 0, await epoch(house))
    visits: dict[str, list[list[int]]] = {person: [] for person in people}
    chance = random.Random(7)

    async def come_and_go(person: str) -> None:
        position = first
        while number(position) < 200:
            async with house.hears(person, position) as heard:
                await asyncio.sleep(chance.uniform(0, 0.2))
                position, numbers = heard.cursor, heard.numbers
                assert [event["resumed"] for event in heard.ready] == [True]
            visits[person].append(numbers)

    async with house.hears() as constant, asyncio.TaskGroup() as group:
        for person in people:
            group.create_task(come_and_go(person))
        for _ in range(40):
            await post(house.place, 5)
            await asyncio.sleep(chance.uniform(0, 0.03))
        assert await constant.reaches(200)
    assert constant.numbers == list(range(1, 201))
    for numbers in visits.values():
        assert len(numbers) > 3
        assert [n for visit in numbers for n in visit] == constant.numbers


async def test_who_was_ahead_of_this_process_gets_nothing_again(house: House, mute: Place) -> None:
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


class Gate:
    """Stands before a look-up, and holds back its answer."""

    def __init__(self, look_up: Callable[..., Awaitable[Any]]) -> None:
        self.reached, self.opened = asyncio.Event(), asyncio.Event()
        self._look_up = look_up

    async def __call__(self, *args: Any) -> Any:
        found = await self._look_up(*args)
        self.reached.set()
        await self.opened.wait()
        return found


async def test_who_leaves_while_catching_up_gets_no_more_of_it(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    await house.join("bob")
    await post(house.place, 5)
    async with house.hears("ann"):
        gate = Gate(house.stores.hub.replay)
        monkeypatch.setattr(house.stores.hub, "replay", gate)
        async with house.hears("bob", cursor(house, 0, await epoch(house))) as bob:
            assert await eventually(gate.reached.is_set)
            await house.stores.communities.leave(house.place.community, "bob")
            (broadcast,) = house.view.broadcasts._broadcasts.values()
            (listener,) = (each for each in broadcast.listeners if each.viewer_id == "bob")
            assert await eventually(listener.ended.done, 5)
            gate.opened.set()
            assert await eventually(lambda: bob.codes)
            assert bob.codes == ["FORBIDDEN"]
            assert bob.events == []


class Failing:
    """Stands before a look-up, and fails the next few times."""

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


async def test_everybody_is_told_when_the_log_was_pruned_past_them(house: House, mute: Place) -> None:
    await house.join("bob")
    at = await epoch(house)
    async with house.all_hear("ann", "bob") as heard:
        await post(house.place, 1)
        for each in heard:
            assert await each.has(1)
        await post(mute, 5)
        await house.stores.events._forget(house.place.stream, 6)
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
    """What restoring a backup does: the log is another one."""
    await house.stores.mongo["events"].delete_many({"_id.s": house.place.stream.name})
    anew = {"$set": {"epoch": "anew", "n": 0, "floor": 0}}
    await house.stores.mongo["topics"].update_one({"_id": house.place.topic.id}, anew)


async def test_everybody_is_told_when_the_log_is_another_one(house: House) -> None:
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


async def test_who_catches_up_while_the_log_becomes_another_one_is_told(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
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
        async with asyncio.timeout(30):
            while len(heard.frames) < 1202 + 20:
                opcode, text = await raw.frame()
                assert opcode == TEXT, text
                heard.frames.append(orjson.loads(text))
                if len(heard.frames) % 60 == 0:
                    await post(house.place, 1)
                    await asyncio.sleep(0.02)
        assert heard.numbers == list(range(1, 1221))

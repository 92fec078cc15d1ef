"""People who were active lately get what they have earned, once, whatever happens to the workers that look for them."""

import asyncio
from datetime import timedelta

import pytest

from storage.chat.changes import NewMessage
from storage.chat.stamps.rules import StampRuleKind
from storage.feed.stamp_rules.activity import SCANS
from storage.ids import UserKey
from storage.stores import Stores
from storage.streams.log import EVENTS_BY_TIME
from tests.cancellation import CancelledAwait
from tests.resolvers.people import until_outbox_is_empty
from tests.storage.chat.stamps.test_ownerships import notifications
from tests.storage.feed.feed_scenario import FeedScenario
from tests.storage.feed.stamp_rules.rule_scenario import RuleScenario, create_rule_scenario
from tests.waiting import poll_until_true

pytestmark = pytest.mark.anyio

MESSAGES, POSTS, REACTIONS, DAYS = StampRuleKind


@pytest.fixture
async def made(stores: Stores) -> RuleScenario:
    return await create_rule_scenario(stores, "acme")


async def begin(made: RuleScenario) -> None:
    """Lets the first sweep store its position, and ends the walk, so that only later events are found."""
    await made.pack(DAYS, 3650)
    await made.walk()
    await made.stores.stamp_rule_activity.sweep(0.0)


async def sweep_until_owned(made: RuleScenario, name: str, packs: int = 1) -> None:
    """Sweeps until a person owns so many packs. An event is found from the next millisecond on.

    No commit may be under way, because the sweeps have no delay.
    """
    await until_outbox_is_empty(made.stores)

    async def is_owner() -> bool:
        await made.stores.stamp_rule_activity.sweep(0.0)
        return len(await made.stores.stamp_ownerships.owned_packs(made.person(name))) == packs

    assert await poll_until_true(is_owner), name


async def test_each_kind_of_activity_is_found(made: RuleScenario) -> None:
    feed, messages = FeedScenario(made.stores, "acme"), made.stores.messages
    await made.join("bob", "cat", "dan")
    for kind in (MESSAGES, POSTS, REACTIONS):
        await made.pack(kind, 1)
    earlier = await made.scenario.post("hello", "cat")
    await begin(made)
    await made.scenario.post("hello", "bob")
    await sweep_until_owned(made, "bob")
    await messages.add_reaction("acme", earlier.key, "bob", "👍")
    await sweep_until_owned(made, "cat", 2)
    post = await feed.post("dan")
    await sweep_until_owned(made, "dan")
    await made.stores.post_reactions.add(post, "bob", "👍")
    await sweep_until_owned(made, "dan", 2)


async def test_activity_without_rules_reads_no_events(made: RuleScenario) -> None:
    await made.scenario.post("hello", "ann")
    assert await made.stores.stamp_rule_activity.sweep(0.0) == 0
    assert await made.stores.mongo[SCANS].count_documents({}) == 0
    assert EVENTS_BY_TIME in await made.stores.mongo["events"].index_information()


async def test_activity_in_conversations_is_not_found(made: RuleScenario) -> None:
    """A grant just after a direct message would show that somebody wrote one. People who earned a pack wait for the
    walk.
    """
    await made.join("bob", "cat")
    messages, mongo, topic = made.stores.messages, made.stores.mongo, made.scenario.topic.id
    ann, bob = [await made.stores.users.get("acme", name) for name in ("ann", "bob")]
    conversation = (await made.stores.conversations.start(ann, [bob], "", None)).id
    parent = await messages.post(NewMessage(conversation, conversation, "ann", "hello", None, ()))
    thread = (await made.stores.threads.open("acme", parent.key, "ann")).id
    packs = [await made.pack(kind, 1) for kind in (MESSAGES, REACTIONS)]
    await begin(made)
    # Earned without an event.
    await mongo["messages"].insert_one({"_id": {"t": topic, "ts": 1}, "author": "bob", "text": "hello"})
    reaction = {"_id": {"o": "acme", "u": "bob", "ts": 1}, "owner": "", "topic": topic, "ts": 1, "emoji": "👍"}
    await mongo["received_reactions"].insert_one({**reaction, "from": "ann"})
    for place in (conversation, thread):
        message = await messages.post(NewMessage(place, conversation, "bob", "hello", None, ()))
        await messages.add_reaction("acme", message.key, "ann", "👍")
    await until_outbox_is_empty(made.stores)
    await made.scenario.post("hello", "cat")
    await sweep_until_owned(made, "cat")
    assert [await made.owners(pack, "ann", "bob", "cat") for pack in packs] == [["cat"], []]
    await made.let_walk_be_due()
    await made.walk()
    assert [await made.owners(pack, "ann", "bob", "cat") for pack in packs] == [["bob", "cat"], ["bob"]]


async def test_people_of_other_organizations_are_not_evaluated(made: RuleScenario) -> None:
    other = await create_rule_scenario(made.stores, "zoo")
    pack = await made.pack(MESSAGES, 1)
    await begin(made)
    await other.scenario.post("hello", "ann")
    await made.join("bob")
    await made.scenario.post("hello", "bob")
    await sweep_until_owned(made, "bob")
    assert await made.stores.stamp_ownerships.owned_packs(UserKey("zoo", "ann")) == []
    assert await made.owners(pack, "ann", "bob") == ["bob"]


async def test_workers_that_sweep_while_people_post_grant_once(made: RuleScenario) -> None:
    """Nobody owns the pack below the threshold. Everybody does above it, and is notified once."""
    names, threshold = [f"p{number}" for number in range(6)], 5
    await made.join(*names)
    pack = await made.pack(MESSAGES, threshold)
    await begin(made)
    stores, is_over = made.stores, False

    async def work() -> None:
        # Past the lock, which only saves work.
        rules = await stores.stamp_rule_activity._rules()
        while not is_over:
            await stores.stamp_rule_activity._sweep(rules, 0.0)

    async def post(name: str) -> None:
        for number in range(1, threshold + 3):
            if number <= threshold:
                assert await made.owners(pack, name) == []
            await made.scenario.post("hello", name)

    sweeps = [asyncio.create_task(work()) for _ in range(3)]
    await asyncio.gather(*(post(name) for name in names))

    # Sweeps without a delay have missed posts that were under way.
    past = await stores.mongo.now() - timedelta(minutes=1)

    async def all_own() -> bool:
        await stores.mongo[SCANS].update_one({}, {"$set": {"at": past}})
        return await made.owners(pack, *names) == names

    assert await poll_until_true(all_own)
    is_over = True
    await asyncio.gather(*sweeps)
    for name in names:
        assert len(await notifications(stores, made.person(name))) == 1


async def test_killed_sweep_loses_no_activity(made: RuleScenario) -> None:
    await made.join("bob")
    await begin(made)
    for await_number in range(1, 200, 3):
        pack = await made.pack(MESSAGES, await_number // 3 + 1)
        await made.stores.mongo["stamp_catalogues"].update_many({}, [{"$set": {"due": {"$add": ["$$NOW", 10**8]}}}])
        await made.scenario.post("hello", "bob")
        await until_outbox_is_empty(made.stores)
        await asyncio.sleep(0.005)
        sweep = CancelledAwait(made.stores.stamp_rule_activity.sweep(0.0), await_number)
        try:
            await sweep
        except asyncio.CancelledError:
            # The killed worker's lease ends.
            await made.stores.mongo["process_locks"].delete_many({})
        await sweep_until_owned(made, "bob")
        assert await made.owners(pack, "bob") == ["bob"]
        assert len(await notifications(made.stores, made.person("bob"))) == await_number // 3 + 1
        await made.stores.mongo["stamp_ownerships"].delete_many({})
        await made.stores.stamp_packs.remove(made.admin, pack.id)
        if sweep.awaits < await_number:
            return
    raise AssertionError("The sweep did not end.")

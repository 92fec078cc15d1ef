"""Listeners of one broadcast get no event of an author whom they block, and none after they leave the community."""

import asyncio
from collections.abc import Collection
from collections.abc import Set as AbstractSet
from contextlib import AsyncExitStack

import pytest

from resolvers.chat.events import ChatEventSource
from server.graphql.broadcasts import RECHECK_EVERY_S
from storage.chat.changes import NewMessage
from tests.server.graphql.graphql_server import GraphQLServer, HeldRead, post_messages
from tests.waiting import poll_until_true

pytestmark = pytest.mark.anyio


async def test_block_withholds_events_from_blocker_only(server: GraphQLServer) -> None:
    await server.join("bob", "eve", "joe")
    org, relations = server.scenario.organization_id, server.stores.relations
    await relations.block(org, "joe", "bob")
    async with server.all_subscribed("ann", "bob", "eve", "joe") as subscriptions:
        for author in ("ann", "bob", "eve"):
            await post_messages(server.scenario, 1, author)
        assert await poll_until_true(lambda: all(each.numbers[-1:] == [3] for each in subscriptions))
        await relations.block(org, "eve", "bob")
        await relations.unblock(org, "joe", "bob")
        await post_messages(server.scenario, 1, "bob")
        await post_messages(server.scenario, 1, "eve")
        assert await poll_until_true(lambda: all(each.numbers[-1:] == [5] for each in subscriptions))
        assert len(server.endpoint.subscriptions.broadcasts) == 1
    received = dict(zip(["ann", "bob", "eve", "joe"], [each.numbers for each in subscriptions], strict=True))
    assert received == {"ann": [1, 2, 3, 4, 5], "bob": [1, 2, 3, 4, 5], "eve": [1, 2, 3, 5], "joe": [1, 3, 4, 5]}


async def test_block_withholds_replayed_events(server: GraphQLServer) -> None:
    await server.join("bob", "eve")
    await server.stores.relations.block(server.scenario.organization_id, "eve", "bob")
    for n in range(6):
        await post_messages(server.scenario, 1, "bob" if n % 2 else "ann")
    since = server.cursor(0, await server.epoch())
    async with server.subscribed("ann"), server.subscribed("eve", since) as eve, server.subscribed("bob", since) as bob:
        assert await bob.receives(6)
        assert await eve.reaches(5)
    assert (bob.numbers, eve.numbers) == ([1, 2, 3, 4, 5, 6], [1, 3, 5])


async def test_joining_during_delivery_shows_no_hidden_event(
    server: GraphQLServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Blocks are looked up for the listeners of that moment. More listeners may join before the event is written."""
    await server.join("bob", "eve", "joe")
    await server.stores.relations.block(server.scenario.organization_id, "eve", "bob")
    held_lookup = HeldRead(server.stores.relations.blockers_among)
    async with server.subscribed("ann") as ann:
        with monkeypatch.context() as patch:
            patch.setattr(server.stores.relations, "blockers_among", held_lookup)
            await post_messages(server.scenario, 1, "bob")
            assert await poll_until_true(held_lookup.has_read.is_set)
        async with server.all_subscribed("eve", "joe") as (eve, joe):
            assert await poll_until_true(lambda: all(each.is_live for each in server.listeners))
            held_lookup.released.set()
            assert await joe.receives(1)
            await post_messages(server.scenario, 1, "ann")
            assert await poll_until_true(lambda: all(each.numbers[-1:] == [2] for each in (ann, eve, joe)))
            assert (ann.numbers, eve.numbers, joe.numbers) == ([1, 2], [2], [1, 2])


async def test_shared_replay_withholds_events_from_blocker_only(
    server: GraphQLServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    await server.join("bob", "eve")
    await server.stores.relations.block(server.scenario.organization_id, "eve", "bob")
    for author in ("ann", "bob", "ann", "bob"):
        await post_messages(server.scenario, 1, author)
    since, held_replay = server.cursor(0, await server.epoch()), HeldRead(server.stores.hub.replay)
    async with server.subscribed("ann"):
        with monkeypatch.context() as patch:
            patch.setattr(server.stores.hub, "replay", held_replay)
            async with server.subscribed("eve", since) as eve, server.subscribed("bob", since) as bob:
                assert await poll_until_true(held_replay.has_read.is_set)
                held_replay.released.set()
                assert await bob.receives(4)
                assert await eve.reaches(3)
    assert (bob.numbers, eve.numbers) == ([1, 2, 3, 4], [1, 3])


async def test_leaving_ends_only_own_subscription_within_5_s(server: GraphQLServer) -> None:
    assert RECHECK_EVERY_S < 4, "At least 1 s of the 5 s must remain for the lookup and the delivery."
    await server.join("bob", "eve")
    async with server.all_subscribed("ann", "bob", "eve") as (ann, bob, eve):
        await server.stores.communities.leave(server.scenario.community, "bob")
        assert await poll_until_true(lambda: bob.error_codes)
        assert bob.error_codes == ["FORBIDDEN"]
        assert bob.closing_error is None
        await post_messages(server.scenario, 2)
        assert await ann.receives(2)
        assert await eve.receives(2)
        assert not await bob.receives(1, 0.2)
        assert (ann.error_codes, eve.error_codes) == ([], [])
        assert len(server.endpoint.subscriptions.broadcasts) == 1


async def test_departure_during_many_starts_ends_all_subscriptions(server: GraphQLServer) -> None:
    """Starts share reads of memberships and heads. None of them may use a membership from before the departure."""
    people = [f"user{number}" for number in range(20)]
    await server.join(*people)
    async with AsyncExitStack() as stack:
        leave = (server.stores.communities.leave(server.scenario.community, each) for each in people)
        starts = (stack.enter_async_context(server.subscribed(each)) for each in people)
        subscriptions = (await asyncio.gather(*starts, *leave))[: len(people)]
        assert await poll_until_true(lambda: all(each.error_codes for each in subscriptions))
        # Who was refused sees no private community. Who had subscribed is no member any more.
        assert {code for each in subscriptions for code in each.error_codes} <= {"NOT_FOUND", "FORBIDDEN"}
        await post_messages(server.scenario, 1)
        assert not server.listeners


@pytest.fixture
def rechecked_user_ids(monkeypatch: pytest.MonkeyPatch) -> list[set[str]]:
    """Returns the users whose membership each recheck has read."""
    rechecks: list[set[str]] = []
    authorized_among = ChatEventSource.authorized_among

    async def recording_authorized_among(source: ChatEventSource, user_ids: Collection[str]) -> AbstractSet[str]:
        rechecks.append(set(user_ids))
        return await authorized_among(source, user_ids)

    monkeypatch.setattr(ChatEventSource, "authorized_among", recording_authorized_among)
    return rechecks


async def test_recheck_reads_only_new_listeners_until_departure(
    server: GraphQLServer, rechecked_user_ids: list[set[str]]
) -> None:
    await server.join("bob", "eve")
    async with server.all_subscribed("ann", "bob") as (_, bob):
        assert await poll_until_true(lambda: rechecked_user_ids == [{"ann", "bob"}])
        async with server.subscribed("eve"):
            assert await poll_until_true(lambda: rechecked_user_ids[1:] == [{"eve"}])
            await server.stores.communities.leave(server.scenario.community, "bob")
            assert await poll_until_true(lambda: bob.error_codes)
            assert rechecked_user_ids[2:] == [{"ann", "bob", "eve"}]


async def test_leaving_during_start_ends_subscription(server: GraphQLServer) -> None:
    await server.join("bob")
    async with server.subscribed("bob") as bob:
        # Deletes the membership without counting a departure, as if bob had left before the first recheck.
        await server.stores.mongo["memberships"].delete_one({"community": server.scenario.community.id, "user": "bob"})
        assert await poll_until_true(lambda: bob.error_codes)
        assert bob.error_codes == ["FORBIDDEN"]


async def test_leaving_a_conversation_ends_only_own_subscription(server: GraphQLServer) -> None:
    """Conversations have no community, so the departures are those of the topic."""
    await server.join("bob", "eve")
    org, stores = server.scenario.organization_id, server.stores
    ann, bob, eve = [await stores.users.get(org, name) for name in ("ann", "bob", "eve")]
    topic = (await stores.conversations.start(ann, [bob, eve], "Boat", None)).id
    async with server.subscribed("bob", topic=topic) as of_bob, server.subscribed("eve", topic=topic) as of_eve:
        # The first recheck has seen both, and only a departure makes the next recheck read them again.
        assert await poll_until_true(lambda: all(each.is_checked for each in server.listeners))
        await stores.conversations.leave(org, "bob", topic)
        assert await poll_until_true(lambda: of_bob.error_codes)
        await stores.messages.post(NewMessage(topic, topic, "ann", "Hello", None, ()))
        assert await of_eve.receives(1)
        assert (of_bob.numbers, of_bob.error_codes, of_eve.error_codes) == ([], ["FORBIDDEN"], [])

"""Removed people lose their subscriptions at once by an event, and without the event by the next recheck."""

import pytest

import server.graphql.broadcasts
from server.graphql.departures import Departures
from storage.chat.roles import Moderator
from tests.server.graphql.graphql_server import GraphQLServer, post_messages
from tests.waiting import poll_until_true

pytestmark = pytest.mark.anyio

TYPING_EVENTS = """
    subscription ($topic: ID!) {
      typingEvents(topicId: $topic) { __typename ... on Event { cursor } ... on TypingStarted { user { id } } }
    }
"""


@pytest.fixture
def no_rechecks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Disables the periodic rechecks, so that only an event can end a subscription."""
    monkeypatch.setattr(server.graphql.broadcasts, "RECHECK_EVERY_S", 3600.0)


@pytest.fixture
def no_departures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Disables the watch for departures, as if their events were lost."""
    monkeypatch.setattr(Departures, "watch", lambda *_: None)


async def kick_and_check(server: GraphQLServer) -> None:
    """Kicks bob and bans cyd, and expects that only their subscriptions end."""
    await server.join("bob", "cyd", "eve")
    community, moderation = server.scenario.community, server.stores.moderation
    async with server.all_subscribed("ann", "bob", "cyd", "eve") as (ann, bob, cyd, eve):
        await moderation.kick(community, Moderator("ann"), "bob")
        assert await poll_until_true(lambda: bob.error_codes)
        await moderation.ban_member(community, Moderator("ann"), "cyd", None, "spam")
        assert await poll_until_true(lambda: cyd.error_codes)
        await post_messages(server.scenario, 1)
        assert await ann.receives(1)
        assert await eve.receives(1)
        assert (bob.error_codes, cyd.error_codes) == (["FORBIDDEN"], ["FORBIDDEN"])
        assert (bob.numbers, cyd.numbers, eve.error_codes) == ([], [], [])


@pytest.mark.usefixtures("no_rechecks")
async def test_event_ends_subscriptions_of_removed_people(server: GraphQLServer) -> None:
    await kick_and_check(server)


@pytest.mark.usefixtures("no_departures")
async def test_recheck_ends_subscriptions_without_the_event(server: GraphQLServer) -> None:
    await kick_and_check(server)


async def test_removed_people_no_longer_see_who_is_typing(server: GraphQLServer) -> None:
    await server.join("bob", "cyd", "eve")
    community, stores = server.scenario.community, server.stores
    async with (
        server.subscribed("bob", query=TYPING_EVENTS) as bob,
        server.subscribed("cyd", query=TYPING_EVENTS) as cyd,
        server.subscribed("eve", query=TYPING_EVENTS) as eve,
    ):
        await stores.moderation.ban_member(community, Moderator("ann"), "bob", None, "spam")
        await stores.communities.leave(community, "cyd")
        assert await poll_until_true(lambda: bob.error_codes and cyd.error_codes)
        await stores.typing.begin(server.scenario.topic.id, "ann")
        assert await eve.receives(1)
    assert (bob.error_codes, cyd.error_codes, eve.error_codes) == (["FORBIDDEN"], ["FORBIDDEN"], [])
    assert (bob.events, cyd.events) == ([], [])


async def test_watch_ends_with_the_last_broadcast(server: GraphQLServer) -> None:
    departures = server.endpoint.subscriptions.broadcasts._departures
    async with server.subscribed("ann"):
        assert [stream.kind for stream in departures._watches] == ["removals"]
    assert await poll_until_true(lambda: not departures._watches)

"""One viewer's subscriptions: how many different subscriptions are executed for each event, and for how long."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, ExitStack
from functools import partial
from typing import Any, cast

import pytest

from resolvers.chat.events import ChatEventSource
from resolvers.context import Context
from resolvers.feed.events import NotificationEventSource
from server.graphql import subscription_limits
from server.graphql.subscription_limits import SubscriptionLimits
from server.graphql.subscription_start import SharedSubscription, ViewerSubscription
from storage.errors import RateLimited
from storage.feed.follows import FollowPair
from storage.identity.records import User
from storage.identity.users import UserStore
from storage.stores import Stores
from storage.streams.log import Stream
from tests.server.graphql.graphql_server import TOPIC_EVENTS, GraphQLServer, post_messages, serve_graphql
from tests.storage.topic_scenario import create_topic_scenario
from tests.waiting import poll_until_true

pytestmark = pytest.mark.anyio

NO_CONTEXT = cast(Context, None)
NO_EXECUTOR = cast(Any, None)
LIMIT = 3
NOTIFICATION_EVENTS = """
    subscription ($since: Cursor) {
      notificationEvents(since: $since) {
        __typename
        ... on Event { cursor }
        ... on NotificationArrived { notification { actor { id } } }
      }
    }
"""


def variant(n: int) -> str:
    """Returns a subscription that shares no execution with other variants."""
    return TOPIC_EVENTS.replace("timestamp text", f"timestamp text variant{n}: text")


@pytest.fixture(autouse=True)
def low_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lowers both limits, since each subscription takes time to start."""
    monkeypatch.setattr(subscription_limits, "MAX_SHARED", LIMIT)
    monkeypatch.setattr(subscription_limits, "MAX_OWN", LIMIT)


async def test_different_subscriptions_to_a_stream_are_limited(server: GraphQLServer) -> None:
    await server.join("bob")
    async with AsyncExitStack() as stack:
        first = await stack.enter_async_context(server.subscribed("ann", query=variant(0)))
        for n in range(1, LIMIT):
            await stack.enter_async_context(server.subscribed("ann", query=variant(n)))
        async with server.subscribed("ann", query=variant(LIMIT)) as refused_subscription:
            assert refused_subscription.error_codes == ["RATE_LIMITED"]
        async with server.subscribed("ann", query=variant(0)) as equal, server.subscribed("bob") as other:
            assert (equal.error_codes, other.error_codes) == ([], [])
        await post_messages(server.scenario, 1)
        assert await first.receives(1)
        assert len(server.endpoint.subscriptions.broadcasts) == LIMIT
    assert await poll_until_true(lambda: len(server.endpoint.subscriptions.broadcasts) == 0)
    async with server.subscribed("ann", query=variant(LIMIT)) as accepted:
        assert accepted.error_codes == []


async def test_subscriptions_to_own_events_are_limited(server: GraphQLServer) -> None:
    async with AsyncExitStack() as stack:
        for _ in range(LIMIT):
            await stack.enter_async_context(server.subscribed("ann", query=NOTIFICATION_EVENTS))
        async with server.subscribed("ann", query=NOTIFICATION_EVENTS) as refused_subscription:
            assert refused_subscription.error_codes == ["RATE_LIMITED"]


def shared(
    key: str, viewer_id: str = "ann", organization_id: str = "acme", stream_id: str = "topic"
) -> SharedSubscription:
    """Returns a subscription that is never executed."""
    viewer = User(viewer_id, viewer_id, viewer_id, organization_id, (), 0, 0)
    source = ChatEventSource(NO_CONTEXT, viewer, Stream("topic", stream_id), None, None)
    return SharedSubscription(key, NO_EXECUTOR, source)


def own(viewer_id: str, organization_id: str = "acme") -> ViewerSubscription:
    """Returns a subscription to the viewer's own events that is never executed."""
    viewer = User(viewer_id, viewer_id, viewer_id, organization_id, (), 0, 0)
    return ViewerSubscription(NO_EXECUTOR, NotificationEventSource(NO_CONTEXT, viewer, None))


def test_closing_one_of_two_equal_subscriptions_admits_no_new() -> None:
    limits = SubscriptionLimits()
    with ExitStack() as stack:
        for n in range(LIMIT):
            stack.enter_context(limits.open(shared(str(n))))
        with limits.open(shared("0")):
            pass
        with pytest.raises(RateLimited), limits.open(shared("new")):
            pass
    assert limits._open == {}


def test_limits_of_streams_and_viewers_are_separate() -> None:
    limits = SubscriptionLimits()
    with ExitStack() as stack:
        for n in range(LIMIT):
            stack.enter_context(limits.open(shared(str(n))))
            stack.enter_context(limits.open(own("ann")))
        stack.enter_context(limits.open(shared("new", viewer_id="ben")))
        stack.enter_context(limits.open(shared("new", organization_id="beta")))
        stack.enter_context(limits.open(shared("new", stream_id="other")))
        stack.enter_context(limits.open(own("ben")))
        stack.enter_context(limits.open(own("ann", "beta")))
        with pytest.raises(RateLimited), limits.open(own("ann")):
            pass


class HangingUsers:
    """Reads of users. The first read does not return."""

    def __init__(self, users: UserStore, monkeypatch: pytest.MonkeyPatch) -> None:
        self.calls = 0
        for name in ("find", "get", "get_all", "find_many"):
            monkeypatch.setattr(users, name, partial(self._read, getattr(users, name)))

    async def _read(self, read: Callable[..., Awaitable[Any]], *args: Any) -> Any:
        self.calls += 1
        if self.calls == 1:
            await asyncio.Event().wait()
        return await read(*args)


@pytest.fixture
async def server_with_short_timeout(shared_stores: Stores) -> AsyncIterator[GraphQLServer]:
    """A server that stops an execution after 0.5 s."""
    async with serve_graphql(await create_topic_scenario(shared_stores), execution_timeout_s=0.5) as server:
        yield server


async def test_hanging_execution_for_topic_is_repeated(
    server_with_short_timeout: GraphQLServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = server_with_short_timeout
    async with server.subscribed() as live:
        hanging = HangingUsers(server.stores.users, monkeypatch)
        await post_messages(server.scenario, 1)
        assert await live.receives(1)
        await post_messages(server.scenario, 1)
        assert await live.receives(2)
    assert (live.numbers, live.error_codes) == ([1, 2], [])
    assert hanging.calls > 1


async def test_hanging_execution_of_missed_event_is_repeated(
    server_with_short_timeout: GraphQLServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = server_with_short_timeout
    await post_messages(server.scenario, 2)
    since = server.cursor(0, await server.epoch())
    hanging = HangingUsers(server.stores.users, monkeypatch)
    async with server.subscribed(since=since) as late:
        assert await late.receives(2)
    assert (late.numbers, late.error_codes) == ([1, 2], [])
    assert hanging.calls > 1


async def test_hanging_execution_for_own_event_is_repeated(
    server_with_short_timeout: GraphQLServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = server_with_short_timeout
    await server.join("bob")
    async with server.subscribed("ann", query=NOTIFICATION_EVENTS) as own:
        hanging = HangingUsers(server.stores.users, monkeypatch)
        await server.stores.follows.follow(FollowPair(server.scenario.organization_id, "bob", "ann"))
        assert await own.receives(1)
    assert (len(own.events), own.error_codes) == (1, [])
    assert hanging.calls > 1

"""Fair shares of the event loop: who waits, for whom, and which work counts."""

import asyncio
import gc
import itertools
import math
import time
from collections.abc import Callable, Coroutine
from types import SimpleNamespace
from typing import Any, cast

import pytest
import strawberry
from graphql import GraphQLError

from resolvers.context import Context
from server.graphql import fair_shares
from server.graphql.fair_shares import (
    BURST_S,
    MAX_TURN_WAIT_S,
    MAX_USED_S,
    FairShares,
    LoopShare,
    MeasuredAwaitable,
    attribute_time_to,
    execute_root_fields_singly,
)
from server.graphql.operations import Operations
from storage.errors import RateLimited
from storage.identity.records import User
from storage.stores import Stores
from tests.execution import run_operation
from tests.manual_clock import ManualClock
from tests.server.graphql.graphql_server import GraphQLServer, post_messages

ANONYMOUS = Context(cast("Stores", None), str)
pytestmark = pytest.mark.anyio

BeginQuery = Callable[[str], Coroutine[Any, Any, None]]


def user(id_: str, organization_id: str = "acme") -> User:
    return User(id_, id_, id_, organization_id, (), 0, 0)


def use_up(share: LoopShare, clock: ManualClock) -> None:
    """Makes the viewer wait for others, as long as the clock permits."""
    share._used_s, share._counted_at_s = MAX_USED_S, clock.now


async def let_tasks_proceed() -> None:
    """Lets all tasks proceed."""
    for _ in range(10):
        await asyncio.sleep(0)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> ManualClock:
    """The clock of shares. While it stands still, used time is not forgotten."""
    clock = ManualClock(100.0)
    monkeypatch.setattr(fair_shares, "time", clock)
    return clock


@pytest.fixture
def shares() -> FairShares:
    """Shares where a viewer who began an operation stays active."""
    return FairShares(active_s=math.inf)


@pytest.fixture
def admitted_viewers() -> list[str]:
    return []


@pytest.fixture
def begin(shares: FairShares, admitted_viewers: list[str]) -> BeginQuery:
    async def begin(viewer: str) -> None:
        await shares.begin(shares.of(user(viewer)))
        admitted_viewers.append(viewer)

    return begin


async def test_other_viewer_begins_before_one_with_used_up_share(
    clock: ManualClock, shares: FairShares, admitted_viewers: list[str], begin: BeginQuery
) -> None:
    await begin("ann")
    use_up(shares.of(user("mallory")), clock)
    async with asyncio.TaskGroup() as tasks:
        for viewer in ("mallory", "mallory", "ann", "ben"):
            tasks.create_task(begin(viewer))
        await let_tasks_proceed()
        assert admitted_viewers == ["ann", "ann", "ben"]
        for viewer in ("ann", "ben"):
            use_up(shares.of(user(viewer)), clock)
    assert admitted_viewers[3:] == ["mallory", "mallory"]


async def test_lone_viewer_never_waits(
    clock: ManualClock, shares: FairShares, admitted_viewers: list[str], begin: BeginQuery
) -> None:
    await begin("mallory")
    use_up(shares.of(user("mallory")), clock)
    await begin("mallory")
    assert admitted_viewers == ["mallory", "mallory"]


async def test_services_never_wait(clock: ManualClock, shares: FairShares) -> None:
    service = shares.of(user("crm"), is_service=True)
    use_up(service, clock)
    shares.mark_active(shares.of(user("ann")))
    assert not service.must_wait()
    assert not shares.of(user("crm")).must_wait()


async def test_turn_comes_within_half_a_second(
    monkeypatch: pytest.MonkeyPatch,
    clock: ManualClock,
    shares: FairShares,
    admitted_viewers: list[str],
    begin: BeginQuery,
) -> None:
    """Even while other operations of the viewer, which began earlier, use time."""
    monkeypatch.setattr(fair_shares, "POLL_S", 0)
    mallory = shares.of(user("mallory"))
    shares.mark_active(shares.of(user("ann")))
    use_up(mallory, clock)
    waiting = asyncio.create_task(begin("mallory"))
    await let_tasks_proceed()
    clock.now += MAX_TURN_WAIT_S - 0.01
    use_up(mallory, clock)
    await let_tasks_proceed()
    assert admitted_viewers == []
    clock.now += 0.02
    await waiting
    assert mallory.must_wait(), "The time stays used."


async def test_operation_behind_many_of_its_viewer_is_refused(
    shares: FairShares, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fair_shares, "MAX_WAIT_S", 0.01)
    mallory = shares.of(user("mallory"))
    async with mallory.waiting:
        with pytest.raises(RateLimited, match="wait for their turn"):
            await shares.begin(mallory)


def test_used_time_is_forgotten_at_the_rate_of_the_share(shares: FairShares) -> None:
    ann = shares.of(user("ann"))
    shares.mark_active(shares.of(user("ben")))
    ann.spend(0.14, now_s=100.0)
    assert ann.used_s(now_s=100.4) == pytest.approx(0.1)
    ann.spend(0.03, now_s=100.4)
    assert ann.used_s(now_s=100.4) == pytest.approx(0.13)
    ann.spend(0.1, now_s=200.0)
    assert ann.used_s(now_s=200.0) == pytest.approx(0.1)
    ann.spend(50.0, now_s=200.0)
    assert ann.used_s(now_s=200.0) == MAX_USED_S
    assert ann.used_s(now_s=200.0 + MAX_TURN_WAIT_S) == pytest.approx(BURST_S)


def test_time_used_alone_is_not_held_against_a_viewer(clock: ManualClock) -> None:
    shares = FairShares()
    mallory, *others = (shares.of(user(id_)) for id_ in ("mallory", "ann", "ben"))
    shares.mark_active(mallory)
    mallory.spend(MAX_USED_S, clock.now)
    for other in others:
        shares.mark_active(other)
    assert not mallory.must_wait()
    mallory.spend(0.2, clock.now)
    assert mallory.must_wait()


def test_time_counts_while_another_viewer_is_active(clock: ManualClock) -> None:
    shares = FairShares(active_s=0.5)
    ann, ben = (shares.of(user(id_)) for id_ in ("ann", "ben"))
    shares.mark_active(ann)
    clock.now = 100.25
    shares.mark_active(ben)
    ben.spend(0.1, now_s=100.51)
    ann.spend(0.1, now_s=100.76)
    assert (ann._used_s, ben._used_s) == (0, 0), "Ann was active until 100.5, and ben until 100.75."
    ben.spend(0.1, now_s=100.5)
    ann.spend(0.1, now_s=100.75)
    assert (ann._used_s, ben._used_s) == (0.1, 0.1)


def test_viewer_waits_for_those_who_used_less_than_half(clock: ManualClock, shares: FairShares) -> None:
    mallory, ann = (shares.of(user(id_)) for id_ in ("mallory", "ann"))
    for share in (mallory, ann):
        shares.mark_active(share)
    mallory.spend(0.14, clock.now)
    ann.spend(0.06, clock.now)
    assert mallory.must_wait()
    ann.spend(0.02, clock.now)
    assert not mallory.must_wait()


def test_viewer_is_active_for_half_a_second_after_a_beginning(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = SimpleNamespace()
    monkeypatch.setattr(fair_shares, "time", clock)
    shares = FairShares(active_s=0.5)
    ann, ben, cat = (shares.of(user(id_)) for id_ in ("ann", "ben", "cat"))
    for share, now_s in ((ann, 100.0), (ben, 100.4), (ann, 100.45)):
        clock.perf_counter = lambda now_s=now_s: now_s
        shares.mark_active(share)
    assert list(shares._active) == [ben, ann]
    assert shares.has_active(1.0, now_s=100.92), "Ann began later than ben."
    assert not shares.has_active(1.0, now_s=100.96)
    clock.perf_counter = lambda: 101.0
    shares.mark_active(cat)
    assert list(shares._active) == [ann, cat], "One inactive viewer is forgotten with each beginning."


async def test_operations_of_a_viewer_begin_in_their_order(
    clock: ManualClock, shares: FairShares, begin: BeginQuery
) -> None:
    mallory = shares.of(user("mallory"))
    use_up(mallory, clock)
    shares.mark_active(shares.of(user("ann")))
    waiting = asyncio.create_task(begin("mallory"))
    await let_tasks_proceed()
    mallory._used_s = 0
    assert mallory.must_wait(), "An earlier operation still waits."
    await waiting
    assert not mallory.must_wait()


async def test_time_of_a_begun_operation_counts_for_its_viewer(shares: FairShares, begin: BeginQuery) -> None:
    await begin("ben")
    await begin("ann")
    await MeasuredAwaitable(let_tasks_proceed())
    assert shares.of(user("ann")).used_s(time.perf_counter()) > 0


def test_shares_are_separate_by_user_organization_and_role(shares: FairShares) -> None:
    users = [user("ann"), user("ben"), user("ann", "beta")]
    separate = [shares.of(each, is_service=is_service) for each in users for is_service in (False, True)]
    assert len({id(each) for each in (*separate, shares.of(None))}) == 7
    assert shares.of(user("ann")) is separate[0]


async def test_steps_of_coroutine_count_for_its_share(shares: FairShares) -> None:
    mallory = shares.of(user("mallory"))
    shares.mark_active(shares.of(user("ann")))

    async def work() -> str:
        await asyncio.sleep(0)
        with pytest.raises(GraphQLError):
            await MeasuredAwaitable(fail())
        return "done"

    async def fail() -> None:
        await asyncio.sleep(0)
        raise GraphQLError("refused")

    assert await MeasuredAwaitable(work()) == "done"
    assert mallory.used_s(time.perf_counter()) == 0
    attribute_time_to(mallory)
    assert await MeasuredAwaitable(work()) == "done"
    assert mallory.used_s(time.perf_counter()) > 0


async def test_nested_coroutine_counts_once(shares: FairShares, monkeypatch: pytest.MonkeyPatch) -> None:
    ann, ticks = shares.of(user("ann")), itertools.count(100.0, 0.01)
    shares.mark_active(shares.of(user("ben")))
    monkeypatch.setattr(fair_shares, "time", SimpleNamespace(perf_counter=lambda: next(ticks)))

    async def inner() -> None:
        pass

    async def outer() -> None:
        await MeasuredAwaitable(inner())

    attribute_time_to(ann)
    await MeasuredAwaitable(outer())
    assert ann._used_s == pytest.approx(0.01), "One step is measured by two readings of the clock."


async def test_futures_are_measured_too() -> None:
    assert await MeasuredAwaitable(asyncio.ensure_future(asyncio.sleep(0, "result"))) == "result"
    gc.collect()


@pytest.mark.parametrize("waits_for_event", [True, False])
async def test_cancelling_measured_coroutine_cancels_inner_coroutine(waits_for_event: bool) -> None:
    ended: list[str] = []

    async def work() -> None:
        try:
            if waits_for_event:
                await asyncio.Event().wait()
            for _ in range(10_000):
                await asyncio.sleep(0)
        except asyncio.CancelledError:
            ended.append("work")
            raise

    started, unstarted = (asyncio.ensure_future(MeasuredAwaitable(work())) for _ in range(2))
    unstarted.cancel()
    await let_tasks_proceed()
    started.cancel()
    await asyncio.gather(started, unstarted, return_exceptions=True)
    assert ended == ["work"]


@pytest.mark.parametrize("singly", [False, True])
async def test_root_fields_of_a_large_operation_are_executed_singly(singly: bool) -> None:
    running, max_running = 0, 0

    @strawberry.type
    class Query:
        @strawberry.field
        async def page(self) -> int:
            nonlocal running, max_running
            running += 1
            max_running = max(max_running, running)
            await let_tasks_proceed()
            running -= 1
            return 1

    operations = Operations(strawberry.Schema(query=Query))
    if singly:
        execute_root_fields_singly()
    assert (await run_operation(operations, ANONYMOUS, "{ a: page b: page }")).data == {"a": 1, "b": 1}
    assert max_running == (1 if singly else 2)


async def test_later_root_field_waits_for_its_turn(clock: ManualClock, shares: FairShares) -> None:
    mallory, ann = (shares.of(user(id_)) for id_ in ("mallory", "ann"))
    shares.mark_active(ann)
    executed = 0

    @strawberry.type
    class Query:
        @strawberry.field
        async def page(self) -> int:
            nonlocal executed
            executed += 1
            use_up(mallory, clock)
            return 1

    operations = Operations(strawberry.Schema(query=Query))
    await shares.begin(mallory)
    execute_root_fields_singly()
    execution = asyncio.ensure_future(run_operation(operations, ANONYMOUS, "{ a: page b: page }"))
    await asyncio.sleep(0.05)
    assert executed == 1
    use_up(ann, clock)
    assert (await execution).data == {"a": 1, "b": 1}


async def test_refused_documents_count_for_their_viewer(server: GraphQLServer, monkeypatch: pytest.MonkeyPatch) -> None:
    shares, organization = server.endpoint.operations.shares, server.scenario.organization_id
    monkeypatch.setattr(shares, "_active_s", math.inf)
    shares.mark_active(shares.of(user("ben", organization)))
    share = shares.of(user("ann", organization))
    for n in range(5):
        async with server.subscribed("ann", query=f"subscription {{ nope{n} }}") as refused_subscription:
            assert refused_subscription.error_codes == ["GRAPHQL_VALIDATION_FAILED"]
    assert share._used_s > 0


async def test_events_for_one_viewer_wait_and_others_get_theirs(
    clock: ManualClock, server: GraphQLServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    await server.join("ben")
    shares, organization = server.endpoint.operations.shares, server.scenario.organization_id
    monkeypatch.setattr(shares, "_active_s", math.inf)
    ann, ben, cat = (shares.of(user(id_, organization)) for id_ in ("ann", "ben", "cat"))
    async with server.subscribed("ann") as ann_subscription:
        query = "subscription ($topic: ID!) { topicEvents(topicId: $topic) { __typename ... on Event { cursor } } }"
        async with server.subscribed("ben", query=query) as ben_subscription:
            # Ben waits for cat.
            shares.mark_active(cat)
            use_up(ben, clock)
            await post_messages(server.scenario, 1)
            assert await ann_subscription.receives(1)
            assert ben_subscription.events == []
            use_up(ann, clock)
            use_up(cat, clock)
            assert await ben_subscription.receives(1)

"""Fair shares of the event loop: who waits, for whom, and which work counts."""

import asyncio
import math
import time
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
import strawberry
from graphql import GraphQLError

from server.graphql import fair_shares
from server.graphql.compiled import compiled_executor
from server.graphql.documents import Documents
from server.graphql.fair_shares import (
    MAX_USED_S,
    FairShares,
    Measured,
    Share,
    attribute,
    execute_root_fields_singly,
)
from storage.errors import RateLimited
from storage.identity.records import User
from storage.identity.roles import Role
from tests.server.graphql.graphql_server import GraphQLServer, post_messages

pytestmark = pytest.mark.anyio

Begin = Callable[[str], Coroutine[Any, Any, None]]

MEMBER = frozenset({Role.MEMBER})


def user(id_: str, organization_id: str = "acme") -> User:
    return User(id_, id_, id_, organization_id, (), 0, 0)


def use_up(share: Share) -> None:
    """Makes the viewer wait for others for some seconds."""
    share.spend(MAX_USED_S, time.perf_counter())


async def settle() -> None:
    """Lets all tasks proceed."""
    for _ in range(10):
        await asyncio.sleep(0)


@pytest.fixture
def shares() -> FairShares:
    """Shares where a viewer who began an operation stays active."""
    return FairShares(active_s=math.inf)


@pytest.fixture
def began() -> list[str]:
    return []


@pytest.fixture
def begin(shares: FairShares, began: list[str]) -> Begin:
    async def begin(viewer: str) -> None:
        await shares.begin(shares.of(user(viewer), MEMBER))
        began.append(viewer)

    return begin


async def test_other_viewer_begins_before_one_with_used_up_share(
    shares: FairShares, began: list[str], begin: Begin
) -> None:
    await begin("ann")
    use_up(shares.of(user("mallory"), MEMBER))
    async with asyncio.TaskGroup() as tasks:
        for viewer in ("mallory", "mallory", "ann", "ben"):
            tasks.create_task(begin(viewer))
        await settle()
        assert began == ["ann", "ann", "ben"]
        for viewer in ("ann", "ben"):
            use_up(shares.of(user(viewer), MEMBER))
    assert began[3:] == ["mallory", "mallory"]


async def test_lone_viewer_never_waits(shares: FairShares, began: list[str], begin: Begin) -> None:
    await begin("mallory")
    use_up(shares.of(user("mallory"), MEMBER))
    await begin("mallory")
    assert began == ["mallory", "mallory"]


async def test_services_never_wait(shares: FairShares) -> None:
    service = shares.of(user("crm"), frozenset({Role.SERVICE}))
    use_up(service)
    shares.mark_active(shares.of(user("ann"), MEMBER))
    assert not service.must_wait()
    assert not shares.of(user("crm"), MEMBER).must_wait()


async def test_operation_that_waits_too_long_is_refused(shares: FairShares, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fair_shares, "MAX_WAIT_S", 0.01)
    mallory = shares.of(user("mallory"), MEMBER)
    use_up(mallory)
    shares.mark_active(shares.of(user("ann"), MEMBER))
    with pytest.raises(RateLimited):
        await shares.begin(mallory)


def test_shares_of_equal_user_ids_are_separate(shares: FairShares) -> None:
    keys = [(user("ann"), MEMBER), (user("ben"), MEMBER), (user("ann", "beta"), MEMBER), (None, frozenset[Role]())]
    assert len({id(shares.of(*key)) for key in keys}) == 4
    assert shares.of(*keys[0]) is shares.of(user("ann"), MEMBER)


async def test_steps_of_coroutine_count_for_its_share(shares: FairShares) -> None:
    mallory = shares.of(user("mallory"), MEMBER)

    async def work() -> str:
        await asyncio.sleep(0)
        with pytest.raises(GraphQLError):
            await Measured(fail())
        return "done"

    async def fail() -> None:
        await asyncio.sleep(0)
        raise GraphQLError("refused")

    assert await Measured(work()) == "done"
    assert mallory.used_s(time.perf_counter()) == 0
    attribute(mallory)
    assert await Measured(work()) == "done"
    assert mallory.used_s(time.perf_counter()) > 0


async def test_cancelled_coroutine_is_cancelled_within() -> None:
    ended: list[str] = []

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("work")

    started, unstarted = (asyncio.ensure_future(Measured(work())) for _ in range(2))
    unstarted.cancel()
    await settle()
    started.cancel()
    await asyncio.gather(started, unstarted, return_exceptions=True)
    assert ended == ["work"]


@pytest.mark.parametrize("singly", [False, True])
async def test_root_fields_of_a_large_operation_are_executed_singly(singly: bool) -> None:
    running, most = 0, 0

    @strawberry.type
    class Query:
        @strawberry.field
        async def page(self) -> int:
            nonlocal running, most
            running += 1
            most = max(most, running)
            await settle()
            running -= 1
            return 1

    schema = strawberry.Schema(query=Query, execution_context_class=compiled_executor(Documents()))
    if singly:
        execute_root_fields_singly()
    assert (await schema.execute("{ a: page b: page }")).data == {"a": 1, "b": 1}
    assert most == (1 if singly else 2)


async def test_refused_documents_count_for_their_viewer(server: GraphQLServer) -> None:
    share = server.endpoint.shares.of(user("ann", server.scenario.organization_id))
    for n in range(5):
        async with server.subscribed("ann", query=f"subscription {{ nope{n} }}") as refused:
            assert refused.error_codes == ["GRAPHQL_VALIDATION_FAILED"]
    assert share._used_s > 0


async def test_events_for_one_viewer_wait_and_others_get_theirs(
    server: GraphQLServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    await server.join("ben")
    shares, organization = server.endpoint.shares, server.scenario.organization_id
    monkeypatch.setattr(shares, "_active_s", math.inf)
    ann, ben, cat = (shares.of(user(id_, organization)) for id_ in ("ann", "ben", "cat"))
    async with server.subscribed("ann") as of_ann:
        query = "subscription ($topic: ID!) { topicEvents(topicId: $topic) { __typename ... on Event { cursor } } }"
        async with server.subscribed("ben", query=query) as of_ben:
            # Cat uses no time, unlike ann, whose part a loaded machine may measure as large.
            shares.mark_active(cat)
            use_up(ben)
            await post_messages(server.scenario, 1)
            assert await of_ann.receives(1)
            assert of_ben.events == []
            use_up(ann)
            use_up(cat)
            assert await of_ben.receives(1)

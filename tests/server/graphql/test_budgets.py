"""Budgets of cost and limits of writes over HTTP and WebSocket: which viewers are refused, and for how long."""

import asyncio
import re

import pytest

from resolvers.limits import rates
from server.graphql.budgets import DEFAULT_COST_PER_MINUTE, CostBudgets, CostPerMinute
from server.settings import Settings
from storage.errors import RateLimited
from storage.identity.records import User
from tests.client import Client, GraphQLFailed, client
from tests.manual_clock import ManualClock
from tests.serving import WebProcess

EXPENSIVE = "{ communities(limit: 100) { topics(limit: 100) { id lastMessage { id author { id } } } } }"
"""A query that costs tens of thousands, although there are no communities."""

PAGE = """query ($topic: ID!) {
  messages(topicId: $topic, latest: "now", limit: 999) { items { text author { id } reactions { emoji count } } }
}"""
"""A query that may be coalesced. Costs about 12,000."""

CREATE_COMMUNITY = 'mutation { createCommunity(input: {name: "Hills"}) { id } }'
CREATE_TOPIC = 'mutation ($community: ID!) { createTopic(input: {communityId: $community, title: "Beacons"}) { id } }'
POST_MESSAGE = "mutation ($input: PostMessageInput!) { postMessage(input: $input) { id } }"
CHEAP = "{ communities(limit: 1) { id } }"
BURST_OF_VIEWER = 166_666
"""The largest cost that a viewer may spend at once: 10 s of a million a minute."""

pytestmark = pytest.mark.anyio


WEB_SETTINGS = {
    "NOROSHI_VIEWER_COST_PER_MINUTE": "1000000",
    "NOROSHI_ORGANIZATION_COST_PER_MINUTE": "3000000",
    "NOROSHI_MESSAGES_PER_MINUTE": "3",
}


async def run_until_refused(member: Client, query: str, **variables: str) -> dict[str, object]:
    """Runs the query until it is refused, and returns the extensions of the error."""
    for _ in range(100):
        answer = await member.execute(query, **variables)
        if errors := answer.get("errors"):
            extensions: dict[str, object] = errors[0]["extensions"]
            return extensions
    raise AssertionError("100 expensive queries were accepted.")


async def reported_cost(member: Client, query: str) -> dict[str, int]:
    headers = {"authorization": f"Bearer {member.token}", "graphql-cost": "1"}
    response = await member.http.post(f"{member.url}/graphql", json={"query": query}, headers=headers)
    cost: dict[str, int] = response.json()["extensions"]["cost"]
    return cost


async def test_spent_budget_refuses_only_its_viewer(web: WebProcess) -> None:
    async with client(web.url, web.token("ann", "one")) as ann, client(web.url, web.token("ben", "one")) as ben:
        refusal = await run_until_refused(ann, EXPENSIVE)
        assert refusal["code"] == "RATE_LIMITED"
        wait_ms = refusal["retryAfterMs"]
        assert isinstance(wait_ms, int)
        assert 0 < wait_ms < 60_000
        assert (await ann.expect_error(EXPENSIVE))["code"] == "RATE_LIMITED"
        await ben.run(EXPENSIVE)
        await asyncio.sleep(wait_ms / 1000)
        await ann.run(EXPENSIVE)


async def test_refusal_over_http_is_429(web: WebProcess) -> None:
    async with client(web.url, web.token("cat", "two")) as cat:
        await run_until_refused(cat, EXPENSIVE)
        headers = {"authorization": f"Bearer {cat.token}"}
        response = await cat.http.post(f"{web.url}/graphql", json={"query": EXPENSIVE}, headers=headers)
    assert response.status_code == 429
    assert int(response.headers["retry-after"]) >= 1


async def test_organization_has_a_budget_for_all_its_members(web: WebProcess) -> None:
    refusals = []
    for n in range(10):
        async with client(web.url, web.token(f"member{n}", "crowded")) as member:
            answers = [await member.execute(EXPENSIVE) for _ in range(3)]
            refusals += [each["errors"][0]["message"] for each in answers if "errors" in each]
    assert any("organization's" in message for message in refusals), refusals
    for organization in ("crowded", "quiet"):
        async with client(web.url, web.token("ann", organization)) as ann:
            await ann.run(EXPENSIVE)


async def test_socket_and_http_share_one_budget(web: WebProcess) -> None:
    async with client(web.url, web.token("dan", "three")) as dan, dan.socket() as socket:
        await run_until_refused(dan, EXPENSIVE)
        await socket.subscribe(EXPENSIVE)
        with pytest.raises(GraphQLFailed) as error:
            await socket.next_event()
        assert error.value.codes == ["RATE_LIMITED"]


async def test_coalesced_queries_have_the_same_budget(web: WebProcess) -> None:
    async with client(web.url, web.token("fay", "five")) as fay:
        topic = await create_topic(fay)
        executions_before = await coalesced_executions(fay)
        refusals = [await run_until_refused(fay, PAGE, topic=topic) for _ in range(2)]
        assert await coalesced_executions(fay) > executions_before
    assert [each["code"] for each in refusals] == ["RATE_LIMITED"] * 2


async def create_topic(member: Client) -> str:
    community = (await member.run(CREATE_COMMUNITY))["createCommunity"]["id"]
    topic: str = (await member.run(CREATE_TOPIC, community=community))["createTopic"]["id"]
    return topic


async def test_writes_above_their_limit_are_refused(web: WebProcess) -> None:
    async with client(web.url, web.token("gus", "six")) as gus, gus.socket() as socket:
        message = {"topicId": await create_topic(gus), "text": "The beacon is lit."}
        message_with_key = message | {"idempotencyKey": "k"}
        first, repeated = [await gus.run(POST_MESSAGE, input=message_with_key) for _ in range(2)]
        assert repeated == first
        for _ in range(2):
            await gus.run(POST_MESSAGE, input=message)
        refusal = await gus.expect_error(POST_MESSAGE, input=message)
        assert refusal["code"] == "RATE_LIMITED"
        assert isinstance(refusal["retryAfterMs"], int)
        await socket.subscribe(POST_MESSAGE, input=message)
        with pytest.raises(GraphQLFailed) as error:
            await socket.next_event()
        assert error.value.codes == ["RATE_LIMITED"]


async def test_service_writes_without_limit(web: WebProcess) -> None:
    async with client(web.url, web.token("hal", "seven", ("MEMBER", "SERVICE"))) as hal:
        message = {"topicId": await create_topic(hal), "text": "The beacon is lit."}
        for _ in range(10):
            await hal.run(POST_MESSAGE, input=message)


async def coalesced_executions(member: Client) -> float:
    metrics = (await member.http.get(f"{member.url}/metrics")).text
    match = re.search(r'noroshi_coalesced_answers_total\{outcome="executed"[^}]*\} (\S+)', metrics)
    return float(match[1]) if match else 0.0


def test_viewers_of_one_execution_share_its_cost() -> None:
    budgets = CostBudgets(CostPerMinute(viewer=1200, service=600, organization=600))
    viewers = [User(name, name, name, "acme", (), 0, 0) for name in ("ann", "ben")]
    for viewer in viewers:
        budgets.check(viewer, 40)
    budgets.spend(viewers, 40)
    assert [budgets.remaining(each) for each in viewers] == [180, 180]
    assert budgets.remaining(viewers[0], is_service=True) == 100
    budgets.spend(viewers, 60)
    budgets.spend(viewers, 100)
    for viewer in viewers:
        with pytest.raises(RateLimited, match="organization's operations"):
            budgets.check(viewer, 30)


def test_budgets_are_separate_by_user_organization_and_role() -> None:
    """A budget belongs to one user of one organization. With the role SERVICE, the user has a second budget."""
    budgets = CostBudgets(CostPerMinute(viewer=600, service=1200, organization=6000))
    ann, other_user, other_organization = [
        User(id_, id_, id_, organization, (), 0, 0)
        for id_, organization in (("ann", "acme"), ("ben", "acme"), ("ann", "beta"))
    ]
    budgets.spend([ann], 100)
    assert budgets.remaining(ann) == 0
    with pytest.raises(RateLimited, match="your operations"):
        budgets.check(ann, 1)
    assert budgets.remaining(ann, is_service=True) == 200
    for viewer in (other_user, other_organization):
        assert budgets.remaining(viewer) == 100
    budgets.spend([other_user], 2000)
    budgets.check(ann, 200, is_service=True)
    budgets.check(other_organization, 100)


def spend_at_most(budgets: CostBudgets, viewer: User, cost: int, *, is_service: bool = False) -> bool:
    """Spends the cost, and returns True, unless it is refused."""
    try:
        budgets.check(viewer, cost, is_service=is_service)
    except RateLimited:
        return False
    budgets.spend([viewer], cost, is_service=is_service)
    return True


@pytest.mark.parametrize(("members", "services"), [(10, 2), (14, 0), (0, 2), (100, 10)])
def test_people_at_their_limits_cause_no_refusal_of_others(
    monkeypatch: pytest.MonkeyPatch, members: int, services: int
) -> None:
    clock = ManualClock(1000.0)
    monkeypatch.setattr(rates, "time", clock)
    budgets = CostBudgets(DEFAULT_COST_PER_MINUTE)
    names = [(f"member{n}", False) for n in range(members)]
    names += [(f"service{n}", True) for n in range(services)]
    greedy = [(User(name, name, name, "acme", (), 0, 0), is_service) for name, is_service in names]
    colleague = User("cat", "cat", "cat", "acme", (), 0, 0)
    answered = 0
    for _ in range(70):
        clock.now += 1
        for viewer, is_service in greedy:
            while spend_at_most(budgets, viewer, 100_000, is_service=is_service):
                pass
        answered += spend_at_most(budgets, colleague, 2000)
    assert answered == 70


async def test_response_reports_the_cost_on_request(web: WebProcess) -> None:
    async with client(web.url, web.token("eve", "four")) as eve:
        assert "extensions" not in await eve.execute(CHEAP)
        first = await reported_cost(eve, CHEAP)
        second = await reported_cost(eve, EXPENSIVE)
    assert first["operation"] == 1
    assert second["operation"] > 1000
    assert BURST_OF_VIEWER - 10 <= first["left"] <= BURST_OF_VIEWER
    assert second["left"] < first["left"]


async def test_introspection_without_a_token_reports_no_budget(web: WebProcess) -> None:
    async with client(web.url, None) as anonymous:
        response = await anonymous.http.post(
            f"{web.url}/graphql", json={"query": "{ __typename }"}, headers={"graphql-cost": "1"}
        )
    assert response.json()["extensions"] == {"cost": {"operation": 0, "left": None}}


def test_settings_have_the_documented_defaults() -> None:
    settings = Settings.from_environment()
    limits = settings.viewer_cost_per_minute, settings.service_cost_per_minute, settings.organization_cost_per_minute
    assert CostPerMinute(*limits) == CostPerMinute()

"""Coalesced queries over HTTP: each viewer gets their own answer, and no answer is older than its request."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest
from graphql import GraphQLObjectType, get_named_type, is_leaf_type, parse

from schema.root import schema
from schema.sharing import field_suits_audience, suits_audience
from server.auth.tokens import mint
from server.graphql.coalescing import ANSWERS
from storage.stores import Stores
from tests.schema.fields import field_binding, possible_types
from tests.schema.viewers import VIEWER_IDS, DifferingViewers, create_differing_viewers
from tests.server.graphql.graphql_server import GraphQLServer, serve_graphql
from tests.storage.topic_scenario import create_topic_scenario

pytestmark = pytest.mark.anyio

GRAPHQL_CORE_SCHEMA = schema._schema
ROOTS = ("messages", "messagesAround")
HEADERS = {"content-type": "application/json"}
Json = dict[str, Any]


def coalescible_selection(type_: GraphQLObjectType, *parents: GraphQLObjectType) -> str:
    """Returns a nested selection of every field whose value all viewers of an audience may share.

    A type within itself, such as the message that a message quotes, has only its leaves.
    """
    fields = ["__typename"]
    for name, each in type_.fields.items():
        if not field_suits_audience(field_binding(type_, name)):
            continue
        if is_leaf_type(get_named_type(each.type)):
            fields.append(name)
        elif type_ not in parents:
            inner = (coalescible_selection(type, type_, *parents) for type in possible_types(each.type))
            fields.append(f"{name} {{ {' '.join(inner)} }}")
    return " ".join(fields)


def reachable_fields() -> Iterator[tuple[GraphQLObjectType, str]]:
    """Yields every field, shareable or not, that a query can reach through shareable fields alone."""
    assert GRAPHQL_CORE_SCHEMA.query_type is not None
    visited: set[GraphQLObjectType] = set()
    pending = [each for root in ROOTS for each in possible_types(GRAPHQL_CORE_SCHEMA.query_type.fields[root].type)]
    while pending:
        type_ = pending.pop()
        if type_ not in visited:
            visited.add(type_)
            yield from ((type_, name) for name in type_.fields)
            shareable = [
                each for name, each in type_.fields.items() if field_suits_audience(field_binding(type_, name))
            ]
            pending += [reachable for each in shareable for reachable in possible_types(each.type)]


def full_query(root: str, viewers: DifferingViewers) -> str:
    """Returns a query for a page of the topic, with every field that all viewers of an audience may share."""
    assert GRAPHQL_CORE_SCHEMA.query_type is not None
    (page,) = possible_types(GRAPHQL_CORE_SCHEMA.query_type.fields[root].type)
    timestamp = viewers.first_message.timestamp
    first = f"{timestamp // 1_000_000}.{timestamp % 1_000_000:06}"
    at = f'timestamp: "{first}"' if root == "messagesAround" else 'latest: "now"'
    return f'{{ {root}(topicId: "{viewers.scenario.topic.id}", {at}) {{ {coalescible_selection(page)} }} }}'


@asynccontextmanager
async def http_client(server: GraphQLServer) -> AsyncIterator[httpx2.AsyncClient]:
    """Yields an HTTP client of the endpoint."""
    transport = httpx2.ASGITransport(app=server.endpoint)
    async with httpx2.AsyncClient(transport=transport, base_url="http://noroshi/graphql", headers=HEADERS) as http:
        yield http


async def execute_with_token(http: httpx2.AsyncClient, token: str, text: str, **variables: Any) -> Json:
    """Executes a query with a token, and returns the response's body."""
    headers = {"authorization": f"Bearer {token}"}
    response = await http.post("", json={"query": text, "variables": variables}, headers=headers)
    assert response.status_code == 200
    answer: Json = response.json()
    return answer


async def execute_as(
    http: httpx2.AsyncClient, server: GraphQLServer, user_id: str, text: str, **variables: Any
) -> Json:
    """Executes a query as a user, and returns the response's body."""
    return await execute_with_token(http, server.token(user_id), text, **variables)


def outcomes() -> Counter[str]:
    """Returns the number of answers so far by outcome, from the metric."""
    return Counter({name: int(ANSWERS.labels(name)._value.get()) for name in ("executed", "shared", "excluded")})


@pytest.fixture(scope="module")
async def viewers(shared_stores: Stores) -> DifferingViewers:
    """Returns viewers who get different answers. Their community has three more members. Tests post to other topics."""
    viewers = await create_differing_viewers(shared_stores)
    # Fay and gus have no relations or marks, so their answers are equal. Hal differs from them only by a block.
    for name in ("fay", "gus", "hal"):
        member = await viewers.stores.users.sign_in(viewers.scenario.organization_id, name, (), None, None)
        await viewers.stores.communities.join(viewers.scenario.community, member)
    await viewers.stores.relations.block(viewers.scenario.organization_id, "hal", "dan")
    return viewers


@pytest.mark.parametrize("root", ROOTS)
async def test_coalesced_viewers_get_same_answers_as_separately(viewers: DifferingViewers, root: str) -> None:
    user_ids, text = (*VIEWER_IDS, "fay", "gus", "hal"), full_query(root, viewers)
    async with serve_graphql(viewers.scenario) as server, http_client(server) as http:
        outcomes_before = outcomes()
        separate_answers = {name: await execute_as(http, server, name, text) for name in user_ids}
        assert (outcomes() - outcomes_before)["shared"] == 0
        tasks = [
            (name, asyncio.create_task(execute_as(http, server, name, text))) for _ in range(3) for name in user_ids
        ]
        for name, task in tasks:
            assert await task == separate_answers[name], name
        assert (outcomes() - outcomes_before)["shared"] > 0
    assert separate_answers["eve"]["errors"][0]["extensions"]["code"] == "FORBIDDEN"
    assert len({str(separate_answers[name]) for name in ("ann", "bob", "fay", "hal")}) == 4
    assert separate_answers["fay"] == separate_answers["gus"]


async def test_audience_of_excluded_viewers_is_answered_one_by_one(viewers: DifferingViewers) -> None:
    text = full_query("messages", viewers)
    async with serve_graphql(viewers.scenario) as server, http_client(server) as http:
        separate_answers = {name: await execute_as(http, server, name, text) for name in ("ann", "bob", "hal")}
        outcomes_before = outcomes()
        tasks = [(name, asyncio.create_task(execute_as(http, server, name, text))) for name in ("ann", "bob", "hal")]
        for name, task in tasks:
            assert await task == separate_answers[name], name
        assert (outcomes() - outcomes_before)["shared"] == 0
        assert (outcomes() - outcomes_before)["excluded"] > 0


async def test_audience_without_members_is_refused_as_a_whole(viewers: DifferingViewers) -> None:
    text, names = full_query("messages", viewers), ("eve", "ida", "jon")
    async with serve_graphql(viewers.scenario) as server, http_client(server) as http:
        tokens = [server.token(name) for name in names]
        separate_answers = [await execute_with_token(http, token, text) for token in tokens]
        outcomes_before = outcomes()
        answers = await asyncio.gather(*(execute_with_token(http, token, text) for token in tokens * 3))
        assert [each["errors"][0]["extensions"]["code"] for each in answers] == ["FORBIDDEN"] * 9
        assert answers == separate_answers * 3
        assert (outcomes() - outcomes_before)["excluded"] == 0
        assert (outcomes() - outcomes_before)["shared"] > 0


async def test_exclusion_from_one_field_applies_to_whole_answer(viewers: DifferingViewers) -> None:
    """Fay may read only the first topic, and Eve only the second. Each gets a page of that topic and one refusal."""
    other = await create_topic_scenario(viewers.stores, viewers.scenario.organization_id)
    await viewers.stores.communities.join(other.community, viewers.users["eve"])
    pages = [
        f'{name}: messages(topicId: "{each.topic.id}", latest: "now") {{ items {{ text }} }}'
        for name, each in (("a", viewers.scenario), ("b", other))
    ]
    text = f"{{ {' '.join(pages)} }}"
    async with serve_graphql(viewers.scenario) as server, http_client(server) as http:
        separate_answers = {name: await execute_as(http, server, name, text) for name in ("fay", "eve")}
        assert [error["path"] for name in separate_answers for error in separate_answers[name]["errors"]] == [
            ["b"],
            ["a"],
        ]
        tasks = [
            (name, asyncio.create_task(execute_as(http, server, name, text)))
            for name in ("fay", *separate_answers, *separate_answers)
        ]
        for name, task in tasks:
            assert await task == separate_answers[name], name


@pytest.mark.parametrize("root", ROOTS)
def test_query_of_audience_fields_is_coalescible(root: str) -> None:
    assert GRAPHQL_CORE_SCHEMA.query_type is not None
    (page,) = possible_types(GRAPHQL_CORE_SCHEMA.query_type.fields[root].type)
    assert suits_audience(GRAPHQL_CORE_SCHEMA, parse(f"{{ a: {root} {{ {coalescible_selection(page)} }} }}"))


VIEWER_DEPENDENT_FIELDS = [
    (str(type_), name) for type_, name in reachable_fields() if not field_suits_audience(field_binding(type_, name))
]


@pytest.mark.parametrize(("type_name", "name"), VIEWER_DEPENDENT_FIELDS)
def test_query_with_a_viewer_dependent_field_is_not_coalescible(type_name: str, name: str) -> None:
    for text in (
        f"{{ messages {{ items {{ ... on {type_name} {{ {name} }} }} }} }}",
        f"{{ messages {{ ...f }} }} fragment f on {type_name} {{ x: {name} }}",
        f"{{ messages {{ ... on {type_name} @skip(if: true) {{ {name} }} }} }}",
    ):
        assert not suits_audience(GRAPHQL_CORE_SCHEMA, parse(text))


def test_other_roots_and_introspection_are_not_coalescible() -> None:
    assert GRAPHQL_CORE_SCHEMA.query_type is not None
    for name in {"__schema", *GRAPHQL_CORE_SCHEMA.query_type.fields} - set(ROOTS):
        assert not suits_audience(
            GRAPHQL_CORE_SCHEMA, parse(f"{{ {name} {{ __typename }} messages {{ __typename }} }}")
        ), name


async def test_page_is_never_older_than_its_request(viewers: DifferingViewers) -> None:
    """Readers repeat the query without a pause. The page has the message that the writer has posted just before."""
    text = 'query ($topic: ID!) { messages(topicId: $topic, latest: "now", limit: 3) { items { text } } }'
    scenario = await create_topic_scenario(viewers.stores, viewers.scenario.organization_id)
    topic = scenario.topic.id
    for name in ("fay", "gus"):
        member = await viewers.stores.users.get(scenario.organization_id, name)
        await viewers.stores.communities.join(scenario.community, member)
    async with serve_graphql(scenario) as server, http_client(server) as http:
        has_finished = asyncio.Event()

        async def read(name: str) -> None:
            while not has_finished.is_set():
                await execute_as(http, server, name, text, topic=topic)

        readers = [asyncio.create_task(read(name)) for name in ("fay", "gus") * 2]
        outcomes_before = outcomes()
        for number in range(15):
            await scenario.post(f"post {number}")
            page = await execute_as(http, server, "gus", text, topic=topic)
            assert page["data"]["messages"]["items"][0]["text"] == f"post {number}"
        has_finished.set()
        await asyncio.gather(*readers)
        assert (outcomes() - outcomes_before)["shared"] > 0


async def test_query_with_evicted_document_is_answered(viewers: DifferingViewers) -> None:
    text = full_query("messages", viewers)
    async with serve_graphql(viewers.scenario) as server, http_client(server) as http:
        separate_answers = {name: await execute_as(http, server, name, text) for name in ("fay", "eve", "hal")}
        await execute_as(http, server, "gus", text)
        server.endpoint.operations.documents._documents.clear()
        tasks = {name: asyncio.create_task(execute_as(http, server, name, text)) for name in separate_answers}
        assert {name: await task for name, task in tasks.items()} == separate_answers


async def test_viewers_of_other_organizations_share_no_answer(viewers: DifferingViewers) -> None:
    """User ids repeat across organizations: gus of another organization must not get the page of this one."""
    other = await create_differing_viewers(viewers.stores)
    text = full_query("messages", viewers)
    async with serve_graphql(viewers.scenario) as server, http_client(server) as http:
        other_tokens = [
            mint(server.secret, user_id=each, organization_id=other.scenario.organization_id, roles=())
            for each in ("fay", "gus")
        ]
        tokens = [server.token("fay"), server.token("gus"), *other_tokens]
        separate_answers = [await execute_with_token(http, token, text) for token in tokens]
        assert [answer.get("errors", [{}])[0].get("extensions", {}).get("code") for answer in separate_answers] == [
            None,
            None,
            "NOT_FOUND",
            "NOT_FOUND",
        ]
        for order in (tokens, tokens[::-1]):
            answers = await asyncio.gather(*(execute_with_token(http, token, text) for token in order))
            assert answers == [separate_answers[tokens.index(token)] for token in order]


async def test_viewers_with_different_roles_share_no_answer(viewers: DifferingViewers) -> None:
    """A user whose only role is SERVICE may not read topics, not even as a member of the community."""
    text = full_query("messages", viewers)
    async with serve_graphql(viewers.scenario) as server, http_client(server) as http:
        tokens = [server.token(name, roles) for name in ("fay", "gus") for roles in (("MEMBER",), ("SERVICE",))]
        separate_answers = [await execute_with_token(http, token, text) for token in tokens]
        assert ["errors" in answer for answer in separate_answers] == [False, True] * 2
        for order in (tokens, tokens[::-1]):
            answers = await asyncio.gather(*(execute_with_token(http, token, text) for token in order))
            assert answers == [separate_answers[tokens.index(token)] for token in order]


async def test_requests_with_other_bodies_or_headers_share_no_answer(viewers: DifferingViewers) -> None:
    text, response_type = full_query("messages", viewers), "application/graphql-response+json"
    requests: list[tuple[str, tuple[str, ...], Json]] = [
        ("application/json", ("MEMBER",), {"query": text}),
        ("application/json", ("MEMBER", "SERVICE"), {"query": text}),
        ("application/json", ("MEMBER",), {"query": text, "variables": {}}),
        (response_type, ("MEMBER",), {"query": text}),
    ]
    async with serve_graphql(viewers.scenario) as server, http_client(server) as http:
        tokens = {roles: server.token("gus", roles) for _, roles, _ in requests}

        async def send(accept: str, roles: tuple[str, ...], body: Json) -> httpx2.Response:
            headers = {"accept": accept, "authorization": f"Bearer {tokens[roles]}"}
            return await http.post("", json=body, headers=headers)

        for each in requests:
            await send(*each)
        outcomes_before = outcomes()
        responses = await asyncio.gather(*(send(*each) for each in requests for _ in range(3)))
        # Requests that arrive together share an execution if they are identical.
        assert outcomes() - outcomes_before == Counter(executed=4, shared=8)
    assert len({response.content for response in responses}) == 1
    assert [each.headers["content-type"].startswith(response_type) for each in responses] == [False] * 9 + [True] * 3

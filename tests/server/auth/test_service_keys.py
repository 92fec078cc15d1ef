"""Requests with service keys: each scope opens exactly its root fields and routes, over HTTP and WebSocket."""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import httpx2
import pytest
from graphql import parse

from schema.binding import ANY_KEY, NO_KEY
from schema.root import schema
from schema.sharing import required_scopes
from storage.identity.keys.scopes import SCOPES
from tests.client import GraphQLFailed, client
from tests.resolvers.operations import RootField, root_fields
from tests.resolvers.organization_scenario import unknown_ids
from tests.serving import WebProcess

pytestmark = pytest.mark.anyio

CREATE = """
mutation ($scopes: [String!]!) {
  createServiceKey(input: {name: "Bot", scopes: $scopes}) { secret key { id } }
}
"""
REQUESTS = [each for each in root_fields() if each.root != "Subscription"]
SUBSCRIPTIONS = [each for each in root_fields() if each.root == "Subscription"]


WEB_SETTINGS = {"NOROSHI_MESSAGES_PER_MINUTE": "1"}


@dataclass(frozen=True)
class ApiRequests:
    """Sends requests to the web process over the connections of one client."""

    web: WebProcess
    http: httpx2.Client

    def post(self, path: str, token: str, **body: Any) -> httpx2.Response:
        return self.http.post(path, headers={"authorization": f"Bearer {token}"}, **body)

    def execute(self, token: str, query: str, /, **variables: object) -> httpx2.Response:
        return self.post("/graphql", token, json={"query": query, "variables": variables})

    def new_key(self, *scopes: str) -> str:
        """Returns a new key with these scopes."""
        answer = self.execute(self.web.token("ada", roles=("ADMIN",)), CREATE, scopes=list(scopes)).json()
        return str(answer["data"]["createServiceKey"]["secret"])


@pytest.fixture(scope="module")
def api(web: WebProcess) -> Iterator[ApiRequests]:
    with httpx2.Client(base_url=web.url, timeout=60) as http:
        yield ApiRequests(web, http)


def scope_of(field: RootField) -> str:
    """Returns the scope that the field needs."""
    (scope,) = required_scopes(schema._schema, parse(field.text(depth=1))).values()
    return scope


def error_of(response: httpx2.Response) -> dict[str, Any]:
    """Returns the extensions of the first error; empty without an error."""
    errors = response.json().get("errors")
    extensions: dict[str, Any] = errors[0]["extensions"] if errors else {}
    return extensions


def test_every_root_field_has_a_scope_or_is_for_people() -> None:
    assert {scope_of(field) for field in root_fields()} <= {*SCOPES, ANY_KEY, NO_KEY}
    assert {scope_of(field) for field in root_fields()} >= set(SCOPES)
    readable = {str(field): scope_of(field) for field in root_fields() if field.root != "Mutation"}
    assert [
        name for name, scope in readable.items() if scope not in (NO_KEY, ANY_KEY) and not scope.endswith(":read")
    ] == []
    changing = {str(field): scope_of(field) for field in root_fields() if field.root == "Mutation"}
    assert [name for name, scope in changing.items() if scope == ANY_KEY or scope.endswith(":read")] == []


def test_scope_opens_exactly_its_root_fields(api: ApiRequests) -> None:
    alone = {scope: api.new_key(scope) for scope in SCOPES}
    others = {scope: api.new_key(*set(SCOPES) - {scope}) for scope in SCOPES}
    for field in REQUESTS:
        scope, text, variables = scope_of(field), field.text(depth=1), field.variables(unknown_ids())
        if scope == NO_KEY:
            refused = api.execute(alone["chat:read"], text, **variables)
            assert (refused.status_code, error_of(refused)) == (403, {"code": "FORBIDDEN"}), field
        elif scope == ANY_KEY:
            errors = api.execute(alone["mail:ingest"], text, **variables).json().get("errors", [])
            # `node` and `nodes` find what the scopes of the key allow.
            assert {each["extensions"]["code"] for each in errors} <= {"NOT_FOUND"}, field
        else:
            refused = api.execute(others[scope], text, **variables)
            assert (refused.status_code, error_of(refused)) == (403, {"code": "FORBIDDEN", "scope": scope}), field
            answer = api.execute(alone[scope], text, **variables)
            assert answer.status_code == 200, field
            assert "This needs the role" not in answer.text, field


async def test_scope_opens_exactly_its_subscriptions(api: ApiRequests) -> None:
    for field in SUBSCRIPTIONS:
        scope, variables = scope_of(field), field.without_optional_ids().variables(unknown_ids())
        text = field.without_optional_ids().text(depth=1)
        async with (
            client(api.web.url, api.new_key(*set(SCOPES) - {scope})) as refused,
            refused.socket() as socket,
        ):
            await socket.subscribe(text, **variables)
            with pytest.raises(GraphQLFailed) as error:
                await socket.next_event()
            assert error.value.errors[0]["extensions"] == {"code": "FORBIDDEN", "scope": scope}
            await socket.subscribe("{ viewer { service } }")
            assert await socket.next_event() == {"service": True}
            assert (await socket.next_frame())["type"] == "complete"
            await socket.subscribe('mutation { revokeServiceKey(serviceKeyId: "x") { id } }')
            with pytest.raises(GraphQLFailed) as error:
                await socket.next_event()
            assert error.value.codes == ["FORBIDDEN"]
        async with client(api.web.url, api.new_key(scope)) as allowed, allowed.socket() as socket:
            await socket.subscribe(text, **variables)
            frame = await socket.next_frame()
            assert "scope" not in str(frame), frame


async def test_coalesced_query_answers_no_key_without_the_scope(api: ApiRequests) -> None:
    reader, other = api.new_key("chat:read", "chat:write"), api.new_key("chat:write")
    community = api.execute(reader, 'mutation { createCommunity(input: {name: "x"}) { id } }').json()
    community_id = community["data"]["createCommunity"]["id"]
    create = "mutation ($input: CreateTopicInput!) { createTopic(input: $input) { id } }"
    topic = api.execute(reader, create, input={"communityId": community_id, "title": "x"}).json()
    api.execute(other, "mutation ($id: ID!) { joinCommunity(communityId: $id) { id } }", id=community_id)
    query = 'query ($id: ID!) { messages(topicId: $id, latest: "now") { hasNewer } }'
    topic_id = topic["data"]["createTopic"]["id"]
    page = {"data": {"messages": {"hasNewer": False}}}
    assert api.execute(reader, query, id=topic_id).json() == page
    shared_before = shared_answers(api)
    body, keys = {"query": query, "variables": {"id": topic_id}}, [reader, other] * 20
    async with httpx2.AsyncClient(timeout=60) as http:
        post = partial(http.post, f"{api.web.url}/graphql", json=body)
        answers = await asyncio.gather(*(post(headers={"authorization": f"Bearer {key}"}) for key in keys))
    assert shared_answers(api) > shared_before
    assert [answer.json() for answer in answers[::2]] == [page] * 20
    assert [error_of(answer) for answer in answers[1::2]] == [{"code": "FORBIDDEN", "scope": "chat:read"}] * 20


def shared_answers(api: ApiRequests) -> float:
    """Returns how many requests so far were answered with the result of another request's execution."""
    metrics = api.http.get("/metrics").text
    (line,) = [line for line in metrics.splitlines() if 'noroshi_coalesced_answers_total{outcome="shared"}' in line]
    return float(line.split()[-1])


def test_whole_operation_needs_every_scope(api: ApiRequests) -> None:
    key = api.new_key("feed:write")
    refused = api.execute(
        key, 'mutation { createPost(input: {text: "hi"}) { id } createCommunity(input: {name: "x"}) { id } }'
    )
    assert refused.json().keys() == {"errors"}
    fragment = "query { ...all } fragment all on Query { auditLog { id } }"
    assert error_of(api.execute(key, fragment)) == {"code": "FORBIDDEN"}
    assert api.execute(key, "{ __schema { queryType { name } } __typename }").status_code == 200
    posts = api.execute(api.new_key("feed:read"), '{ localFeed(latest: "now") { items { text } } }').json()
    assert {"text": "hi"} not in posts["data"]["localFeed"]["items"]


def test_ingest_needs_the_scope(api: ApiRequests) -> None:
    def send(token: str) -> httpx2.Response:
        return api.post("/ingest/deliveries", token, content=b"")

    assert send(api.new_key("mail:ingest")).status_code == 200
    refused = send(api.new_key(*set(SCOPES) - {"mail:ingest"}))
    assert (refused.status_code, error_of(refused)) == (403, {"code": "FORBIDDEN", "scope": "mail:ingest"})


@pytest.mark.parametrize(
    "change", [lambda text: text[:-1], lambda text: text[:-1] + "!", lambda text: "nrk_" + "x" * 80]
)
def test_mistyped_key_is_unauthenticated(api: ApiRequests, change: Any) -> None:
    response = api.execute(change(api.new_key("chat:read")), "{ viewer { id } }")
    assert (response.status_code, error_of(response)["code"]) == (401, "UNAUTHENTICATED")


def test_key_has_write_limits_of_its_own(api: ApiRequests) -> None:
    delete = 'mutation { deleteMessage(id: "x") { id } }'
    first, second = api.new_key("chat:write"), api.new_key("chat:write")
    codes = [error_of(api.execute(first, delete))["code"] for _ in range(11)]
    assert codes == ["NOT_FOUND"] * 10 + ["RATE_LIMITED"]
    assert error_of(api.execute(second, delete))["code"] == "NOT_FOUND"


def test_deactivated_service_account_is_refused(api: ApiRequests) -> None:
    key = api.new_key("chat:read")
    id_ = key.split("_")[1]
    admin = api.web.token("ada", roles=("ADMIN",))
    api.execute(admin, 'mutation ($id: ID!) { deactivateUser(userId: $id, reason: "off") { id } }', id=id_)
    assert api.execute(key, "{ viewer { id } }").status_code == 401

"""Automatic persisted queries over HTTP and WebSocket, as Apollo's clients send them."""

import hashlib
from collections.abc import Iterator
from typing import Any

import httpx2
import orjson
import pytest

from tests.client import GraphQLFailed, client
from tests.serving import WebProcess

GRAPHQL_RESPONSE = "application/graphql-response+json"


def sha256(query: str) -> str:
    return hashlib.sha256(query.encode()).hexdigest()


def persisted(query: str) -> dict[str, Any]:
    """Returns the members of a request with the hash alone."""
    return {"extensions": {"persistedQuery": {"version": 1, "sha256Hash": sha256(query)}}}


@pytest.fixture
def http(web: WebProcess) -> Iterator[httpx2.Client]:
    headers = {"authorization": f"Bearer {web.token()}"}
    with httpx2.Client(base_url=web.url, timeout=60, headers=headers) as http:
        yield http


def post(http: httpx2.Client, body: object, **headers: str) -> Any:
    return http.post("/graphql", json=body, headers=headers).json()


def test_hash_is_refused_until_its_text_was_sent(http: httpx2.Client) -> None:
    query = "query First { viewer { id } }"
    refused = http.post("/graphql", json=persisted(query))
    assert refused.status_code == 200
    assert refused.json() == {
        "errors": [{"message": "PersistedQueryNotFound", "extensions": {"code": "PERSISTED_QUERY_NOT_FOUND"}}]
    }
    assert http.post("/graphql", json=persisted(query), headers={"accept": GRAPHQL_RESPONSE}).status_code == 400
    for body in ({"query": query} | persisted(query), persisted(query), persisted(query)):
        assert post(http, body) == {"data": {"viewer": {"id": "ann"}}}
    parameters = {"extensions": orjson.dumps(persisted(query)["extensions"]).decode()}
    assert http.get("/graphql", params=parameters).json() == {"data": {"viewer": {"id": "ann"}}}
    assert post(http, [persisted(query)] * 2) == [{"data": {"viewer": {"id": "ann"}}}] * 2


def test_variables_and_mutations_are_sent_with_a_hash(http: httpx2.Client) -> None:
    query = "mutation ($name: String!) { createCommunity(input: {name: $name}) { name } }"
    post(http, {"query": query, "variables": {"name": "One"}} | persisted(query))
    body = {"variables": {"name": "Two"}} | persisted(query)
    assert post(http, body) == {"data": {"createCommunity": {"name": "Two"}}}
    parameters = {"extensions": orjson.dumps(persisted(query)["extensions"]).decode(), "variables": '{"name": "3"}'}
    assert http.get("/graphql", params=parameters).status_code == 405


def test_hash_of_another_text_is_refused_and_not_saved(http: httpx2.Client) -> None:
    query, other = "query Second { viewer { id } }", "query Third { viewer { id } }"
    response = http.post("/graphql", json={"query": other} | persisted(query))
    assert response.status_code == 400
    assert response.json()["errors"][0]["extensions"]["field"] == "extensions.persistedQuery.sha256Hash"
    assert "errors" in post(http, persisted(query))


@pytest.mark.parametrize("hash_", [None, 5, "", {}])
def test_malformed_hash_is_refused(http: httpx2.Client, hash_: object) -> None:
    response = http.post("/graphql", json={"extensions": {"persistedQuery": {"version": 1, "sha256Hash": hash_}}})
    assert response.status_code == 400
    assert response.json()["errors"][0]["extensions"]["field"] == "extensions.persistedQuery.sha256Hash"


@pytest.mark.parametrize("query", ["{ nope }", "{ viewer {", "query Fourth { viewer { id } }"])
def test_only_valid_documents_of_viewers_are_saved(web: WebProcess, query: str) -> None:
    """The last document is valid, but sent without a token."""
    with httpx2.Client(base_url=web.url, timeout=60) as http:
        post(http, {"query": query} | persisted(query))
        assert post(http, persisted(query))["errors"][0]["message"] == "PersistedQueryNotFound"


@pytest.mark.anyio
async def test_hash_is_found_over_websocket(web: WebProcess) -> None:
    query = "subscription Fifth { homeFeedEvents { __typename } }"
    async with client(web.url, web.token()) as ann, ann.socket() as socket:
        await socket.send_subscribe(persisted(query))
        with pytest.raises(GraphQLFailed) as refused:
            await socket.next_event()
        assert refused.value.codes == ["PERSISTED_QUERY_NOT_FOUND"]
        for body in ({"query": query} | persisted(query), persisted(query)):
            await socket.send_subscribe(body)
            assert (await socket.next_event())["__typename"] == "StreamReady"

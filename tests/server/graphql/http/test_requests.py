"""Queries by GET, and batches: what is executed, what is refused, and how often the limits count."""

from typing import Any

import httpx2
import orjson
import pytest

from tests.serving import ORIGIN, WebProcess

GRAPHQL_RESPONSE = "application/graphql-response+json"
WEB_SETTINGS = {"NOROSHI_VIEWER_COST_PER_MINUTE": "1000000"}
VIEWER = "{ viewer { id } }"
EXPENSIVE = "{ communities(limit: 100) { topics(limit: 100) { id lastMessage { id author { id } } } } }"
"""A query that costs tens of thousands, although there are few communities."""

CREATE = "mutation($name: String!) { createCommunity(input: {name: $name}) { name } }"


def bearer(web: WebProcess, user: str = "ann") -> dict[str, str]:
    return {"authorization": f"Bearer {web.token(user)}"}


def get(http: httpx2.Client, headers: dict[str, str] | None = None, **parameters: str) -> httpx2.Response:
    return http.get("/graphql", params=parameters, headers=headers or {})


def extensions(response: httpx2.Response) -> dict[str, Any]:
    """Returns the extensions of the single error."""
    (error,) = response.json()["errors"]
    found: dict[str, Any] = error["extensions"]
    return found


class TestGet:
    """Queries by GET."""

    def test_query_is_answered_as_by_post(self, http: httpx2.Client, web: WebProcess) -> None:
        assert get(http, query=VIEWER).json() == {"data": {"viewer": None}}
        # The second request is coalesced: its document is known.
        for _ in range(2):
            response = get(http, bearer(web, "狼"), query=VIEWER)
            assert response.json() == {"data": {"viewer": {"id": "狼"}}}
            assert response.headers["cache-control"] == "no-store"

    def test_variables_and_operation_name_are_read(self, http: httpx2.Client, web: WebProcess) -> None:
        query = "query A { __typename } query B($id: ID!) { user(id: $id) { id } }"
        variables = orjson.dumps({"id": "ann & bob + 狼"}).decode()
        http.post("/graphql", json={"query": VIEWER}, headers=bearer(web, "ann & bob + 狼"))
        response = get(http, bearer(web), query=query, variables=variables, operationName="B")
        assert response.json() == {"data": {"user": {"id": "ann & bob + 狼"}}}

    @pytest.mark.parametrize("token", [True, False])
    def test_mutation_is_refused_and_has_no_effect(self, http: httpx2.Client, web: WebProcess, token: bool) -> None:
        variables = orjson.dumps({"name": "By GET"}).decode()
        for accept in ("application/json", GRAPHQL_RESPONSE):
            headers = {"accept": accept} | (bearer(web) if token else {})
            response = get(http, headers, query=CREATE, variables=variables)
            assert response.status_code == 405
            assert response.headers["allow"] == "POST"
            assert extensions(response)["code"] == "BAD_USER_INPUT"
        communities = http.post("/graphql", json={"query": "{ communities { name } }"}, headers=bearer(web))
        assert "By GET" not in communities.text

    @pytest.mark.parametrize(
        ("parameters", "field"),
        [
            ({}, "query"),
            ({"query": ""}, "query"),
            ({"query": VIEWER, "variables": "{"}, "variables"),
            ({"query": VIEWER, "variables": "5"}, "body"),
            ({"query": VIEWER, "extensions": "x"}, "extensions"),
            ({"query": VIEWER, "operationName": "Nope"}, "operationName"),
        ],
    )
    def test_malformed_url_is_refused(self, http: httpx2.Client, parameters: dict[str, str], field: str) -> None:
        response = get(http, **parameters)
        assert response.status_code == 400
        assert extensions(response)["field"] == field

    def test_bytes_that_are_no_utf8_are_refused(self, http: httpx2.Client) -> None:
        response = http.get("/graphql?query={viewer(a:%22%ff%22){id}}")
        assert response.status_code == 400
        assert extensions(response)["field"] == "query"

    def test_subscription_is_referred_to_websocket(self, http: httpx2.Client, web: WebProcess) -> None:
        query = 'subscription { communityEvents(communityId: "1") { __typename } }'
        response = get(http, bearer(web), query=query)
        assert response.status_code == 400
        assert "WebSocket" in extensions(response)["expected"]

    @pytest.mark.parametrize("headers", [{}, {"origin": ORIGIN}, {"accept": GRAPHQL_RESPONSE}])
    def test_cookie_needs_the_header_of_clients(self, http: httpx2.Client, headers: dict[str, str]) -> None:
        """A page of another origin can make a browser send the cookie, but not the header."""
        response = get(http, {"cookie": f"__Host-noroshi={'x' * 43}"} | headers, query=VIEWER)
        assert response.status_code == 403
        assert "Noroshi-Client" in response.json()["errors"][0]["message"]


class TestBatch:
    """Batches by POST."""

    def test_results_are_in_order(self, http: httpx2.Client, web: WebProcess) -> None:
        batch = [
            {"query": VIEWER},
            {"query": CREATE, "variables": {"name": "In a batch"}},
            {"query": "{ nope }"},
            {"query": '{ topic(id: "nope") { id } }'},
            {"query": 'subscription { communityEvents(communityId: "1") { __typename } }'},
        ]
        response = http.post("/graphql", json=batch, headers=bearer(web))
        assert response.status_code == 200
        assert response.headers["content-type"] == "application/json"
        viewer, created, unknown, missing, subscription = response.json()
        assert viewer == {"data": {"viewer": {"id": "ann"}}}
        assert created == {"data": {"createCommunity": {"name": "In a batch"}}}
        assert "data" not in unknown
        assert unknown["errors"][0]["extensions"]["code"] == "GRAPHQL_VALIDATION_FAILED"
        assert missing["data"] == {"topic": None}
        assert subscription["errors"][0]["extensions"]["field"] == "query"

    def test_credential_of_the_request_holds_for_each_operation(self, http: httpx2.Client) -> None:
        response = http.post("/graphql", json=[{"query": "{ communities { id } }"}] * 2)
        assert [each["errors"][0]["extensions"]["code"] for each in response.json()] == ["UNAUTHENTICATED"] * 2
        refused = http.post("/graphql", json=[{"query": VIEWER}], headers={"authorization": "Bearer x"})
        assert refused.status_code == 401

    @pytest.mark.parametrize("count", [0, 11])
    def test_number_of_operations_is_limited(self, http: httpx2.Client, count: int) -> None:
        response = http.post("/graphql", json=[{"query": VIEWER}] * count)
        assert response.status_code == 400
        assert extensions(response)["field"] == "body"
        assert f"this batch has {count}" in extensions(response)["expected"]

    @pytest.mark.parametrize(
        ("item", "field"), [(5, "body[1]"), ({}, "[1].query"), ({"query": 5}, "body[1]"), ([], "body[1]")]
    )
    def test_malformed_item_is_named(self, http: httpx2.Client, item: object, field: str) -> None:
        response = http.post("/graphql", json=[{"query": VIEWER}, item])
        assert response.status_code == 400
        assert extensions(response)["field"] == field

    def test_each_operation_counts(self, http: httpx2.Client, web: WebProcess) -> None:
        """The budget is spent by some operations of the batch, and the others are refused."""
        response = http.post("/graphql", json=[{"query": EXPENSIVE}] * 10, headers=bearer(web, "eve"))
        codes = [each["errors"][0]["extensions"]["code"] if "errors" in each else None for each in response.json()]
        assert set(codes) == {None, "RATE_LIMITED"}
        assert codes.count(None) < 8

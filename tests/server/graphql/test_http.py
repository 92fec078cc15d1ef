"""GraphQL over HTTP: media types, limits, tokens, refusals and headers."""

import socket
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import httpx2
import orjson
import pymongo
import pytest

from server.transport.bodies import MAX_BODY_BYTES
from tests.product import eventually
from tests.serving import ORIGIN, WebProcess

JSON = {"content-type": "application/json"}
GRAPHQL_RESPONSE = "application/graphql-response+json"
TYPENAME = {"query": "{ __typename }"}


@pytest.fixture
def http(web: WebProcess) -> Iterator[httpx2.Client]:
    """Yields a client, and afterwards asserts that no traceback was logged."""
    before = len(web.log_text)
    with httpx2.Client(base_url=web.url, timeout=60) as http:
        yield http
    assert "Traceback" not in web.log_text[before:]


def post(http: httpx2.Client, content: bytes, **headers: str) -> httpx2.Response:
    """Posts a body. Underscores in the names of headers become hyphens."""
    more_headers = {name.replace("_", "-"): value for name, value in headers.items()}
    return http.post("/graphql", content=content, headers=JSON | more_headers)


def execute(http: httpx2.Client, query: str, token: str | None = None, **variables: Any) -> httpx2.Response:
    headers = {"authorization": f"Bearer {token}"} if token else {}
    return http.post("/graphql", json={"query": query, "variables": variables}, headers=headers)


def refusal(response: httpx2.Response) -> dict[str, Any]:
    """Returns the extensions of the single error. Asserts that the response has no data."""
    answer = orjson.loads(response.content)
    assert response.headers["content-type"] == "application/json"
    assert set(answer) == {"errors"}
    (error,) = answer["errors"]
    assert error["message"]
    extensions: dict[str, Any] = error["extensions"]
    return extensions


@pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE", "OPTIONS"])
def test_other_method_than_get_or_post_is_refused(http: httpx2.Client, method: str) -> None:
    response = http.request(method, "/graphql", params=TYPENAME)
    assert response.status_code == 405
    assert response.headers["allow"] == "GET, POST"
    assert refusal(response) == {"code": "BAD_USER_INPUT", "field": "method", "expected": "GET, POST"}


@pytest.mark.parametrize(
    "media_type",
    [
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=application/json",
        "text/plain; application/json",
        "text/application/json",
        "application/json-patch+json",
        "",
    ],
)
def test_body_of_other_media_type_is_refused(http: httpx2.Client, media_type: str) -> None:
    response = http.post("/graphql", content=orjson.dumps(TYPENAME), headers={"content-type": media_type})
    assert response.status_code == 400
    assert refusal(response)["field"] == "Content-Type"


@pytest.mark.parametrize("media_type", ["application/json", "application/json; charset=utf-8"])
def test_json_media_type_is_accepted_with_charset(http: httpx2.Client, media_type: str) -> None:
    response = http.post("/graphql", content=orjson.dumps(TYPENAME), headers={"content-type": media_type})
    assert response.json() == {"data": {"__typename": "Query"}}


@pytest.mark.parametrize(
    "body", [b"", b"{", b"\xff\xfe", b'{"query": "{ \\ud800 }"}', b"5", b"null", b'"x"', b"true", b"[" * 100_000]
)
def test_body_other_than_json_object_is_refused(http: httpx2.Client, body: bytes) -> None:
    response = post(http, body)
    assert response.status_code == 400
    assert refusal(response)["code"] == "BAD_USER_INPUT"


@pytest.mark.parametrize(
    "change",
    [
        {"query": 5},
        {"query": None},
        {"query": ""},
        {"variables": []},
        {"extensions": 5},
        {"operationName": 5},
        {"operationName": []},
        {"operationName": "Nope"},
    ],
)
def test_request_without_executable_operation_is_refused(http: httpx2.Client, change: dict[str, Any]) -> None:
    response = post(http, orjson.dumps(TYPENAME | change))
    assert response.status_code == 400
    assert refusal(response)["code"] == "BAD_USER_INPUT"


def test_subscription_over_http_is_referred_to_websocket(http: httpx2.Client, web: WebProcess) -> None:
    response = execute(http, 'subscription { communityEvents(communityId: "1") { __typename } }', web.token())
    assert response.status_code == 400
    assert "WebSocket" in refusal(response)["expected"]


def test_body_over_one_megabyte_is_refused(http: httpx2.Client) -> None:
    pad_bytes = MAX_BODY_BYTES - len(orjson.dumps(TYPENAME | {"extensions": {"pad": ""}}))
    largest = orjson.dumps(TYPENAME | {"extensions": {"pad": "x" * pad_bytes}})
    assert post(http, largest).status_code == 200
    response = post(http, largest + b" ")
    assert response.status_code == 413
    assert refusal(response)["code"] == "BAD_USER_INPUT"


def test_only_operators_send_call_lists_up_to_16_mb(http: httpx2.Client, web: WebProcess) -> None:
    query = "query ($input: LaunchCallJobInput!) { checkCallList(input: $input) { rows } }"
    csv = "phone_number,x\n" + "".join(f"+8190{10_000_000 + n},{'x' * 200}\n" for n in range(10_000))
    variables = {"input": {"name": "List", "scenario": "Hello", "csv": csv}}
    operator, member = (web.token(role, roles=(role,)) for role in ("OPERATOR", "MEMBER"))
    response = execute(http, query, operator, **variables)
    assert orjson.loads(response.content)["data"] == {"checkCallList": {"rows": 10_000}}
    assert execute(http, query, member, **variables).status_code == 413
    assert execute(http, query, None, **variables).status_code == 413
    assert execute(http, "{ __typename }", operator, pad=csv).status_code == 413
    too_large = orjson.dumps({"query": query, "variables": variables, "pad": "x" * 16_000_000})
    assert post(http, too_large, authorization=f"Bearer {operator}").status_code == 413


def test_chunked_body_over_one_megabyte_is_refused(http: httpx2.Client) -> None:
    chunks = (b" " * 100_000 for _ in range(30))
    response = http.post("/graphql", content=chunks, headers=JSON)
    assert response.status_code == 413


def test_disconnect_within_body_is_not_logged_as_error(http: httpx2.Client, web: WebProcess) -> None:
    address = urlsplit(web.url)
    with socket.create_connection((address.hostname, address.port)) as connection:
        connection.sendall(b"POST /graphql HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n")
        connection.sendall(b'Content-Length: 100\r\n\r\n{"query": ')
    assert post(http, orjson.dumps(TYPENAME)).status_code == 200


def test_request_without_token_has_null_viewer(http: httpx2.Client) -> None:
    assert execute(http, "{ viewer { id } }").json() == {"data": {"viewer": None}}
    response = execute(http, "{ communities { id } }")
    assert response.status_code == 200
    assert response.json()["errors"][0]["extensions"] == {"code": "UNAUTHENTICATED"}


@pytest.mark.parametrize(
    "authorization", ["Bearer garbage", "Bearer", "Bearer a.b.c", "Basic YTpi", "x", "Bearer \xe9"]
)
def test_malformed_authorization_is_401(http: httpx2.Client, authorization: str) -> None:
    headers = {b"content-type": b"application/json", b"authorization": authorization.encode("latin-1")}
    response = http.post("/graphql", content=orjson.dumps(TYPENAME), headers=headers)
    assert response.status_code == 401
    assert response.headers["www-authenticate"] == "Bearer"
    assert refusal(response) == {"code": "UNAUTHENTICATED"}


def test_expired_token_is_401(http: httpx2.Client, web: WebProcess) -> None:
    response = execute(http, "{ viewer { id } }", web.token(ttl_s=-1))
    assert response.status_code == 401
    assert refusal(response) == {"code": "UNAUTHENTICATED"}


def test_token_determines_viewer(http: httpx2.Client, web: WebProcess) -> None:
    response = execute(http, "{ viewer { id roles } }", web.token("狼", roles=("OPERATOR",)))
    assert response.json() == {"data": {"viewer": {"id": "狼", "roles": ["OPERATOR"]}}}


@pytest.mark.parametrize("query", ["{", "{ nope }", "query($a: Int!) { __typename @skip(if: $a) }"])
def test_refused_document_is_200_for_json_and_400_for_graphql(http: httpx2.Client, query: str) -> None:
    body = orjson.dumps({"query": query})
    for accept, status in [("application/json", 200), ("*/*", 200), (GRAPHQL_RESPONSE, 400)]:
        response = post(http, body, accept=accept)
        assert response.status_code == status
        assert "data" not in response.json()
        assert response.json()["errors"][0]["extensions"]["code"].startswith("GRAPHQL_")
        assert "Accept" in response.headers["vary"]


def test_accepted_graphql_response_type_is_used(http: httpx2.Client) -> None:
    response = post(http, orjson.dumps(TYPENAME), accept=f"{GRAPHQL_RESPONSE}, application/json;q=0.9")
    assert response.status_code == 200
    assert response.headers["content-type"].startswith(GRAPHQL_RESPONSE)


def test_field_errors_are_200_in_both_media_types(http: httpx2.Client, web: WebProcess) -> None:
    body = orjson.dumps({"query": '{ topic(id: "nope") { id } }'})
    for accept in ("application/json", GRAPHQL_RESPONSE):
        response = post(http, body, accept=accept, authorization=f"Bearer {web.token()}")
        assert response.status_code == 200
        assert response.json()["data"] == {"topic": None}
        assert response.json()["errors"][0]["extensions"] == {"code": "NOT_FOUND"}


@pytest.mark.parametrize("text", ["狼煙 🔥 à", "a\0b", "a\u2028\u200f", "𠮷野家", '"\\\n'])
def test_text_is_returned_unchanged(http: httpx2.Client, web: WebProcess, text: str) -> None:
    create = "mutation($name: String!) { createCommunity(input: {name: $name}) { name } }"
    response = execute(http, create, web.token(), name=text)
    assert response.json() == {"data": {"createCommunity": {"name": text}}}


def test_responses_are_compact_utf8_and_not_stored(http: httpx2.Client, web: WebProcess) -> None:
    create = "mutation($name: String!) { createCommunity(input: {name: $name}) { name } }"
    response = execute(http, create, web.token(), name="狼煙")
    assert response.content == '{"data":{"createCommunity":{"name":"狼煙"}}}'.encode()
    assert response.headers["cache-control"] == "no-store"
    assert response.headers["x-content-type-options"] == "nosniff"


def test_cors_allows_configured_origins_only(http: httpx2.Client) -> None:
    preflight = {
        "access-control-request-method": "POST",
        "access-control-request-headers": "content-type,authorization",
    }
    allowed = http.options("/graphql", headers=preflight | {"origin": ORIGIN})
    assert allowed.status_code == 200
    assert allowed.headers["access-control-allow-origin"] == ORIGIN
    assert "POST" in allowed.headers["access-control-allow-methods"].split(", ")
    assert "authorization" in allowed.headers["access-control-allow-headers"]
    for origin in ("https://evil.example.org", f"{ORIGIN}.evil.org", "null", ORIGIN.replace("https", "http")):
        refused = http.options("/graphql", headers=preflight | {"origin": origin})
        assert "access-control-allow-origin" not in refused.headers
        response = post(http, orjson.dumps(TYPENAME), origin=origin)
        assert "access-control-allow-origin" not in response.headers


def test_refusal_is_readable_by_allowed_origin(http: httpx2.Client) -> None:
    response = post(http, b"{", origin=ORIGIN)
    assert response.status_code == 400
    assert response.headers["access-control-allow-origin"] == ORIGIN
    assert "Origin" in response.headers["vary"]


def test_unexpected_error_is_masked_and_logged(web: WebProcess, mongodb_uri: str) -> None:
    """A stored user without a name causes a KeyError."""
    client: pymongo.MongoClient[dict[str, Any]] = pymongo.MongoClient(mongodb_uri)
    with client, httpx2.Client(base_url=web.url, timeout=60) as http:
        client[web.database]["users"].insert_one({"_id": {"org": "acme", "id": "broken"}, "handle": "broken"})
        response = execute(http, "{ viewer { id } }", web.token("broken"))
    assert response.status_code == 500
    extensions = refusal(response)
    assert extensions["code"] == "INTERNAL_SERVER_ERROR"
    assert "KeyError" not in response.text
    assert eventually(lambda: extensions["requestId"] in web.log_text)
    assert "KeyError" in web.log_text

"""Lone surrogates, such as half of an emoji, in requests over HTTP and WebSocket."""

from collections.abc import Iterator
from typing import Any

import httpx2
import orjson
import pytest

from tests.server.graphql.test_websocket import close_code, init, open_socket, receive, receive_ack, send
from tests.serving import WebProcess

pytestmark = pytest.mark.anyio

HALF = "\\ud83d"
"""Half of an emoji, as JSON."""

POST = "mutation ($input: PostMessageInput!) { postMessage(input: $input) { text } }"
EVENTS = "subscription ($topic: ID!, $since: Cursor) { topicEvents(topicId: $topic, since: $since) { __typename } }"


@pytest.fixture(autouse=True)
def _no_traceback_is_logged(web: WebProcess) -> Iterator[None]:
    before = len(web.log_text)
    yield
    assert "Traceback" not in web.log_text[before:]


@pytest.fixture(scope="module")
def topic(web: WebProcess) -> str:
    create = 'mutation { createCommunity(input: {name: "hills"}) { id } }'
    community = execute(web, create)["data"]["createCommunity"]["id"]
    create = f'mutation {{ createTopic(input: {{communityId: "{community}", title: "fires"}}) {{ id }} }}'
    return str(execute(web, create)["data"]["createTopic"]["id"])


def json_of(value: Any) -> bytes:
    """Returns the value as JSON, with a lone surrogate in place of each `<half>`."""
    return orjson.dumps(value).replace(b"<half>", HALF.encode())


def execute(web: WebProcess, query: str, **more: Any) -> dict[str, Any]:
    headers = {"content-type": "application/json", "authorization": f"Bearer {web.token()}"}
    response = httpx2.post(f"{web.url}/graphql", content=json_of({"query": query, **more}), headers=headers, timeout=60)
    assert response.headers["content-type"] == "application/json"
    answer: dict[str, Any] = orjson.loads(response.content)
    return {"status": response.status_code, **answer}


OPERATIONS: list[tuple[str, dict[str, Any], str]] = [
    (POST, {"input": {"topicId": "TOPIC", "text": "a <half>"}}, "text"),
    (POST, {"input": {"topicId": "<half>", "text": "a"}}, "topicId"),
    (POST, {"input": {"topicId": "TOPIC", "text": "a", "idempotencyKey": "<half>"}}, "idempotencyKey"),
    (
        POST,
        {"input": {"topicId": "TOPIC", "text": "a", "attachments": [{"uploadId": "1"}, {"uploadId": "<half>"}]}},
        "attachments[1].uploadId",
    ),
    ("query ($id: ID!) { topic(id: $id) { title } }", {"id": "<half>"}, "id"),
    ("query ($q: String!) { users(query: $q) { id } }", {"q": "<half>"}, "query"),
    ("query ($ids: [ID!]!) { onlineUserIds(userIds: $ids) }", {"ids": ["a", "b", "<half>"]}, "userIds[2]"),
    ("query ($ids: [ID!]!) { onlineUserIds(userIds: $ids) }", {"ids": ["a"] * 60 + ["<half>"]}, "userIds[60]"),
]


@pytest.mark.parametrize(("query", "variables", "field"), OPERATIONS)
def test_surrogate_over_http_fails_its_field(
    web: WebProcess, topic: str, query: str, variables: dict[str, Any], field: str
) -> None:
    answer = execute(web, query, variables=orjson.loads(orjson.dumps(variables).replace(b"TOPIC", topic.encode())))
    (error,) = answer["errors"]
    assert answer["status"] == 200
    assert error["extensions"] == {
        "code": "BAD_USER_INPUT",
        "field": field,
        "expected": "text without lone surrogates",
    }
    assert error["path"]


def test_other_fields_of_operation_are_executed(web: WebProcess) -> None:
    query = "query ($q: String!) { viewer { handle } users(query: $q) { id } }"
    answer = execute(web, query, variables={"q": "<half>", "unused": "<half>"})
    assert [error["path"] for error in answer["errors"]] == [["users"]]
    only_unused = execute(web, "{ viewer { handle } }", variables={"<half>": "<half>"})
    assert only_unused["data"] == {"viewer": {"handle": "ann"}}


@pytest.mark.parametrize(("query", "variables", "field"), OPERATIONS)
async def test_surrogate_over_websocket_closes_nothing(
    web: WebProcess, topic: str, query: str, variables: dict[str, Any], field: str
) -> None:
    async with open_socket(web, init(web)) as ws:
        await receive_ack(ws)
        await send(ws, {"id": "s", "type": "subscribe", "payload": {"query": EVENTS, "variables": {"topic": topic}}})
        assert (await receive(ws))["payload"]["data"] == {"topicEvents": {"__typename": "StreamReady"}}
        payload = {"query": query, "variables": variables}
        frame = json_of({"id": "1", "type": "subscribe", "payload": payload}).replace(b"TOPIC", topic.encode())
        await send(ws, frame.decode())
        answer = await receive(ws)
        assert (answer["id"], answer["payload"]["errors"][0]["extensions"]["field"]) == ("1", field)
        assert await receive(ws) == {"id": "1", "type": "complete"}
        post = {"query": POST, "variables": {"input": {"topicId": topic, "text": "a"}}}
        await send(ws, {"id": "2", "type": "subscribe", "payload": post})
        frames = [await receive(ws) for _ in range(3)]
        assert {"topicEvents": {"__typename": "MessagePosted"}} in [
            each["payload"]["data"] for each in frames if each["id"] == "s"
        ]


async def test_surrogate_fails_only_its_subscription(web: WebProcess, topic: str) -> None:
    async with open_socket(web, init(web)) as ws:
        await receive_ack(ws)
        for variables, field in (({"topic": "<half>"}, "topic"), ({"topic": topic, "since": "<half>"}, "since")):
            payload = {"query": EVENTS, "variables": variables}
            await send(ws, json_of({"id": "1", "type": "subscribe", "payload": payload}).decode())
            answer = await receive(ws)
            assert (answer["id"], answer["type"]) == ("1", "error")
            (error,) = answer["payload"]
            assert (error["extensions"]["code"], error["extensions"]["field"]) == ("BAD_USER_INPUT", field)


@pytest.mark.parametrize(
    ("payload", "code"),
    [
        ({"query": '{ users(query: "<half>") { id } }'}, "BAD_USER_INPUT"),
        ({"query": '{ users(query: "\\ud83d") { id } }'}, "GRAPHQL_PARSE_FAILED"),
        ({"query": '{ users(query: """<half>""") { id } }'}, "BAD_USER_INPUT"),
        ({"query": "{ viewer { <half> } }"}, "BAD_USER_INPUT"),
        ({"query": "{ viewer { id } } # <half>"}, "BAD_USER_INPUT"),
        ({"query": "query A { viewer { id } }", "operationName": "<half>"}, "BAD_USER_INPUT"),
        ({"query": POST, "variables": {"input": {"<half>": 1}}}, "BAD_USER_INPUT"),
        (
            {"query": "query ($n: Int!) { communities(limit: $n) { id } }", "variables": {"n": "<half>"}},
            "BAD_USER_INPUT",
        ),
    ],
)
async def test_surrogate_elsewhere_in_request_fails_it(web: WebProcess, payload: dict[str, Any], code: str) -> None:
    assert execute(web, **payload)["errors"][0]["extensions"]["code"] == code
    async with open_socket(web, init(web)) as ws:
        await receive_ack(ws)
        await send(ws, json_of({"id": "1", "type": "subscribe", "payload": payload}).decode())
        answer = await receive(ws)
        errors = answer["payload"] if answer["type"] == "error" else answer["payload"]["errors"]
        assert (answer["id"], errors[0]["extensions"]["code"]) == ("1", code)
        await send(ws, {"type": "ping"})
        while await receive(ws) != {"type": "pong"}:
            pass


async def test_surrogates_beside_the_token_are_ignored(web: WebProcess) -> None:
    payload = {**init(web)["payload"], "<half>": "<half>"}
    async with open_socket(web, json_of({"type": "connection_init", "payload": payload}).decode()) as ws:
        await receive_ack(ws)
        await send(ws, json_of({"type": "ping", "payload": {"a": "<half>"}}).decode())
        assert await receive(ws) == {"type": "pong"}


@pytest.mark.parametrize(
    ("frame", "code"),
    [
        ({"type": "connection_init", "payload": {"authorization": "Bearer <half>"}}, 4401),
        ({"type": "<half>"}, 4400),
        ({"type": "subscribe", "id": "<half>", "payload": {"query": "{ __typename }"}}, 4400),
    ],
)
async def test_surrogate_in_protocol_field_closes_with_code(web: WebProcess, frame: dict[str, Any], code: int) -> None:
    is_init = frame["type"] == "connection_init"
    async with open_socket(web, *([] if is_init else [init(web)]), json_of(frame).decode()) as ws:
        assert await close_code(ws) == code


@pytest.mark.parametrize("text", ['{"type": "%s"', '{"type": "ping", "payload": {"a": "%s", "b": NaN}}', "['%s']"])
async def test_malformed_json_with_surrogate_is_refused(web: WebProcess, text: str) -> None:
    malformed = text % HALF
    headers = {"content-type": "application/json"}
    response = httpx2.post(f"{web.url}/graphql", content=malformed.encode(), headers=headers)
    assert (response.status_code, orjson.loads(response.content)["errors"][0]["extensions"]["field"]) == (400, "body")
    async with open_socket(web, init(web), malformed) as ws:
        assert await close_code(ws) == 4400

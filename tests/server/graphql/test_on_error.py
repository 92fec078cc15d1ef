"""The request's `onError`: with NULL, a refused field is null in place, and its parents keep their data."""

from typing import Any

import orjson
import pytest

from tests.client import Client, client
from tests.e2e.chat_topic import create_chat_topic
from tests.serving import WebProcess

REFUSED = "{ viewer { id } communities { id } }"
"""Without a token, the viewer is null, and the list of communities, which can't be null, is refused."""

pytestmark = pytest.mark.anyio


@pytest.fixture
async def nobody(web: WebProcess) -> Any:
    async with client(web.url, None) as nobody:
        yield nobody


async def post(nobody: Client, body: object, **headers: str) -> Any:
    response = await nobody.http.post(f"{nobody.url}/graphql", json=body, headers=headers)
    return orjson.loads(response.content)


def refusal(result: dict[str, Any]) -> tuple[list[str | int], str]:
    """Returns path and code of the single error."""
    (error,) = result["errors"]
    return error["path"], error["extensions"]["code"]


@pytest.mark.parametrize("on_error", [None, "PROPAGATE"])
async def test_error_of_a_non_null_field_empties_the_answer(nobody: Client, on_error: str | None) -> None:
    result = await post(nobody, {"query": REFUSED, "onError": on_error})
    assert result["data"] is None
    assert refusal(result) == (["communities"], "UNAUTHENTICATED")


async def test_refused_field_is_null_in_place(nobody: Client) -> None:
    body = {"query": REFUSED, "onError": "NULL"}
    for result in (await post(nobody, body), (await post(nobody, [body]))[0]):
        assert result["data"] == {"viewer": None, "communities": None}
        assert refusal(result) == (["communities"], "UNAUTHENTICATED")
    by_get = await nobody.http.get(f"{nobody.url}/graphql", params=body)
    assert by_get.json()["data"] == {"viewer": None, "communities": None}


async def test_identical_queries_with_different_handling_share_nothing(web: WebProcess) -> None:
    """The second query of each kind may be coalesced, and compiled plans exist."""
    query = """{ communities { id }
      missing: messages(topicId: "nowhere", latest: "now", limit: 1) { items { id } } }"""
    async with client(web.url, web.token()) as ann:
        headers = {"authorization": f"Bearer {ann.token}"}
        for _ in range(3):
            assert (await post(ann, {"query": query}, **headers))["data"] is None
            result = await post(ann, {"query": query, "onError": "NULL"}, **headers)
            assert result["data"]["missing"] is None
            assert isinstance(result["data"]["communities"], list)
            assert refusal(result) == (["missing"], "NOT_FOUND")


async def test_lists_of_objects_are_complete(web: WebProcess) -> None:
    query = """query ($topic: ID!) {
      messages(topicId: $topic, latest: "now", limit: 10) { items { text author { id handle } reactions { emoji } } }
    }"""
    async with client(web.url, web.token()) as ann:
        chat = await create_chat_topic(ann)
        create = "mutation ($input: PostMessageInput!) { postMessage(input: $input) { id } }"
        for text in ("one", "two"):
            await ann.run(create, input={"topicId": chat.topic, "text": text})
        headers = {"authorization": f"Bearer {ann.token}"}
        body = {"query": query, "variables": {"topic": chat.topic}}
        expected = await post(ann, body, **headers)
        assert [each["text"] for each in expected["data"]["messages"]["items"]] == ["two", "one"]
        assert await post(ann, body | {"onError": "NULL"}, **headers) == expected


@pytest.mark.parametrize("on_error", ["HALT", "null", ""])
async def test_other_handling_is_refused(nobody: Client, on_error: str) -> None:
    response = await nobody.http.post(f"{nobody.url}/graphql", json={"query": REFUSED, "onError": on_error})
    assert response.status_code == 400
    (error,) = response.json()["errors"]
    assert error["extensions"] == {"code": "BAD_USER_INPUT", "field": "onError", "expected": "PROPAGATE or NULL"}


async def test_sockets_and_event_streams_handle_errors_alike(web: WebProcess) -> None:
    """A subscription whose root field fails for each event would end it; here, the document is only executed."""
    query = '{ viewer { id } messages(topicId: "nowhere", latest: "now", limit: 1) { items { id } } }'
    async with client(web.url, web.token()) as ann, ann.socket() as socket:
        await socket.send_subscribe({"query": query, "onError": "NULL"})
        frame = await socket.next_frame()
        assert frame["payload"]["data"] == {"viewer": {"id": "ann"}, "messages": None}
        headers = {"authorization": f"Bearer {ann.token}", "accept": "text/event-stream"}
        response = await ann.http.post(f"{web.url}/graphql", json={"query": query, "onError": "NULL"}, headers=headers)
        assert '"data":{"viewer":{"id":"ann"},"messages":null}' in response.text

"""The common GraphQL clients use the running product: query, mutation, subscription, and resume after a disconnect."""

from contextlib import AsyncExitStack, aclosing
from typing import Any

import pytest
from gql import Client, GraphQLRequest
from gql.client import AsyncClientSession
from gql.transport.exceptions import TransportQueryError
from gql.transport.httpx import HTTPXAsyncTransport
from gql.transport.websockets import WebsocketsTransport

from tests.e2e.conftest import DeployedProduct
from tests.programs import run_client_script

NODE_CLIENTS = ["graphql-ws", "graphql-sse", "urql", "urql-sse", "apollo", "relay"]
# The product executes no operation by GET. The audits only recommend GET.
GET_AUDITS = {"5A70", "D6D5", "6A70"}

TOPIC_EVENTS = """
    subscription ($id: ID!, $since: Cursor) {
      topicEvents(topicId: $id, since: $since) {
        __typename
        ... on StreamReady { cursor resumed }
        ... on MessagePosted { cursor message { text timestamp } }
      }
    }
"""


@pytest.mark.parametrize("script", NODE_CLIENTS)
def test_node_client_queries_subscribes_and_resumes(product: DeployedProduct, script: str) -> None:
    report = run_client_script(script, url=product.url, token=product.token("ann", org=f"clients-{script}"))
    assert report["viewer"]["handle"] == "ann"
    assert report["errorCode"] == "NOT_FOUND"
    assert_resumed(report)


def assert_resumed(report: dict[str, Any]) -> None:
    """Asserts that each event arrived once and in order: one before the disconnect, two during it, one afterwards."""
    assert (report["ready"]["__typename"], report["ready"]["resumed"]) == ("StreamReady", False)
    assert (report["resumed"]["__typename"], report["resumed"]["resumed"]) == ("StreamReady", True)
    assert report["resumed"]["cursor"] == report["first"]["cursor"]
    events = [report["first"], *report["missed"], report["live"]]
    assert [event["message"]["text"] for event in events] == ["one", "two", "three", "four"]
    assert [event["message"]["timestamp"] for event in events] == report["timestamps"]
    assert len({event["cursor"] for event in [report["ready"], *events]}) == 5


@pytest.mark.anyio
async def test_python_gql_client_queries_subscribes_and_resumes(product: DeployedProduct) -> None:
    authorization = f"Bearer {product.token('ann', org='clients-gql')}"
    http = HTTPXAsyncTransport(f"{product.url}/graphql", headers={"authorization": authorization})
    async with Client(transport=http, fetch_schema_from_transport=True) as session:
        viewer = await session.execute(GraphQLRequest("{ viewer { id handle } }"))
        report: dict[str, Any] = {"viewer": viewer["viewer"]}
        topic = await create_topic(session)
        async with AsyncExitStack() as first_stack:
            transport, events = await open_subscription(first_stack, product.url, authorization, id=topic)
            report["ready"] = await anext(events)
            report["timestamps"] = [await post(session, topic, "one")]
            report["first"] = await anext(events)
            transport.adapter.websocket.transport.abort()
        report["timestamps"] += [await post(session, topic, text) for text in ("two", "three")]
        async with AsyncExitStack() as second_stack:
            _, events = await open_subscription(
                second_stack, product.url, authorization, id=topic, since=report["first"]["cursor"]
            )
            report["resumed"], *report["missed"] = [await anext(events) for _ in range(3)]
            report["timestamps"].append(await post(session, topic, "four"))
            report["live"] = await anext(events)
        with pytest.raises(TransportQueryError) as error:
            await session.execute(GraphQLRequest('{ topic(id: "nowhere") { id } }'))
    assert (error.value.errors or [])[0]["extensions"]["code"] == "NOT_FOUND"
    assert report["viewer"]["handle"] == "ann"
    assert_resumed(report)


async def open_subscription(stack: AsyncExitStack, url: str, authorization: str, **variables: str) -> tuple[Any, Any]:
    """Opens a socket, subscribes, and returns the transport and an iterator of events."""
    transport = WebsocketsTransport(
        f"{url.replace('http', 'ws')}/graphql",
        init_payload={"authorization": authorization},
        subprotocols=[WebsocketsTransport.GRAPHQLWS_SUBPROTOCOL],
    )
    session = await stack.enter_async_context(Client(transport=transport))
    stream = session.subscribe(GraphQLRequest(TOPIC_EVENTS, variable_values=dict(variables)))
    results = await stack.enter_async_context(aclosing(stream))
    return transport, (result["topicEvents"] async for result in results)


async def create_topic(session: AsyncClientSession) -> str:
    community = await session.execute(GraphQLRequest('mutation { createCommunity(input: {name: "Hills"}) { id } }'))
    create = 'mutation ($id: ID!) { createTopic(input: {communityId: $id, title: "Watch"}) { id } }'
    topic = await session.execute(GraphQLRequest(create, variable_values={"id": community["createCommunity"]["id"]}))
    return str(topic["createTopic"]["id"])


async def post(session: AsyncClientSession, topic: str, text: str) -> str:
    mutation = "mutation ($id: ID!, $text: String!) { postMessage(input: {topicId: $id, text: $text}) { timestamp } }"
    posted = await session.execute(GraphQLRequest(mutation, variable_values={"id": topic, "text": text}))
    return str(posted["postMessage"]["timestamp"])


def test_graphql_http_audits_pass_except_get(product: DeployedProduct) -> None:
    report = run_client_script("audits", url=product.url)
    assert report["total"] == 61
    assert {audit["id"] for audit in report["failed"]} == GET_AUDITS
    assert all(audit["name"].startswith("MAY ") and "GET" in audit["name"] for audit in report["failed"])

"""Prints the messages of a topic as they arrive, and resumes after a lost connection.

NOROSHI_TOKEN=... python live.py [text to post]
"""

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

from gql import Client, GraphQLRequest
from gql.transport.exceptions import TransportConnectionFailed, TransportQueryError
from gql.transport.httpx import HTTPXAsyncTransport
from gql.transport.websockets import WebsocketsTransport
from websockets.exceptions import ConnectionClosed

VIEWER = "{ viewer { handle } communities(joined: true) { topics { id title } } }"
POST = "mutation ($input: PostMessageInput!) { postMessage(input: $input) { timestamp } }"
EVENTS = """
    subscription ($topicId: ID!, $since: Cursor) {
      topicEvents(topicId: $topicId, since: $since) {
        __typename
        ... on Event { cursor }
        ... on StreamReady { resumed }
        ... on MessagePosted { message { text author { handle } } }
      }
    }
"""
URL = os.environ.get("NOROSHI_URL", "http://127.0.0.1:8000") + "/graphql"
AUTHORIZATION = f"Bearer {os.environ.get('NOROSHI_TOKEN')}"
SIGN_IN_AGAIN = {4401, 4403}
"""Close codes after which a new token is needed."""


async def topic_events(topic_id: str) -> AsyncIterator[dict[str, Any]]:
    """Yields the events of a topic. After a lost connection it continues after the last event."""
    since = None
    while True:
        socket = WebsocketsTransport(
            URL.replace("http", "ws", 1),
            init_payload={"authorization": AUTHORIZATION},
            subprotocols=[WebsocketsTransport.GRAPHQLWS_SUBPROTOCOL],
        )
        request = GraphQLRequest(EVENTS, variable_values={"topicId": topic_id, "since": since})
        try:
            async with Client(transport=socket) as session, aclosing(session.subscribe(request)) as results:
                async for result in results:
                    since = result["topicEvents"]["cursor"]
                    yield result["topicEvents"]
                return
        except TransportConnectionFailed as error:
            if close_code(error) in SIGN_IN_AGAIN:
                raise
            await asyncio.sleep(1)


def close_code(error: BaseException | None) -> int | None:
    """Returns the code with which the server closed the socket, or None if the connection broke."""
    while error and not isinstance(error, ConnectionClosed):
        error = error.__cause__
    return error.rcvd.code if error and error.rcvd else None


async def main() -> None:
    """Signs in, then prints the events of the topic until Ctrl-C."""
    http = HTTPXAsyncTransport(URL, headers={"authorization": AUTHORIZATION})
    async with Client(transport=http) as session:
        data = await session.execute(GraphQLRequest(VIEWER))
        print(f"Signed in as {data['viewer']['handle']}.", flush=True)
        topics = [topic["id"] for community in data["communities"] for topic in community["topics"]]
        topic_id = os.environ.get("NOROSHI_TOPIC") or topics[0]
        async for event in topic_events(topic_id):
            if event["__typename"] == "StreamReady":
                print("Resumed." if event["resumed"] else "Live.", flush=True)
                if sys.argv[1:] and not event["resumed"]:
                    message = {"topicId": topic_id, "text": sys.argv[1]}
                    await session.execute(GraphQLRequest(POST, variable_values={"input": message}))
            elif event["__typename"] == "MessagePosted":
                message = event["message"]
                print(f"{message['author']['handle']}: {message['text']}", flush=True)


try:
    asyncio.run(main())
except TransportQueryError as failure:
    sys.exit("\n".join(f"{error['extensions']['code']}: {error['message']}" for error in failure.errors or []))

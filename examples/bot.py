"""A bot that answers every message of a topic in which it is mentioned, once each.

Create a key with `noroshi key create --org acme --name Bot --scope chat:read --scope chat:write`, install
`gql[websockets]`, and run `NOROSHI_KEY=nrk_... NOROSHI_TOPIC=<id of a topic> python bot.py`. The bot joins the topic's
community and prints its handle. It answers in the thread of the message that mentions it. The file bot.cursor holds its
position, from which it continues after a restart.
"""

import asyncio
import os
from pathlib import Path

from gql import Client, GraphQLRequest
from gql.client import AsyncClientSession
from gql.transport.exceptions import TransportConnectionFailed
from gql.transport.websockets import WebsocketsTransport

BOT = "query ($topic: ID!) { viewer { id handle } topic(id: $topic) { community { id } } }"
JOIN = "mutation ($id: ID!) { joinCommunity(communityId: $id) { id } }"
ANSWER = "mutation ($input: PostMessageInput!) { postMessage(input: $input) { id } }"
EVENTS = """subscription ($topic: ID!, $since: Cursor) { topicEvents(topicId: $topic, since: $since) {
  __typename
  ... on Event { cursor }
  ... on MessagePosted { message { id author { handle } mentions { id handle } } }
} }"""
URL = os.environ.get("NOROSHI_URL", "http://127.0.0.1:8000").replace("http", "ws", 1) + "/graphql"
SIGN_IN = {"authorization": f"Bearer {os.environ['NOROSHI_KEY']}"}
TOPIC, POSITION = os.environ["NOROSHI_TOPIC"], Path("bot.cursor")


async def answer_mentions(session: AsyncClientSession) -> None:
    """Answers until the connection is lost."""
    bot = await session.execute(GraphQLRequest(BOT, variable_values={"topic": TOPIC}))
    await session.execute(GraphQLRequest(JOIN, variable_values=bot["topic"]["community"]))
    since = POSITION.read_text() if POSITION.exists() else None
    async for result in session.subscribe(GraphQLRequest(EVENTS, variable_values={"topic": TOPIC, "since": since})):
        event = result["topicEvents"]
        if event["__typename"] == "StreamReady":
            print(f"@{bot['viewer']['handle']} is listening.", flush=True)
        if bot["viewer"] in (message := event.get("message", {"mentions": []}))["mentions"]:
            # The key makes a repetition harmless, for example after a crash before the position was written.
            answer = {"topicId": TOPIC, "replyTo": message["id"], "idempotencyKey": f"answer-{message['id']}"}
            answer["text"] = f"Hello @{message['author']['handle']}!"
            await session.execute(GraphQLRequest(ANSWER, variable_values={"input": answer}))
        POSITION.write_text(event["cursor"])


async def main() -> None:
    """Answers until Ctrl-C, and connects again after each lost connection."""
    while True:
        socket = WebsocketsTransport(URL, init_payload=SIGN_IN, subprotocols=["graphql-transport-ws"])
        try:
            async with Client(transport=socket) as session:
                await answer_mentions(session)
        except TransportConnectionFailed:
            await asyncio.sleep(1)


asyncio.run(main())

"""Schedules a post to the followers of a service account, and prints the states of its publication until it is out.

Create a key with `noroshi key create --org acme --name Scheduler --scope publishing:write --scope jobs:read`, install
`gql[websockets]`, and run `NOROSHI_KEY=nrk_... python scheduler.py "Good morning" 60`. The number is the delay in
seconds. With `toTopicIds` and `toAccountIds` a post also goes to topics and to social networks.
"""

import asyncio
import os
import sys
import uuid
from datetime import UTC, datetime, timedelta

from gql import Client, GraphQLRequest
from gql.client import AsyncClientSession
from gql.transport.exceptions import TransportConnectionFailed
from gql.transport.websockets import WebsocketsTransport

SCHEDULE = "mutation ($input: SchedulePostInput!) { schedulePost(input: $input) { id } }"
EVENTS = """subscription ($since: Cursor) { jobEvents(since: $since) {
  ... on Event { cursor }
  ... on PublicationChanged { publication { scheduledPostId state latenessMs error { code message } } }
} }"""
FINAL = {"PUBLISHED", "FAILED", "CANCELLED"}
URL = os.environ.get("NOROSHI_URL", "http://127.0.0.1:8000").replace("http", "ws", 1) + "/graphql"
SIGN_IN = {"authorization": f"Bearer {os.environ['NOROSHI_KEY']}"}


async def follow(session: AsyncClientSession, post: dict[str, object], position: dict[str, str]) -> None:
    """Subscribes, schedules the post, and prints its states until the last one."""
    id_ = None
    async for result in session.subscribe(GraphQLRequest(EVENTS, variable_values=dict(position))):
        if id_ is None:
            # After a reconnect, the same idempotency key answers with the same post.
            scheduled = await session.execute(GraphQLRequest(SCHEDULE, variable_values={"input": post}))
            id_ = scheduled["schedulePost"]["id"]
        publication = result["jobEvents"].get("publication")
        if publication and publication["scheduledPostId"] == id_:
            print(publication["state"], publication["error"] or "", flush=True)
            if publication["state"] in FINAL:
                return
        position["since"] = result["jobEvents"]["cursor"]


async def main(text: str, delay_s: float) -> None:
    """Schedules a post, and connects again after each lost connection."""
    due_at = (datetime.now(UTC) + timedelta(seconds=delay_s)).isoformat()
    post = {"text": text, "toHomeFeed": True, "dueAt": due_at, "idempotencyKey": str(uuid.uuid4())}
    position: dict[str, str] = {}
    while True:
        socket = WebsocketsTransport(URL, init_payload=SIGN_IN, subprotocols=["graphql-transport-ws"])
        try:
            async with Client(transport=socket) as session:
                return await follow(session, post, position)
        except TransportConnectionFailed:
            await asyncio.sleep(1)


asyncio.run(main(sys.argv[1], float(sys.argv[2])))

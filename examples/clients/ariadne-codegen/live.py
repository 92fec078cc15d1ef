"""Prints the messages of a topic as they arrive, with a generated client, and resumes after a lost connection.

ariadne-codegen --config ariadne-codegen.toml
NOROSHI_TOKEN=... python live.py [text to post]
"""

import asyncio
import os
import sys
from collections.abc import AsyncIterator

from noroshi_client import Noroshi, PostMessageInput, TopicEvents
from noroshi_client.exceptions import GraphQLClientGraphQLMultiError, GraphQLClientHttpError
from websockets.exceptions import ConnectionClosed, InvalidHandshake

URL = os.environ.get("NOROSHI_URL", "http://127.0.0.1:8000") + "/graphql"
SIGN_IN = {"authorization": f"Bearer {os.environ.get('NOROSHI_TOKEN')}"}
SIGN_IN_AGAIN = {4401, 4403}
"""Close codes after which a new token is needed."""


async def topic_events(client: Noroshi, topic_id: str) -> AsyncIterator[TopicEvents]:
    """Yields the events of a topic. After a lost connection it continues after the last event."""
    since = None
    while True:
        try:
            async for result in client.topic_events(topic_id, since):
                since = result.topic_events.cursor
                yield result
        except (OSError, ConnectionClosed, InvalidHandshake) as error:
            if isinstance(error, ConnectionClosed) and error.rcvd and error.rcvd.code in SIGN_IN_AGAIN:
                raise
            await asyncio.sleep(1)


async def main() -> None:
    """Signs in, then prints the events of the topic until Ctrl-C."""
    socket_url = URL.replace("http", "ws", 1)
    async with Noroshi(URL, SIGN_IN, ws_url=socket_url, ws_connection_init_payload=SIGN_IN) as client:
        signed_in = await client.viewer()
        print(f"Signed in as {signed_in.viewer.handle}.", flush=True)
        topics = [topic.id for community in signed_in.communities for topic in community.topics]
        topic_id = os.environ.get("NOROSHI_TOPIC") or topics[0]
        async for result in topic_events(client, topic_id):
            event = result.topic_events
            if event.typename__ == "StreamReady":
                print("Resumed." if event.resumed else "Live.", flush=True)
                if sys.argv[1:] and not event.resumed:
                    await client.post_message(PostMessageInput(topic_id=topic_id, text=sys.argv[1]))
            elif event.typename__ == "MessagePosted":
                print(f"{event.message.author.handle}: {event.message.text}", flush=True)


try:
    asyncio.run(main())
except GraphQLClientGraphQLMultiError as failure:
    sys.exit("\n".join(f"{error.extensions['code']}: {error}" for error in failure.errors if error.extensions))
except GraphQLClientHttpError as failure:
    # An answer with the status 401, for example, has the same errors in its body.
    sys.exit(
        "\n".join(f"{error['extensions']['code']}: {error['message']}" for error in failure.response.json()["errors"])
    )

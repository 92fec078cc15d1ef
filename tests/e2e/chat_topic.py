"""Creates a community with one topic, and uses both through the public API."""

import asyncio
import base64
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from tests.client import Client, SubscriptionSocket

IMAGE = "url width height blurhash"
MESSAGE = "id timestamp text stamp { id } editedAt deletedAt author { id } mentions { id } reactions { emoji count }"
TOPIC_EVENTS = f"""
    subscription ($topic: ID!, $since: Cursor) {{
      topicEvents(topicId: $topic, since: $since) {{
        __typename
        ... on Event {{ cursor at }}
        ... on StreamReady {{ resumed }}
        ... on MessagePosted {{ message {{ {MESSAGE} }} }}
        ... on MessageEdited {{ message {{ {MESSAGE} linkPreview {{ url title imageUrl image {{ {IMAGE} }} }} }} }}
        ... on MessageDeleted {{ message {{ {MESSAGE} }} }}
        ... on ReactionsChanged {{ message {{ {MESSAGE} }} }}
      }}
    }}
"""
POSTED_EVENTS = """
    subscription ($topic: ID!, $since: Cursor) {
      topicEvents(topicId: $topic, since: $since) {
        __typename
        ... on StreamReady { cursor resumed }
        ... on MessagePosted { cursor message { text timestamp } }
      }
    }
"""
PAGE_LIMIT = 999
EVENT_DEADLINE_S = 60.0

ReceivedEvent = dict[str, Any]


@dataclass(frozen=True)
class ChatTopic:
    """The ids of a community and of its topic."""

    community: str
    topic: str


async def create_chat_topic(founder: Client) -> ChatTopic:
    """Creates a community and a topic. The founder is a member of the community."""
    created = await founder.run('mutation { createCommunity(input: {name: "Hills"}) { id } }')
    community = created["createCommunity"]["id"]
    create = 'mutation ($id: ID!) { createTopic(input: {communityId: $id, title: "Watch"}) { id } }'
    return ChatTopic(community, (await founder.run(create, id=community))["createTopic"]["id"])


async def join(chat: ChatTopic, *people: Client) -> None:
    """Makes users join the community. They are members when this function returns."""
    for person in people:
        await person.run("mutation ($id: ID!) { joinCommunity(communityId: $id) { id } }", id=chat.community)


async def leave(chat: ChatTopic, person: Client) -> None:
    await person.run("mutation ($id: ID!) { leaveCommunity(communityId: $id) { id } }", id=chat.community)


async def post(chat: ChatTopic, author: Client, text: str, key: str | None = None) -> dict[str, Any]:
    """Posts a message and returns it."""
    mutation = f"mutation ($input: PostMessageInput!) {{ postMessage(input: $input) {{ {MESSAGE} }} }}"
    message_input = {"topicId": chat.topic, "text": text, "idempotencyKey": key}
    message: dict[str, Any] = (await author.run(mutation, input=message_input))["postMessage"]
    return message


async def post_several(chat: ChatTopic, author: Client, texts: Sequence[str]) -> list[dict[str, Any]]:
    """Posts at most 15 messages in one request, in the given order."""
    inputs = ", ".join(f"$i{n}: PostMessageInput!" for n in range(len(texts)))
    fields = " ".join(f"m{n}: postMessage(input: $i{n}) {{ text timestamp }}" for n in range(len(texts)))
    variables = {f"i{n}": {"topicId": chat.topic, "text": text} for n, text in enumerate(texts)}
    return list((await author.run(f"mutation ({inputs}) {{ {fields} }}", **variables)).values())


async def run_mutation(person: Client, mutation: str, **variables: str) -> dict[str, Any]:
    """Runs a mutation such as `deleteMessage(id: $id)`, and returns its field."""
    types = {"id": "ID!", "messageId": "ID!", "userId": "ID!", "text": "String!", "emoji": "String!"}
    declared = ", ".join(f"${name}: {types[name]}" for name in variables)
    data = await person.run(f"mutation ({declared}) {{ changed: {mutation} {{ id }} }}", **variables)
    changed: dict[str, Any] = data["changed"]
    return changed


async def all_messages(chat: ChatTopic, reader: Client, fields: str = MESSAGE) -> list[dict[str, Any]]:
    """Returns all messages that are visible to the reader. Reads page by page, beginning with the oldest."""
    query = f"""
        query ($topic: ID!, $oldest: Timestamp!, $limit: Int!) {{
          messages(topicId: $topic, oldest: $oldest, inclusive: false, limit: $limit) {{
            hasNewer newest items {{ {fields} }}
          }}
        }}
    """
    items: list[dict[str, Any]] = []
    page = {"hasNewer": True, "newest": "0.000000"}
    while page["hasNewer"]:
        data = await reader.run(query, topic=chat.topic, oldest=page["newest"], limit=PAGE_LIMIT)
        page = data["messages"]
        items += data["messages"]["items"]
    return items


@asynccontextmanager
async def subscribed(
    chat: ChatTopic, person: Client, since: str | None = None, document: str = TOPIC_EVENTS
) -> AsyncIterator[tuple[SubscriptionSocket, ReceivedEvent]]:
    """Opens a socket, subscribes to the topic, and yields the socket with the StreamReady event."""
    async with person.socket() as socket:
        await socket.subscribe(document, topic=chat.topic, since=since)
        async with asyncio.timeout(EVENT_DEADLINE_S):
            ready = await socket.next_event()
        assert ready["__typename"] == "StreamReady"
        yield socket, ready


async def events(socket: SubscriptionSocket, count: int, deadline_s: float = EVENT_DEADLINE_S) -> list[ReceivedEvent]:
    """Returns the next `count` events."""
    async with asyncio.timeout(deadline_s):
        return [await socket.next_event() for _ in range(count)]


def cursor_position(cursor: str) -> int:
    """Returns the number of the cursor's event in its stream. Only tests may decode a cursor."""
    return int(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)).rpartition(b".")[2])

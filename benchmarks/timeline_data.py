"""Data of the timeline benchmark: topics with messages of many authors, and requests for their pages."""

import itertools
import random
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from benchmarks.load import post_request
from benchmarks.servers import ORGANIZATION, DatabaseServers
from storage.chat.communities import NewCommunity
from storage.chat.records import Topic
from storage.mongo import Document
from storage.mongo.text_index.names import search_terms
from storage.stores import Stores, open_stores
from storage.timeline import format_timestamp

VIEWER = "viewer"
"""This viewer reacted to every message that has reactions. The other readers reacted to none."""

READERS = 256
AUTHORS = 200
TOPICS, MESSAGES = 40, 1500
PAGE_SIZE = 50
INSERTED_AT_ONCE = 5000
EMOJIS = "🔥👍🎉"
REACTED_SHARE = 0.3
"""Share of messages with reactions."""

TEXT = "The beacon on the next hill is lit: pass it on, and keep yours burning until the one after it answers."
QUERY = """query($topicId: ID!, $latest: Timestamp!) { messages(topicId: $topicId, latest: $latest, limit: 50) {
  items { id timestamp text author { id handle name } reactions { emoji count reacted } } hasOlder hasNewer } }"""


@dataclass(frozen=True)
class TimelineData:
    """Topics with the same timestamps in each."""

    stores: Stores
    topics: list[Topic]
    timestamps: list[int]
    tokens: list[str]

    def random_page_requests(self, count: int, readers: int = 1) -> list[str]:
        """Returns requests of so many readers for random pages of all topics but the first."""
        rng = random.Random(count)
        pages = [(rng.choice(self.topics[1:]), rng.choice(self.timestamps[PAGE_SIZE:])) for _ in range(count)]
        tokens = itertools.cycle(self.tokens[:readers])
        return [self.request(topic, format_timestamp(latest), token=next(tokens)) for topic, latest in pages]

    def newest_page_requests(self, readers: int) -> list[str]:
        """Returns one request of each reader, with the reader's token, for the newest page of the first topic."""
        return [self.request(self.topics[0], "now", token=token) for token in self.tokens[:readers]]

    def request(self, topic: Topic, latest: str, limit: int = PAGE_SIZE, token: str = "") -> str:
        """Returns a request for the page that ends at `latest`, by default with the token of the first reader."""
        query = QUERY.replace("limit: 50", f"limit: {limit}")
        return post_request("/graphql", token or self.tokens[0], query, {"topicId": topic.id, "latest": latest})

    async def create_topic(self, messages: int) -> "TimelineData":
        """Stores a new topic with `messages` messages. Returns data that hold this topic only."""
        founder = await self.stores.users.get(ORGANIZATION, VIEWER)
        community = await self.stores.communities.get(ORGANIZATION, self.topics[0].community_id)
        topic = await self.stores.topics.create(community, founder.id, f"Smoke of {messages}", None)
        timestamps = [self.timestamps[-1] - 1_000_000 * (messages - number) for number in range(messages)]
        for start in range(0, messages, INSERTED_AT_ONCE):
            await _fill_topic(self.stores, topic.id, timestamps[start : start + INSERTED_AT_ONCE])
        return replace(self, topics=[topic], timestamps=timestamps)


@asynccontextmanager
async def timeline_data(servers: DatabaseServers) -> AsyncIterator[TimelineData]:
    """Fills the empty database of new servers with topics and messages. Yields the data."""
    async with open_stores(servers.mongodb_uri, servers.redis_url, servers.database) as stores:
        await stores.mongo["users"].insert_many([_user(f"user{number}") for number in range(AUTHORS)])
        founder = await stores.users.sign_in(ORGANIZATION, VIEWER, [], VIEWER, VIEWER)
        community = await stores.communities.create(NewCommunity(ORGANIZATION, "Hilltops", ""), founder, None)
        readers = [VIEWER, *(f"reader{number}" for number in range(1, READERS))]
        for reader in readers[1:]:
            await stores.communities.join(
                community, await stores.users.sign_in(ORGANIZATION, reader, [], reader, reader)
            )
        now_us = int(time.time() * 1000) * 1000
        timestamps = [now_us - 1_000_000 * (MESSAGES - number) for number in range(MESSAGES)]
        topics = []
        for number in range(TOPICS):
            topic = await stores.topics.create(community, founder.id, f"Smoke {number}", None)
            await _fill_topic(stores, topic.id, timestamps)
            topics.append(topic)
        yield TimelineData(stores, topics, timestamps, [servers.token(reader) for reader in readers])


async def _fill_topic(stores: Stores, topic_id: str, timestamps: list[int]) -> None:
    rng = random.Random(topic_id)
    messages = [_message(rng, topic_id, timestamp) for timestamp in timestamps]
    reactions = [
        {"_id": {"t": topic_id, "ts": message["_id"]["ts"], "e": each["emoji"], "u": user}, "at": datetime.now(UTC)}
        for message in messages
        for each in message.get("reactions", ())
        for user in (VIEWER, *(f"user{number}" for number in range(each["count"])))[: each["count"]]
    ]
    await stores.mongo["messages"].insert_many(messages)
    await stores.mongo["reactions"].insert_many(reactions)
    end = {"last": timestamps[-1], "n": len(timestamps)}
    await stores.mongo["topics"].update_one({"_id": topic_id}, {"$set": end})


def _message(rng: random.Random, topic_id: str, timestamp: int) -> Document:
    emojis = EMOJIS[: rng.randint(1, len(EMOJIS))] if rng.random() < REACTED_SHARE else ""
    document: Document = {
        "_id": {"t": topic_id, "ts": timestamp},
        "author": f"user{rng.randrange(AUTHORS)}",
        "text": TEXT,
    }
    if emojis:
        document["reactions"] = [{"emoji": emoji, "count": rng.randint(1, 3)} for emoji in emojis]
    return document


def _user(id_: str) -> Document:
    names: Document = {"handle": id_, "name": id_, "search": search_terms(id_, id_)}
    counts: Document = {"roles": ["MEMBER"], "followers": 0, "following": 0}
    return {"_id": {"org": ORGANIZATION, "id": id_}, **names, **counts, "at": datetime.now(UTC)}

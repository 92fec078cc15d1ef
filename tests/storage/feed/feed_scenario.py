"""The scenario of feed tests: a new organization whose users post."""

import asyncio
import secrets
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

import storage.feed.feeds
import storage.feed.follows
import storage.feed.home
import storage.feed.relays
import storage.feed.trimming
from storage.feed.changes import NewPost
from storage.feed.home import FeedReader, HomeFeedStore
from storage.feed.records import Post
from storage.mongo import Document
from storage.stores import Stores
from storage.streams.log import Event, Stream
from tests.waiting import poll_until_true


@dataclass(frozen=True)
class FeedScenario:
    """One process's access to an organization that no other test uses."""

    stores: Stores
    organization_id: str = field(default_factory=lambda: f"$org/{secrets.token_hex(6)}")

    def with_stores(self, stores: Stores) -> "FeedScenario":
        return replace(self, stores=stores)

    async def sign_in(self, *names: str) -> None:
        """Signs users in."""
        for name in names:
            await self.stores.users.sign_in(self.organization_id, name, (), name.title(), None)

    async def subscribe(self, *readers: str) -> None:
        """Records that the readers are subscribed to their home streams."""
        for reader in readers:
            await self.stores.home_subscribers.record(self.organization_id, reader)

    def new_post(self, author: str = "ann", text: str = "hello", source: str | None = None, **more: Any) -> NewPost:
        arguments = {"media": (), "mention_ids": (), "hashtags": (), **more}
        return NewPost(self.organization_id, author, text, source=source, **arguments)

    async def post(self, author: str = "ann", text: str = "hello", **more: Any) -> Post:
        return await self.stores.posts.create(self.new_post(author, text, **more))

    async def events(self, stream: Stream) -> list[Event]:
        """Waits until the stream's outbox rows are relayed. Returns its events, whose numbers must have no gap."""
        await self.wait_for_relays(stream)
        events = await self.stores.events.read(stream, 0, limit=100_000)
        assert [event.n for event in events] == list(range(1, len(events) + 1))
        return events

    async def wait_for_relays(self, *streams: Stream) -> None:
        """Waits until no outbox row is left for the streams."""
        names = [stream.name for stream in streams]

        async def are_relayed() -> bool:
            return not await self.stores.mongo["outbox"].count_documents({"stream": {"$in": names}})

        assert await poll_until_true(are_relayed)

    async def backdate(self, collection: str, field_name: str, query: Document | None = None, days: int = 1) -> None:
        """Sets a date field of the organization's matching documents to `days` ago."""
        documents = {"_id.o": self.organization_id, field_name: {"$type": "date"}, **(query or {})}
        past = {"$subtract": ["$$NOW", days * 86_400_000]}
        await self.stores.mongo[collection].update_many(documents, [{"$set": {field_name: past}}])

    async def refuse_writes_of(self, collection: str, *users: str | None) -> None:
        """Makes MongoDB refuse documents of these users. `None` makes it accept all documents again."""
        validator = {} if None in users else {"_id.u": {"$nin": list(users)}}
        await self.stores.mongo.database.command("collMod", collection, validator=validator)

    async def documents(self, collection: str) -> list[Document]:
        """Returns the organization's documents in a collection, by id."""
        cursor = self.stores.mongo[collection].find({"_id.o": self.organization_id}).sort("_id", 1)
        return await cursor.to_list(None)


async def gather_list(*work: Any) -> list[Any]:
    """Awaits all awaitables concurrently. Returns the results as a list."""
    return list(await asyncio.gather(*work))


def limit_feeds(monkeypatch: pytest.MonkeyPatch, items: int) -> None:
    """Limits feeds to so many items, and trims about every second time instead of once in 64 posts."""
    for module in (storage.feed.trimming, storage.feed.follows, storage.feed.home):
        monkeypatch.setattr(module, "MAX_ITEMS", items)
    for module in (storage.feed.trimming, storage.feed.feeds, storage.feed.relays):
        monkeypatch.setattr(module, "TRIM_EVERY", 2)


async def load_reader(home: HomeFeedStore, organization_id: str, reader_id: str, hidden: frozenset[str]) -> FeedReader:
    """Returns the reader of a home feed."""
    return FeedReader(organization_id, reader_id, hidden, await home.merged_followees(organization_id, reader_id))

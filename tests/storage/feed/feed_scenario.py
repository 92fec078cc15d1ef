"""The scenario of feed tests: an organization of its own, with users who post."""

import asyncio
import secrets
from dataclasses import dataclass, field, replace
from typing import Any

from storage.feed.changes import NewPost
from storage.feed.records import Post
from storage.mongo import Document
from storage.stores import Stores
from storage.streams.log import Event, Stream
from tests.storage.topic_scenario import poll_until_true


@dataclass(frozen=True)
class FeedScenario:
    """One process's access to an organization that no other test uses."""

    stores: Stores
    organization_id: str = field(default_factory=lambda: f"$org/{secrets.token_hex(6)}")

    def through(self, stores: Stores) -> "FeedScenario":
        return replace(self, stores=stores)

    async def sign_in(self, *names: str) -> None:
        """Signs users in."""
        for name in names:
            await self.stores.users.sign_in(self.organization_id, name, (), name.title(), None)

    def new_post(self, author: str = "ann", text: str = "hello", source: str | None = None, **more: Any) -> NewPost:
        given = {"media": (), "mention_ids": (), "hashtags": (), **more}
        return NewPost(self.organization_id, author, text, source=source, **given)

    async def post(self, author: str = "ann", text: str = "hello", **more: Any) -> Post:
        return await self.stores.posts.create(self.new_post(author, text, **more))

    async def events(self, stream: Stream) -> list[Event]:
        """Returns the stream's events after its outbox rows were relayed; asserts that their numbers have no gap."""
        await self.wait_for_relays(stream)
        found = await self.stores.events.read(stream, 0, limit=100_000)
        assert [event.n for event in found] == list(range(1, len(found) + 1))
        return found

    async def wait_for_relays(self, *streams: Stream) -> None:
        """Waits until no outbox row is left for the streams."""
        names = [stream.name for stream in streams]

        async def relayed() -> bool:
            return not await self.stores.mongo["outbox"].count_documents({"stream": {"$in": names}})

        assert await poll_until_true(relayed)

    async def backdate(self, collection: str, name: str, wanted: Document | None = None, days: int = 1) -> None:
        """Moves an instant of the organization's documents into the past, as if `days` had passed."""
        documents = {"_id.o": self.organization_id, name: {"$type": "date"}, **(wanted or {})}
        past = {"$subtract": ["$$NOW", days * 86_400_000]}
        await self.stores.mongo[collection].update_many(documents, [{"$set": {name: past}}])

    async def refuse_writes_of(self, collection: str, *users: str | None) -> None:
        """Makes MongoDB refuse documents of these users. None among them lifts the refusal."""
        validator = {} if None in users else {"_id.u": {"$nin": list(users)}}
        await self.stores.mongo.database.command("collMod", collection, validator=validator)

    async def documents(self, collection: str) -> list[Document]:
        found = self.stores.mongo[collection].find({"_id.o": self.organization_id}).sort("_id", 1)
        return await found.to_list(None)


async def gather_list(*work: Any) -> list[Any]:
    return list(await asyncio.gather(*work))

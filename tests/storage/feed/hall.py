"""Where feed tests take place: an organization of its own, and its people's posts."""

import asyncio
import secrets
from dataclasses import dataclass, field, replace
from typing import Any

from storage.feed.changes import NewPost
from storage.feed.records import Post
from storage.mongo import Document
from storage.stores import Stores
from storage.streams.log import Event, Stream
from tests.storage.places import soon


@dataclass(frozen=True)
class Hall:
    """One process's way to an organization that nobody else uses."""

    stores: Stores
    organization_id: str = field(default_factory=lambda: f"$org/{secrets.token_hex(6)}")

    def through(self, stores: Stores) -> "Hall":
        return replace(self, stores=stores)

    async def enter(self, *names: str) -> None:
        """Signs people in."""
        for name in names:
            await self.stores.users.sign_in(self.organization_id, name, (), name.title(), None)

    def new(self, author: str = "ann", text: str = "hello", source: str | None = None, **more: Any) -> NewPost:
        given = {"media": (), "mention_ids": (), "hashtags": (), **more}
        return NewPost(self.organization_id, author, text, source=source, **given)

    async def post(self, author: str = "ann", text: str = "hello", **more: Any) -> Post:
        return await self.stores.posts.create(self.new(author, text, **more))

    async def events(self, stream: Stream) -> list[Event]:
        """The stream's events, once nothing waits for it any more; their numbers have no gap."""
        await self.settled(stream)
        found = await self.stores.events.read(stream, 0, limit=100_000)
        assert [event.n for event in found] == list(range(1, len(found) + 1))
        return found

    async def settled(self, *streams: Stream) -> None:
        """Waits until what was left for the streams was moved."""
        names = [stream.name for stream in streams]

        async def moved() -> bool:
            return not await self.stores.mongo["outbox"].count_documents({"stream": {"$in": names}})

        assert await soon(moved)

    async def expire(self, collection: str, name: str, wanted: Document | None = None, days: int = 1) -> None:
        """Lets an instant of the organization's documents lie in the past, as if so much time had gone by."""
        documents = {"_id.o": self.organization_id, name: {"$type": "date"}, **(wanted or {})}
        past = {"$subtract": ["$$NOW", days * 86_400_000]}
        await self.stores.mongo[collection].update_many(documents, [{"$set": {name: past}}])

    async def refuse(self, collection: str, *users: str | None) -> None:
        """Makes the database refuse documents of these users, each by itself; of nobody when None is named."""
        validator = {} if None in users else {"_id.u": {"$nin": list(users)}}
        await self.stores.mongo.database.command("collMod", collection, validator=validator)

    async def documents(self, collection: str) -> list[Document]:
        found = self.stores.mongo[collection].find({"_id.o": self.organization_id}).sort("_id", 1)
        return await found.to_list(None)


async def together(*work: Any) -> list[Any]:
    return list(await asyncio.gather(*work))

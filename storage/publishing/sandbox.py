"""What the built-in twin has published: one document a key, so that the same key is there once."""

from dataclasses import dataclass
from datetime import UTC, datetime

from pymongo import ReturnDocument

from storage.ids import new_id
from storage.mongo import Document, Mongo


@dataclass(frozen=True, slots=True)
class SandboxPost:
    """A post in the sandbox."""

    id: str
    account_id: str
    text: str


class SandboxStore:
    """The sandbox's own ledger."""

    def __init__(self, mongo: Mongo) -> None:
        self._posts = mongo["sandbox_posts"]

    async def publish(self, account_id: str, key: str, text: str) -> SandboxPost:
        """The post of this key, made when it is new."""
        fresh = {"$setOnInsert": {"id": new_id(), "text": text, "at": datetime.now(UTC)}}
        id_ = {"account": account_id, "key": key}
        row: Document | None = await self._posts.find_one_and_update(
            {"_id": id_}, fresh, upsert=True, return_document=ReturnDocument.AFTER
        )
        assert row is not None
        return SandboxPost(row["id"], account_id, row["text"])

    async def posts(self, account_id: str) -> list[SandboxPost]:
        """What was published, in the order of publishing."""
        low, high = {"account": account_id}, {"account": account_id, "key": "\U0010ffff"}
        rows = self._posts.find({"_id": {"$gte": low, "$lte": high}}).sort("at", 1)
        return [SandboxPost(row["id"], account_id, row["text"]) async for row in rows]

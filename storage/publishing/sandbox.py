"""Posts of the built-in sandbox network: one document for each key, so that a repeated key publishes once."""

from dataclasses import dataclass
from datetime import UTC, datetime

from pymongo import ReturnDocument
from pymongo.asynchronous.collection import AsyncCollection

from storage.ids import new_id
from storage.mongo import Mongo
from storage.publishing.documents import SandboxPostDocument


@dataclass(frozen=True, slots=True)
class SandboxPost:
    """A post that the sandbox has published."""

    id: str
    account_id: str
    text: str


class SandboxStore:
    """Stores the posts of the sandbox network."""

    def __init__(self, mongo: Mongo) -> None:
        self._posts: AsyncCollection[SandboxPostDocument] = mongo["sandbox_posts"]

    async def publish(self, account_id: str, key: str, text: str) -> SandboxPost:
        """Returns the post of this key. Creates the post if the key is new."""
        new_post = {"$setOnInsert": {"id": new_id(), "text": text, "at": datetime.now(UTC)}}
        id_ = {"account": account_id, "key": key}
        document = await self._posts.find_one_and_update(
            {"_id": id_}, new_post, upsert=True, return_document=ReturnDocument.AFTER
        )
        assert document is not None
        return SandboxPost(document["id"], account_id, document["text"])

    async def posts(self, account_id: str) -> list[SandboxPost]:
        """Returns the account's posts, oldest first."""
        low, high = {"account": account_id}, {"account": account_id, "key": "\U0010ffff"}
        documents = self._posts.find({"_id": {"$gte": low, "$lte": high}}).sort("at", 1)
        return [SandboxPost(each["id"], account_id, each["text"]) async for each in documents]

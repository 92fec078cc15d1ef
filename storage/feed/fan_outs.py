"""Fan-outs: how far each post is on its way into the followers' home feeds."""

from collections.abc import Sequence

from storage.feed.records import FanOut, PostKey, fan_out_record
from storage.gather import Gather
from storage.mongo import Mongo


class FanOutStore:
    """Reads the progress."""

    def __init__(self, mongo: Mongo) -> None:
        self._fan_outs = mongo["fan_outs"]
        self._by_key: Gather[PostKey, FanOut] = Gather(self._load)

    async def find(self, key: PostKey) -> FanOut | None:
        """The post's fan-out, or None."""
        return await self._by_key.get(key)

    async def by_timestamp(self, organization_id: str, timestamps: Sequence[int]) -> dict[int, FanOut]:
        """The fan-outs of the organization's posts, by the posts' timestamps."""
        found = await self._load([PostKey(organization_id, timestamp) for timestamp in timestamps])
        return {key.timestamp: fan_out for key, fan_out in found.items()}

    async def _load(self, keys: Sequence[PostKey]) -> dict[PostKey, FanOut]:
        cursor = self._fan_outs.find({"_id": {"$in": [key.document_id for key in keys]}})
        fan_outs = [fan_out_record(document) async for document in cursor]
        return {fan_out.key: fan_out for fan_out in fan_outs}

"""Fan-outs: the progress of pushing each post into the followers' home feeds, guarded by a fence.

A worker claims a fan-out for some seconds, and stores every step by compare-and-set on the claim's fence. After the
claim has expired, another worker can claim the fan-out. Steps of the first worker then change nothing.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pymongo import ReturnDocument, UpdateOne

from storage.feed.documents import FanOutDocument
from storage.feed.records import FanOut, fan_out_record
from storage.ids import PostKey
from storage.mongo import Document, Mongo, Session, due_filter, seconds_from_now
from storage.mongo.batch_loader import BatchLoader
from storage.streams.log import jobs_stream
from storage.streams.outbox import Outbox, add_rows

LEASE_S = 5.0
EMIT_EVERY_S = 1.0
MAX_TRIES = 5
FIRST_RETRY_S = 0.25


@dataclass(frozen=True, slots=True)
class FanOutClaim:
    """A worker's right to continue a fan-out. `after` is the last follower that was processed."""

    key: PostKey
    author_id: str
    task: str
    after: str
    fence: int


@dataclass(frozen=True, slots=True)
class FanOutRetry:
    """Readers of one post whose insert failed. `tries` has the number of failures by reader id."""

    key: PostKey
    tries: Mapping[str, int]


class FanOutStore:
    """Reads and advances fan-outs."""

    def __init__(self, mongo: Mongo, outbox: Outbox) -> None:
        self._mongo = mongo
        self._outbox = outbox
        self._fan_outs = mongo["fan_outs"]
        self._retries = mongo["feed_retries"]
        self._by_key: BatchLoader[PostKey, FanOut] = BatchLoader(self._load)

    async def find(self, key: PostKey) -> FanOut | None:
        """Returns the post's fan-out, or None."""
        return await self._by_key.get(key)

    async def find_many(self, keys: Iterable[PostKey]) -> Mapping[PostKey, FanOut]:
        """Returns those of the posts' fan-outs that exist."""
        return await self._by_key.find(keys)

    async def by_timestamp(self, organization_id: str, timestamps: Sequence[int]) -> dict[int, FanOut]:
        """Returns fan-outs of the organization by the timestamps of their posts."""
        fan_outs = await self._load([PostKey(organization_id, timestamp) for timestamp in timestamps])
        return {key.timestamp: fan_out for key, fan_out in fan_outs.items()}

    async def unclaimed(self, limit: int) -> list[PostKey]:
        """Returns fan-outs with followers left to process that no worker has claimed, the oldest first."""
        query = {"open": True, "processed": False, "$expr": {"$lt": ["$lease_until", "$$NOW"]}}
        cursor = self._fan_outs.find(query, {"_id": 1}).sort("at", 1).limit(limit)
        return [_key(fan_out) for fan_out in await cursor.to_list(None)]

    async def claim(self, key: PostKey) -> FanOutClaim | None:
        """Claims a fan-out for 5 s, which each step extends. Returns None if it is claimed or has no followers left."""
        query = {"_id": key.document_id, "open": True, "processed": False, "$expr": {"$lt": ["$lease_until", "$$NOW"]}}
        running = {"$cond": [{"$eq": ["$task", "push"]}, "RUNNING", "$state"]}
        update = {"fence": {"$add": ["$fence", 1]}, "lease_until": seconds_from_now(LEASE_S), "state": running}
        # A worker that was killed may have left a transaction that locks the fan-out.
        fan_out: FanOutDocument | None = await self._mongo.write_past_orphans(
            lambda: self._fan_outs.find_one_and_update(query, [{"$set": update}], return_document=ReturnDocument.AFTER)
        )
        return (
            None
            if fan_out is None
            else FanOutClaim(key, fan_out["author"], fan_out["task"], fan_out["next"], fan_out["fence"])
        )

    async def release(self, claim: FanOutClaim) -> None:
        """Ends the claim, so that another worker can continue at once."""
        query = {"_id": claim.key.document_id, "fence": claim.fence}
        await self._fan_outs.update_one(query, {"$set": {"lease_until": None}})

    async def advance(
        self, claim: FanOutClaim, after: str, is_last: bool, delivered: int = 0, failed: Collection[str] = ()
    ) -> FanOutClaim | None:
        """Stores in one transaction that the followers up to `after` were processed, and a retry for each of `failed`.

        `is_last` says that no follower comes after `after`. Returns the advanced claim, or None if another worker has
        claimed the fan-out or this claim was advanced before. Progress is emitted at most once a second, and when the
        fan-out finishes.
        """

        async def work(session: Session) -> FanOutDocument | None:
            progress = {"next": {"$literal": after}, "processed": is_last, "lease_until": seconds_from_now(LEASE_S)}
            is_current = {"fence": claim.fence, "next": claim.after}
            fan_out = await self._advance(claim.key, is_current, progress, delivered, 0, len(failed), session)
            if fan_out is not None and failed:
                await self._retries.bulk_write([_first_retry(claim.key, each) for each in failed], session=session)
            return fan_out

        fan_out = await self._transact(claim.key, work)
        return None if fan_out is None else FanOutClaim(claim.key, claim.author_id, claim.task, after, claim.fence)

    async def due_retries(self, limit: int) -> list[FanOutRetry]:
        """Returns the retries that are due, grouped by post."""
        query = due_filter("due")
        tries_by_post: dict[PostKey, dict[str, int]] = {}
        async for retry in self._retries.find(query).sort("due", 1).limit(limit):
            tries_by_post.setdefault(_key(retry), {})[retry["_id"]["u"]] = retry["tries"]
        return [FanOutRetry(key, tries) for key, tries in tries_by_post.items()]

    async def store_retry_outcomes(self, retry: FanOutRetry, failed: Collection[str]) -> None:
        """Stores which retried inserts succeeded and which `failed`. A reader counts as failed after five retries."""

        async def work(session: Session) -> FanOutDocument | None:
            succeeded = {"_id": {"$in": _ids(retry.key, retry.tries.keys() - set(failed))}}
            delivered = (await self._retries.delete_many(succeeded, session=session)).deleted_count
            abandoned = 0
            for reader_id in failed:
                tries = retry.tries[reader_id]
                query = {"_id": {**retry.key.document_id, "u": reader_id}, "tries": tries, "due": {"$exists": True}}
                updated = await self._retries.update_one(query, _next_retry(tries), session=session)
                abandoned += updated.modified_count if tries >= MAX_TRIES else 0
            return await self._advance(
                retry.key, {"task": "push"}, {}, delivered, abandoned, -delivered - abandoned, session
            )

        await self._transact(retry.key, work)

    async def delete_retries(self, key: PostKey) -> None:
        """Deletes the retries of a deleted post."""
        owner = key.document_id
        await self._retries.delete_many({"_id": {"$gte": {**owner, "u": ""}, "$lt": {**owner, "u": "\U0010ffff"}}})

    async def _advance(
        self,
        key: PostKey,
        condition: Document,
        progress: Document,
        delivered: int,
        failed: int,
        retrying: int,
        session: Session,
    ) -> FanOutDocument | None:
        counts = {"delivered": delivered, "failed": failed, "retrying": retrying}
        fields = {**progress, **{name: {"$add": [f"${name}", count]} for name, count in counts.items()}}
        fan_out: FanOutDocument | None = await self._fan_outs.find_one_and_update(
            {"_id": key.document_id, **condition},
            [{"$set": fields}, *_DERIVED_FIELDS],
            return_document=ReturnDocument.AFTER,
            session=session,
        )
        if fan_out is not None and fan_out.get("emitted_at") == fan_out["advanced_at"]:
            await add_rows(self._mongo, jobs_stream(key.organization_id), "FanOutChanged", [key.timestamp], session)
        return fan_out

    async def _transact(self, key: PostKey, work: Any) -> FanOutDocument | None:
        fan_out: FanOutDocument | None = await self._mongo.transact(work)
        if fan_out is not None and fan_out.get("emitted_at") == fan_out["advanced_at"]:
            self._outbox.nudge(jobs_stream(key.organization_id).name)
        return fan_out

    async def _load(self, keys: Sequence[PostKey]) -> dict[PostKey, FanOut]:
        query = {"_id": {"$in": [key.document_id for key in keys]}}
        fan_outs = [fan_out_record(document) for document in await self._mongo.find("fan_outs", query)]
        return {fan_out.key: fan_out for fan_out in fan_outs}


_IS_PUSH: Document = {"$eq": ["$task", "push"]}
_IS_DONE: Document = {"$and": ["$processed", {"$lte": ["$retrying", 0]}]}
_MAY_EMIT: Document = {"$lt": ["$emitted_at", {"$subtract": ["$$NOW", int(EMIT_EVERY_S * 1000)]}]}
_MUST_EMIT: Document = {"$and": [_IS_PUSH, {"$or": [_MAY_EMIT, {"$not": ["$open"]}]}]}
_DERIVED_FIELDS: list[Document] = [
    {"$set": {"open": {"$not": [_IS_DONE]}, "advanced_at": "$$NOW"}},
    {"$set": {"state": {"$cond": [{"$and": [_IS_PUSH, "$open"]}, "RUNNING", "COMPLETED"]}}},
    {"$set": {"emitted_at": {"$cond": [_MUST_EMIT, "$$NOW", "$emitted_at"]}}},
    {"$set": {"total": {"$cond": ["$open", "$total", {"$add": ["$delivered", "$failed"]}]}}},
]
"""Stages that derive from the counts whether the fan-out is finished, and whether its progress must be emitted."""


def _key(document: Document) -> PostKey:
    return PostKey(document["_id"]["o"], document["_id"]["ts"])


def _ids(key: PostKey, reader_ids: Collection[str]) -> list[Document]:
    return [{**key.document_id, "u": reader_id} for reader_id in reader_ids]


def _first_retry(key: PostKey, reader_id: str) -> UpdateOne:
    fields = {"tries": 1, "due": seconds_from_now(FIRST_RETRY_S)}
    return UpdateOne({"_id": {**key.document_id, "u": reader_id}}, [{"$set": fields}], upsert=True)


def _next_retry(tries: int) -> list[Document]:
    """Returns the update that schedules the next retry, with a growing delay. After the fifth retry, ends retrying."""
    if tries >= MAX_TRIES:
        return [{"$set": {"failed_at": "$$NOW"}}, {"$unset": "due"}]
    return [{"$set": {"tries": tries + 1, "due": seconds_from_now(FIRST_RETRY_S * 2**tries)}}]

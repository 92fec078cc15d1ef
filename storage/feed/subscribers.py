"""Subscribers of home streams and lists: events are added only to streams that were subscribed to lately.

Events are kept for 24 h, so an older cursor cannot be resumed in any case. If a reader was not subscribed for 26 h, the
next subscription gives the stream a new epoch. If the reader was not subscribed for 27 h, the stream gets no events.
The same holds for the local feed and for each hashtag, whose subscribers share a stream.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from storage.feed.documents import OrganizationUserId
from storage.feed.records import home_stream
from storage.feed.trimming import FEEDS
from storage.mongo import Mongo, Session, older_than
from storage.streams.log import KEPT_S, Stream, reset_stream

STREAMS = "streams"

RENEWED_AFTER_S = 1800.0
"""Age of the stored subscription time from which `record` writes it again."""

RESET_AFTER_S = KEPT_S + 2 * 3600.0
"""A new subscription resets the stream if the reader's stored subscription time is older.

Open subscriptions call `record` every hour, so the stored time of a subscriber who resumes within 24 h is younger.
"""

EMIT_FOR_S = RESET_AFTER_S + 3600.0
"""No events are added if the reader's stored subscription time is older.

This is an hour longer than RESET_AFTER_S. So a stream that lacks events is reset although the clock of a new primary is
up to an hour behind.
"""


class _SubscriptionTimes:
    """When each stream was last subscribed to, exact to the hour, in a field of a collection's documents."""

    def __init__(self, mongo: Mongo, collection: str, defaults: Mapping[str, object]) -> None:
        """`defaults` are fields of the documents that a first subscription sets."""
        self._mongo = mongo
        self._collection = collection
        self._defaults = defaults

    async def record(self, id_: object, stream: Stream) -> None:
        """Records a subscription. Resets the stream if nobody was subscribed for 26 h."""
        age_s = await self._age_s(id_)
        if age_s > RESET_AFTER_S:
            await self._mongo.transact(partial(self._begin, id_, stream))
        elif age_s > RENEWED_AFTER_S:
            await self._set(id_)

    async def among(self, ids: Sequence[object], session: Session | None = None) -> list[Any]:
        """Returns those of the ids to whose streams events are added."""
        recorded = {"_id": {"$in": list(ids)}, "$nor": [older_than("subscribed_at", EMIT_FOR_S)]}
        documents = await self._mongo.find(self._collection, recorded, {"_id": 1}, session=session)
        return [document["_id"] for document in documents]

    async def _begin(self, id_: object, stream: Stream, session: Session) -> None:
        """Records the subscription and resets the stream, unless a concurrent subscription did both."""
        if await self._age_s(id_, session) > RESET_AFTER_S:
            await reset_stream(self._mongo, stream, session)
            await self._set(id_, session)

    async def _age_s(self, id_: object, session: Session | None = None) -> float:
        """Returns the age of the last record; infinity if there is none."""
        age = {"age_ms": {"$subtract": ["$$NOW", "$subscribed_at"]}}
        found = await self._mongo.find(self._collection, {"_id": id_}, age, session=session)
        age_ms = found[0].get("age_ms") if found else None
        return float("inf") if age_ms is None else age_ms / 1000

    async def _set(self, id_: object, session: Session | None = None) -> None:
        fields = {"subscribed_at": "$$NOW", **self._defaults}
        await self._mongo[self._collection].update_one({"_id": id_}, [{"$set": fields}], upsert=True, session=session)


class HomeSubscribers:
    """Records in each reader's feed when they were last subscribed to their home stream, exact to the hour."""

    def __init__(self, mongo: Mongo) -> None:
        self._times = _SubscriptionTimes(mongo, FEEDS, {"seen_at": {"$ifNull": ["$seen_at", "$$NOW"]}})

    async def record(self, organization_id: str, reader_id: str) -> None:
        """Records the reader's subscription. Call it before reading the head of the stream, and then every hour.

        Resets the stream if the reader was not subscribed for 26 h, so that earlier cursors are not resumed.
        """
        owner: OrganizationUserId = {"o": organization_id, "u": reader_id}
        await self._times.record(owner, home_stream(organization_id, reader_id))

    async def among(self, organization_id: str, reader_ids: Sequence[str]) -> list[str]:
        """Returns the readers to whose home stream events are added."""
        owners: list[OrganizationUserId] = [{"o": organization_id, "u": reader_id} for reader_id in reader_ids]
        return [owner["u"] for owner in await self._times.among(owners)]


class ListSubscribers:
    """Records in the heads of the local feed's and hashtags' streams when somebody was last subscribed, to the hour."""

    def __init__(self, mongo: Mongo) -> None:
        self._times = _SubscriptionTimes(mongo, STREAMS, {})

    async def record(self, stream: Stream) -> None:
        """Records a subscription. Call it before reading the head of the stream, and then every hour.

        Resets the stream if nobody was subscribed for 26 h, so that earlier cursors are not resumed.
        """
        await self._times.record(stream.name, stream)

    async def among(self, streams: Sequence[Stream], session: Session) -> set[Stream]:
        """Returns those of the streams to which events are added."""
        if not streams:
            return set()
        names = set(await self._times.among([stream.name for stream in streams], session))
        return {stream for stream in streams if stream.name in names}

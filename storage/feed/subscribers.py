"""Subscribers of home streams: events are added only to the streams of readers who subscribed lately.

Events are kept for 24 h, so a cursor that is older cannot be resumed in any case. A stream to which nobody was
subscribed for longer gets a new epoch with its next subscription, because events were left out meanwhile.
"""

from collections.abc import Sequence
from functools import partial

from storage.feed.documents import OrganizationUserId
from storage.feed.follows import FEEDS
from storage.feed.records import home_stream
from storage.mongo import Mongo, Session, older_than
from storage.streams.log import KEPT_S, reset_stream

FRESH_S = 1800.0
"""Age up to which a record is not renewed."""

LAPSED_S = KEPT_S + 2 * 3600.0
"""Age of the last record from which a stream is reset.

Open subscriptions call `record` every hour, so the record of a subscriber who resumes within 24 h is younger.
"""

EMITTED_S = LAPSED_S + 3600.0
"""Age of the last record from which no events are added: more than LAPSED_S, as a new primary's clock may be behind."""


class HomeSubscribers:
    """Records who subscribes to their home stream, to the hour, in the reader's feed."""

    def __init__(self, mongo: Mongo) -> None:
        self._mongo = mongo

    async def record(self, organization_id: str, reader_id: str) -> None:
        """Records the reader's subscription. Call it before reading the head of the stream, and then every hour.

        Resets a stream to which nobody was subscribed, so that earlier cursors are not resumed.
        """
        owner: OrganizationUserId = {"o": organization_id, "u": reader_id}
        age_s = await self._age_s(owner)
        if age_s > LAPSED_S:
            await self._mongo.transact(partial(self._begin, owner))
        elif age_s > FRESH_S:
            await self._set(owner)

    async def among(self, organization_id: str, reader_ids: Sequence[str]) -> list[str]:
        """Returns the readers to whose home stream events are added."""
        ids = [{"o": organization_id, "u": reader_id} for reader_id in reader_ids]
        recorded = {"_id": {"$in": ids}, "$nor": [older_than("subscribed_at", EMITTED_S)]}
        return [row["_id"]["u"] for row in await self._mongo.find(FEEDS, recorded, {"_id": 1})]

    async def _begin(self, owner: OrganizationUserId, session: Session) -> None:
        """Records the subscription and resets the stream, unless a concurrent subscription did both."""
        if await self._age_s(owner, session) > LAPSED_S:
            await self._set(owner, session)
            await reset_stream(self._mongo, home_stream(owner["o"], owner["u"]), session)

    async def _age_s(self, owner: OrganizationUserId, session: Session | None = None) -> float:
        """Returns the age of the last record; infinity if there is none."""
        age = {"age_ms": {"$subtract": ["$$NOW", "$subscribed_at"]}}
        rows = await self._mongo.find(FEEDS, {"_id": owner}, age, session=session)
        age_ms = rows[0].get("age_ms") if rows else None
        return float("inf") if age_ms is None else age_ms / 1000

    async def _set(self, owner: OrganizationUserId, session: Session | None = None) -> None:
        fields = {"subscribed_at": "$$NOW", "seen_at": {"$ifNull": ["$seen_at", "$$NOW"]}}
        await self._mongo[FEEDS].update_one({"_id": owner}, [{"$set": fields}], upsert=True, session=session)

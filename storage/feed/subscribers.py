"""Subscribers of home streams: events are added only to the streams of readers who subscribed lately.

Events are kept for 24 h, so an older cursor cannot be resumed in any case. If a reader was not subscribed for longer
than that, their stream may lack events. Their next subscription then gives it a new epoch.
"""

from collections.abc import Sequence
from functools import partial

from storage.feed.documents import OrganizationUserId
from storage.feed.follows import FEEDS
from storage.feed.records import home_stream
from storage.mongo import Mongo, Session, older_than
from storage.streams.log import KEPT_S, reset_stream

RENEWED_AFTER_S = 1800.0
"""Age of the stored subscription time from which `record` writes it again."""

RESET_AFTER_S = KEPT_S + 2 * 3600.0
"""A new subscription resets the stream if the reader's stored subscription time is older.

Open subscriptions call `record` every hour, so the stored time of a subscriber who resumes within 24 h is younger.
"""

EMIT_FOR_S = RESET_AFTER_S + 3600.0
"""No events are added if the reader's stored subscription time is older.

This is an hour longer than RESET_AFTER_S: a stream that lacks events is reset although the clock of a new primary is up
to an hour behind.
"""


class HomeSubscribers:
    """Records in each reader's feed when they were last subscribed to their home stream, exact to the hour."""

    def __init__(self, mongo: Mongo) -> None:
        self._mongo = mongo

    async def record(self, organization_id: str, reader_id: str) -> None:
        """Records the reader's subscription. Call it before reading the head of the stream, and then every hour.

        Resets a stream to which nobody was subscribed, so that earlier cursors are not resumed.
        """
        owner: OrganizationUserId = {"o": organization_id, "u": reader_id}
        age_s = await self._age_s(owner)
        if age_s > RESET_AFTER_S:
            await self._mongo.transact(partial(self._begin, owner))
        elif age_s > RENEWED_AFTER_S:
            await self._set(owner)

    async def among(self, organization_id: str, reader_ids: Sequence[str]) -> list[str]:
        """Returns the readers to whose home stream events are added."""
        ids = [{"o": organization_id, "u": reader_id} for reader_id in reader_ids]
        recorded = {"_id": {"$in": ids}, "$nor": [older_than("subscribed_at", EMIT_FOR_S)]}
        return [feed["_id"]["u"] for feed in await self._mongo.find(FEEDS, recorded, {"_id": 1})]

    async def _begin(self, owner: OrganizationUserId, session: Session) -> None:
        """Records the subscription and resets the stream, unless a concurrent subscription did both."""
        if await self._age_s(owner, session) > RESET_AFTER_S:
            await self._set(owner, session)
            await reset_stream(self._mongo, home_stream(owner["o"], owner["u"]), session)

    async def _age_s(self, owner: OrganizationUserId, session: Session | None = None) -> float:
        """Returns the age of the last record; infinity if there is none."""
        age = {"age_ms": {"$subtract": ["$$NOW", "$subscribed_at"]}}
        feeds = await self._mongo.find(FEEDS, {"_id": owner}, age, session=session)
        age_ms = feeds[0].get("age_ms") if feeds else None
        return float("inf") if age_ms is None else age_ms / 1000

    async def _set(self, owner: OrganizationUserId, session: Session | None = None) -> None:
        fields = {"subscribed_at": "$$NOW", "seen_at": {"$ifNull": ["$seen_at", "$$NOW"]}}
        await self._mongo[FEEDS].update_one({"_id": owner}, [{"$set": fields}], upsert=True, session=session)

"""Emptying of aggregated events of the ledger, before the ledger deletes them (docs/semantics.md, 9).

An emptied event keeps its id until it is deleted. If the event is sent again meanwhile, it still counts as a duplicate.
"""

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta

from storage.mongo import Mongo

LEDGER = "mail_ledger"
SLICE = timedelta(minutes=5)
"""One command empties the events that were aggregated within such a span. It reads events of all organizations."""

KEPT_FIELDS = ("_id", "org", "source", "aggregated_at")
"""The fields that remain. The source is needed to remove all events of a source."""

RecordEmptyingProgress = Callable[[datetime], Awaitable[None]]
"""Called with the time until which the ledger is done. It raises to stop the removal."""


class ExpiredDeliveryEvents:
    """Empties events that were aggregated some time ago."""

    def __init__(self, mongo: Mongo) -> None:
        self._mongo = mongo

    async def empty(
        self, organization_id: str, age: timedelta, since: datetime | None, progress: RecordEmptyingProgress
    ) -> None:
        """Empties the events that were aggregated longer than `age` ago, from `since` on; None: from the first one."""
        until = await self._mongo.now() - age
        start = await self._next_event(since or datetime.fromtimestamp(0, UTC))
        while start is not None and start < until:
            end = min(start + SLICE, until)
            await self._empty_between(organization_id, start, end)
            await progress(end)
            start = await self._next_event(end)

    async def _next_event(self, since: datetime) -> datetime | None:
        query = {"aggregated_at": {"$gte": since}}
        rows = await self._mongo.find(LEDGER, query, {"aggregated_at": 1}, [("aggregated_at", 1)], 1)
        return rows[0]["aggregated_at"] if rows else None

    async def _empty_between(self, organization_id: str, start: datetime, end: datetime) -> None:
        query = {
            "aggregated_at": {"$gte": start, "$lt": end},
            "org": organization_id,
            "address": {"$exists": True},
        }
        remove_other_fields = [{"$replaceWith": {name: f"${name}" for name in KEPT_FIELDS}}]
        await self._mongo.write_past_orphans(lambda: self._mongo[LEDGER].update_many(query, remove_other_fields))

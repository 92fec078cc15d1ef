"""The stream of an organization's bounce rates: aggregators announce the days whose mail they counted."""

from collections.abc import Iterable, Sequence

from storage.mongo import Mongo, Session
from storage.streams.changes import Batch
from storage.streams.documents import EventDocumentId, OutboxDocument
from storage.streams.log import Stream
from storage.streams.outbox import EventRelay, add_rows_to_streams

EVERY_S = 5.0
"""How many seconds lie between two announcements of an organization at least."""


def bounce_rates_stream(organization_id: str) -> Stream:
    """Returns the stream of an organization's bounce rates. Its events refer to UTC days since the Unix epoch."""
    return Stream("bounce_rates", organization_id)


async def add_rate_rows(mongo: Mongo, days: Iterable[tuple[str, int]], session: Session) -> None:
    """Adds a row for each organization and day whose counts the transaction changes."""
    await add_rows_to_streams(
        mongo, [(bounce_rates_stream(org), "BounceRateChanged", day) for org, day in days], session
    )


class BounceRateRelay(EventRelay):
    """Emits an event for each day, at most every five seconds. Events of several days are emitted together."""

    def __init__(self) -> None:
        super().__init__()
        self._wait_s = 0.0

    async def load(self, mongo: Mongo, session: Session, rows: Sequence[OutboxDocument], batch: Batch) -> None:
        """Reads when the stream's last event was emitted."""
        last: EventDocumentId = {"s": batch.stream.name, "n": batch.last_n}
        event = await mongo["events"].find_one({"_id": last}, {"at": 1}, session=session)
        age_s = EVERY_S if event is None else (batch.at - event["at"]).total_seconds()
        # A negative age means that the database's clock was set back. The event is then emitted at once.
        self._wait_s = EVERY_S - age_s if 0 <= age_s < EVERY_S else 0.0

    def relay(self, row: OutboxDocument, batch: Batch) -> float:
        """Emits the event, unless the last one is too recent."""
        return self._wait_s or super().relay(row, batch)

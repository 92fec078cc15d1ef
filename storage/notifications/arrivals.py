"""Finds new notifications in the event log, and makes the channels of their owners due.

The events exist anyway, so that neither posting nor notifying writes anything for people who are offline. Workers read
them after a delay, by which all commits of that time are visible.
"""

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime, timedelta

from pymongo.asynchronous.collection import AsyncCollection
from pymongo.errors import DuplicateKeyError

from storage.identity.records import stream_owner
from storage.ids import UserKey
from storage.mongo import Mongo
from storage.notifications.channels import NewNotifications, NotificationChannels
from storage.notifications.documents import NotificationScanDocument
from storage.streams.documents import EventDocument
from storage.streams.log import EventLog, parse_stream_name

SCANS = "notification_scans"
SCAN_ID = "events"

PAGE_SIZE = 1000
MAX_PAGES = 20
"""Number of pages that one sweep reads at most."""

NOTIFIED, CONVERSATION_CHANGED = "NotificationArrived", "ConversationChanged"
KINDS = (NOTIFIED, CONVERSATION_CHANGED)


class NotificationArrivals:
    """Finds new notifications. Concurrent sweeps of several workers are harmless."""

    def __init__(self, mongo: Mongo, channels: NotificationChannels) -> None:
        self._mongo = mongo
        self._events = EventLog(mongo)
        self._channels = channels
        self._scans: AsyncCollection[NotificationScanDocument] = mongo[SCANS]

    async def sweep(self, delay_s: float, mail_delay_s: float) -> int:
        """Makes channels due for notifications that are older than `delay_s`. Returns how many channels.

        Mail is due `mail_delay_s` after the notification. Starts with the notifications after the first sweep.
        """
        until = await self._mongo.now() - timedelta(seconds=delay_s)
        marked = 0
        for _ in range(MAX_PAGES):
            position = await self._position(until)
            events, end = await self._events.page_by_time(position, until, PAGE_SIZE, KINDS)
            arrivals = _arrivals(events)
            if arrivals:
                marked += await self._channels.mark(arrivals, max(0.0, mail_delay_s - delay_s))
            # Another worker may have moved the position meanwhile. It has then marked the same channels.
            await self._scans.update_one({"_id": SCAN_ID, "at": position}, {"$set": {"at": end}})
            if end >= until:
                break
        return marked

    async def _position(self, until: datetime) -> datetime:
        found: list[NotificationScanDocument] = await self._mongo.find(SCANS, {"_id": SCAN_ID}, limit=1)
        if found:
            return found[0]["at"]
        try:
            await self._scans.insert_one({"_id": SCAN_ID, "at": until})
        except DuplicateKeyError:
            return await self._position(until)
        return until


def _arrivals(events: Sequence[EventDocument]) -> dict[UserKey, NewNotifications]:
    marks: defaultdict[UserKey, int] = defaultdict(int)
    topics: defaultdict[UserKey, set[str]] = defaultdict(set)
    for event in events:
        owner = UserKey(*stream_owner(parse_stream_name(event["_id"]["s"])))
        marks[owner] = max(marks[owner], _up_to(event))
        if event["kind"] == CONVERSATION_CHANGED:
            topics[owner].add(event["ref"])
    return {owner: NewNotifications(mark, frozenset(topics[owner])) for owner, mark in marks.items()}


def _up_to(event: EventDocument) -> int:
    """Returns the timestamp of a notification. A conversation has changed by the end of the event's millisecond."""
    end_of_millisecond = round(event["at"].timestamp() * 1000) * 1000 + 999
    return max(event["ref"], end_of_millisecond) if event["kind"] == NOTIFIED else end_of_millisecond

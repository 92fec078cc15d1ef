"""The choice of digests: how often they are mailed, and the channel that exists while they are on."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from pymongo.asynchronous.collection import AsyncCollection

from storage.ids import UserKey
from storage.mongo import Document, Mongo, Session, literals
from storage.notifications.channels import CHANNELS, NOW_MICROSECONDS, mail_channel_id
from storage.notifications.documents import NotificationChannelDocument
from storage.notifications.settings import (
    DigestPeriod,
    NotificationSettings,
    NotificationSettingsChange,
    NotificationSettingsStore,
    NotificationWay,
)

_DAYS = {DigestPeriod.DAILY: 1, DigestPeriod.WEEKLY: 7}


def next_digest_at(sent_at: datetime, period: DigestPeriod, time_zone: str) -> datetime:
    """Returns the earliest time of the next digest: an hour later, or the same local time some days later.

    A local time that does not exist on that day is moved by the change of the clocks. If it occurs twice, the first
    one counts.
    """
    if period not in _DAYS:
        return sent_at + timedelta(hours=1)
    zone = ZoneInfo(time_zone)
    local = sent_at.astimezone(zone)
    day = local.date() + timedelta(days=_DAYS[period])
    return datetime.combine(day, local.time().replace(fold=0), zone).astimezone(UTC)


class DigestStore:
    """Changes settings together with the channel of the person's mail address."""

    def __init__(self, mongo: Mongo, settings: NotificationSettingsStore) -> None:
        self._mongo = mongo
        self._settings = settings
        self._channels: AsyncCollection[NotificationChannelDocument] = mongo[CHANNELS]

    async def change_settings(self, owner: UserKey, change: NotificationSettingsChange) -> NotificationSettings:
        """Stores the new values. With a period, adds or removes the channel in the same commit. Returns all settings.

        A new channel gets the notifications that arrive afterwards.
        """
        period = change.digest
        if period is None:
            return await self._settings.change(owner, change)

        async def work(session: Session) -> NotificationSettings:
            await self._set_channel(owner, period, session)
            return await self._settings.change(owner, change, session)

        return await self._mongo.transact(work)

    async def _set_channel(self, owner: UserKey, period: DigestPeriod, session: Session) -> None:
        query = {"_id": mail_channel_id(owner)}
        if period is DigestPeriod.NEVER:
            await self._channels.delete_one(query, session=session)
        else:
            await self._channels.update_one(query, [{"$set": _values(owner, period)}], upsert=True, session=session)


def _values(owner: UserKey, period: DigestPeriod) -> Document:
    """Returns the values of a channel. With another period than before, a waiting digest is due at once."""
    fields = {"org": owner.organization_id, "user": owner.user_id, "way": NotificationWay.MAIL.value}
    is_same = {"$eq": ["$period", {"$literal": period.value}]}
    is_waiting = {"$ne": [{"$type": "$due"}, "missing"]}
    return {
        **literals(fields),
        "period": {"$literal": period.value},
        "at": {"$ifNull": ["$at", "$$NOW"]},
        "sent": {"$ifNull": ["$sent", NOW_MICROSECONDS]},
        "last": {"$ifNull": ["$last", NOW_MICROSECONDS]},
        "not_before": {"$cond": [is_same, "$not_before", "$$REMOVE"]},
        "due": {"$cond": [is_same, "$due", {"$cond": [is_waiting, {"$min": ["$due", "$$NOW"]}, "$$REMOVE"]}]},
    }

"""Channels: the devices and mail addresses that get a person's notifications while the person is offline.

A channel remembers up to which timestamp its notifications were sent. A worker claims a due channel, sends what is new
as one push or one mail, and then moves that timestamp. A killed worker's claim ends, and another worker sends again.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from pymongo import ReturnDocument, UpdateOne
from pymongo.asynchronous.collection import AsyncCollection

from storage.errors import NotFound
from storage.ids import UserKey
from storage.mongo import Document, Mongo, due_filter, literals, seconds_from_now
from storage.mongo.leases import claim_token, lease_filter
from storage.notifications.documents import NotificationChannelDocument
from storage.notifications.settings import NotificationWay

CHANNELS = "notification_channels"
MAX_DEVICES = 20
"""A further device removes the one that was registered first."""

DEVICE_KEPT_S = 60 * 86_400
"""How long a device is kept after its last registration. Browsers register it at each start of the web client."""

CLAIM_S = 60
"""How long a claim lasts. It is longer than a sending."""

MAX_TOPICS = 20
MAX_TRIES = 10
"""After so many failed tries in a row, what was to be sent is given up."""

NOW_MICROSECONDS = {"$multiply": [{"$toLong": "$$NOW"}, 1000]}
_DUE: Document = due_filter("due")


@dataclass(frozen=True, slots=True)
class PushSubscription:
    """How to push to a browser (RFC 8030; RFC 8291, 2)."""

    url: str
    public_key: bytes
    auth_secret: bytes


@dataclass(frozen=True, slots=True)
class PushDevice:
    """A browser that gets pushes."""

    id: str
    session_id: str | None
    user_agent: str | None
    registered_at: datetime
    expires_at: datetime


@dataclass(frozen=True, slots=True)
class NewNotifications:
    """New notifications of a person: the timestamp up to which they were found, and conversations with messages."""

    up_to: int
    topic_ids: frozenset[str]


@dataclass(frozen=True, slots=True)
class ClaimedChannel:
    """A channel for which this worker sends the notifications in the range (after, up_to]."""

    id: str
    owner: UserKey
    way: NotificationWay
    after: int
    up_to: int
    topic_ids: Sequence[str]
    claim: str
    tries: int
    subscription: PushSubscription | None
    session_id: str | None

    @property
    def sending_id(self) -> str:
        """The id of what is sent, 32 characters. It is the same when the sending is repeated."""
        return hashlib.sha256(f"{self.id} {self.after}".encode()).hexdigest()[:32]


class NotificationChannels:
    """Adds, lists, claims and removes channels."""

    def __init__(self, mongo: Mongo, worker: str = "") -> None:
        """`worker` is the name by which the claims of this process are released when it has died."""
        self._mongo = mongo
        self._worker = worker
        self._channels: AsyncCollection[NotificationChannelDocument] = mongo[CHANNELS]

    async def add_device(
        self, owner: UserKey, subscription: PushSubscription, session_id: str | None, user_agent: str | None
    ) -> PushDevice:
        """Registers a browser, or renews its registration. A browser gets the pushes of one person only."""
        id_ = hashlib.sha256(subscription.url.encode()).hexdigest()
        is_renewal = {"$and": [{"$eq": [f"${name}", {"$literal": value}]} for name, value in _of(owner).items()]}
        fields = {
            **_of(owner),
            "way": NotificationWay.PUSH.value,
            "subscription": {
                "url": subscription.url,
                "key": subscription.public_key,
                "auth": subscription.auth_secret,
            },
            "agent": user_agent,
        }
        start = {
            "at": {"$cond": [is_renewal, "$at", "$$NOW"]},
            "sent": {"$cond": [is_renewal, "$sent", NOW_MICROSECONDS]},
            "last": {"$cond": [is_renewal, "$last", NOW_MICROSECONDS]},
            "until": seconds_from_now(DEVICE_KEPT_S),
            "session": "$$REMOVE" if session_id is None else {"$literal": session_id},
            **{name: {"$cond": [is_renewal, f"${name}", "$$REMOVE"]} for name in ("due", "claim", "topics", "tries")},
        }
        document = await self._channels.find_one_and_update(
            {"_id": id_},
            [{"$set": start}, {"$set": literals(fields)}],
            upsert=True,
            return_document=ReturnDocument.AFTER,
        )
        assert document is not None
        await self._remove_excess(owner)
        return _device(document)

    async def devices(self, owner: UserKey) -> list[PushDevice]:
        """Returns the devices of a person, the newest first."""
        return [_device(each) for each in await self._find_devices(owner)]

    async def remove_device(self, owner: UserKey, device_id: str) -> PushDevice:
        """Removes a device of a person. Raises: NotFound."""
        query = {"_id": device_id, **_of(owner), "way": NotificationWay.PUSH.value}
        document = await self._channels.find_one_and_delete(query)
        if document is None:
            raise NotFound("device", device_id)
        return _device(document)

    async def mark(self, arrivals: Mapping[UserKey, NewNotifications], mail_delay_s: float) -> int:
        """Makes the channels of people with new notifications due: devices now, mail after the delay. Idempotent.

        Returns how many channels have something new.
        """
        query = {
            "org": {"$in": list({owner.organization_id for owner in arrivals})},
            "user": {"$in": list({owner.user_id for owner in arrivals})},
        }
        fields = {"org": 1, "user": 1, "way": 1}
        found: list[NotificationChannelDocument] = await self._mongo.find(CHANNELS, query, fields)
        writes = [
            _mark(channel, arrival, mail_delay_s)
            for channel in found
            if (arrival := arrivals.get(UserKey(channel["org"], channel["user"]))) is not None
        ]
        if not writes:
            return 0
        return (await self._channels.bulk_write(writes, ordered=False)).modified_count

    async def claim(self, way: NotificationWay, limit: int) -> list[ClaimedChannel]:
        """Claims due channels, the earliest first. They are due again after CLAIM_S unless they are finished."""
        due = {"way": way.value, **_DUE}
        rows = await self._mongo.find(CHANNELS, due, {"_id": 1}, sort=[("due", 1)], limit=limit)
        claimed = [await self._claim(row["_id"]) for row in rows]
        return [_claimed(each) for each in claimed if each is not None]

    async def release_of(self, worker: str) -> int:
        """Ends the claims of a dead worker, so that the channels are due now. Returns how many."""
        query = {"way": {"$in": [way.value for way in NotificationWay]}, **lease_filter(worker, "due", CLAIM_S)}
        return (await self._channels.update_many(query, [{"$set": {"due": "$$NOW"}}])).modified_count

    async def finish(self, channel: ClaimedChannel, pause_s: float) -> bool:
        """Records that everything in the range was sent, or is not sent. The next sending begins after the pause.

        Returns False if the claim has ended, and another worker may have sent it, too.
        """
        is_newer = {"$gt": ["$last", channel.up_to]}
        next_ = seconds_from_now(pause_s)
        values = {
            "sent": channel.up_to,
            "not_before": next_,
            "due": {"$cond": [is_newer, next_, "$$REMOVE"]},
            "topics": {"$cond": [is_newer, "$topics", "$$REMOVE"]},
            "claim": "$$REMOVE",
            "tries": "$$REMOVE",
        }
        return await self._update_claimed(channel, values)

    async def reopen(self, channel: ClaimedChannel, retry_s: float) -> bool:
        """Takes `finish` back, because the server has refused what was to be sent. Counts a failed try."""
        values = {
            "sent": channel.after,
            "topics": _with_topics(channel.topic_ids),
            "due": seconds_from_now(retry_s),
            "not_before": "$$REMOVE",
            "tries": channel.tries + 1,
        }
        # A channel that was claimed again, or removed and added again, stays as it is.
        query = {"_id": channel.id, "sent": channel.up_to, "claim": {"$exists": False}}
        return (await self._channels.update_one(query, [{"$set": values}])).matched_count == 1

    async def postpone(self, channel: ClaimedChannel, due: datetime | None, retry_s: float = 0.0) -> bool:
        """Ends the claim, and makes the channel due at the instant. Without one, counts a failed try."""
        values = {
            "due": seconds_from_now(retry_s) if due is None else due,
            "claim": "$$REMOVE",
            "tries": channel.tries + (due is None),
        }
        return await self._update_claimed(channel, values)

    async def remove(self, channel: ClaimedChannel) -> None:
        """Removes a channel that can't be used any more, unless its browser was registered again meanwhile."""
        await self._channels.delete_one({"_id": channel.id, "claim": channel.claim})

    async def _claim(self, id_: str) -> NotificationChannelDocument | None:
        values = {"due": seconds_from_now(CLAIM_S), "claim": claim_token(self._worker)}
        return await self._channels.find_one_and_update(
            {"_id": id_, **_DUE}, [{"$set": values}], return_document=ReturnDocument.AFTER
        )

    async def _update_claimed(self, channel: ClaimedChannel, values: Document) -> bool:
        updated = await self._channels.update_one({"_id": channel.id, "claim": channel.claim}, [{"$set": values}])
        return updated.matched_count == 1

    async def _find_devices(self, owner: UserKey) -> list[NotificationChannelDocument]:
        query = {**_of(owner), "way": NotificationWay.PUSH.value, "until": {"$exists": True}}
        return await self._mongo.find(CHANNELS, query, sort=[("at", -1)])

    async def _remove_excess(self, owner: UserKey) -> None:
        excess = (await self._find_devices(owner))[MAX_DEVICES:]
        if excess:
            await self._channels.delete_many({"_id": {"$in": [each["_id"] for each in excess]}, **_of(owner)})


def mail_channel_id(owner: UserKey) -> str:
    """Returns the id of the channel for a person's mail address."""
    return hashlib.sha256("\0".join(("mail", *owner)).encode()).hexdigest()


def _of(owner: UserKey) -> dict[str, str]:
    return {"org": owner.organization_id, "user": owner.user_id}


def _mark(channel: NotificationChannelDocument, arrival: NewNotifications, mail_delay_s: float) -> UpdateOne:
    at: Document | str = "$$NOW" if channel["way"] == NotificationWay.PUSH.value else seconds_from_now(mail_delay_s)
    values = {
        "last": arrival.up_to,
        "due": {"$ifNull": ["$due", {"$max": [at, "$not_before"]}]},
        "topics": _with_topics(arrival.topic_ids),
    }
    return UpdateOne({"_id": channel["_id"], "last": {"$lt": arrival.up_to}}, [{"$set": values}])


def _with_topics(topic_ids: Iterable[str]) -> Document:
    """Returns the expression for a channel's conversations together with the given ones."""
    topics = {"$setUnion": [{"$ifNull": ["$topics", []]}, {"$literal": sorted(topic_ids)}]}
    return {"$slice": [topics, MAX_TOPICS]}


def _device(document: NotificationChannelDocument) -> PushDevice:
    return PushDevice(
        document["_id"], document.get("session"), document.get("agent"), document["at"], document["until"]
    )


def _claimed(document: NotificationChannelDocument) -> ClaimedChannel:
    subscription = document.get("subscription")
    return ClaimedChannel(
        id=document["_id"],
        owner=UserKey(document["org"], document["user"]),
        way=NotificationWay(document["way"]),
        after=document["sent"],
        up_to=document["last"],
        topic_ids=document.get("topics", []),
        claim=document["claim"],
        tries=document.get("tries", 0),
        subscription=subscription
        and PushSubscription(subscription["url"], bytes(subscription["key"]), bytes(subscription["auth"])),
        session_id=document.get("session"),
    )

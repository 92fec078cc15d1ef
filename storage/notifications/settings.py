"""A person's settings of offline notifications: ways by category, levels of places, quiet hours, and digests."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, NamedTuple

from pymongo import ReturnDocument
from pymongo.asynchronous.collection import AsyncCollection

from storage.errors import Conflict
from storage.identity.accounts.local_accounts import MailLanguage
from storage.ids import UserKey
from storage.mongo import Document, Mongo, Session, literals
from storage.notifications.documents import NotificationOwner, NotificationSettingsDocument, QuietHoursDocument
from storage.notifications.quiet_hours import QuietHours
from storage.notifications.timeline import Notification, NotificationKind

NOTIFICATION_SETTINGS = "notification_settings"
MAX_LEVELS = 200


class NotificationCategory(Enum):
    """A group of kinds of notifications for which a person chooses the ways. The value is stored."""

    DIRECT_MESSAGE = "DIRECT_MESSAGE"
    MENTION = "MENTION"
    REPLY = "REPLY"
    REACTION = "REACTION"
    FOLLOW = "FOLLOW"
    PUBLICATION = "PUBLICATION"
    MODERATION = "MODERATION"
    MEMBERSHIP = "MEMBERSHIP"
    STAMP_PACK = "STAMP_PACK"


CATEGORIES: Mapping[NotificationKind, NotificationCategory] = {
    NotificationKind.MENTION: NotificationCategory.MENTION,
    NotificationKind.REPLY: NotificationCategory.REPLY,
    NotificationKind.THREAD_REPLY: NotificationCategory.REPLY,
    NotificationKind.QUOTE: NotificationCategory.REPLY,
    NotificationKind.REACTION: NotificationCategory.REACTION,
    NotificationKind.REPOST: NotificationCategory.REACTION,
    NotificationKind.FOLLOW: NotificationCategory.FOLLOW,
    NotificationKind.PUBLICATION_FAILED: NotificationCategory.PUBLICATION,
    NotificationKind.PUBLICATION_UNKNOWN: NotificationCategory.PUBLICATION,
    NotificationKind.PUBLICATION_NEEDS_ATTENTION: NotificationCategory.PUBLICATION,
    NotificationKind.PUBLICATION_LATE: NotificationCategory.PUBLICATION,
    NotificationKind.ACCOUNT_CREDENTIALS_ENDING: NotificationCategory.PUBLICATION,
    NotificationKind.ACCOUNT_CREDENTIALS_ENDED: NotificationCategory.PUBLICATION,
    NotificationKind.ACCOUNT_NEEDS_ATTENTION: NotificationCategory.PUBLICATION,
    NotificationKind.REPORT_DECIDED: NotificationCategory.MODERATION,
    NotificationKind.WARNING: NotificationCategory.MODERATION,
    NotificationKind.ADDED_TO_COMMUNITY: NotificationCategory.MEMBERSHIP,
    NotificationKind.STAMP_PACK_RECEIVED: NotificationCategory.STAMP_PACK,
    NotificationKind.CONVERSATION_REQUEST: NotificationCategory.DIRECT_MESSAGE,
    NotificationKind.DIRECT_MESSAGE: NotificationCategory.DIRECT_MESSAGE,
}
"""The category of each kind of notification."""


class NotificationWay(Enum):
    """A way by which a notification reaches a person who is offline. The value is stored."""

    PUSH = "PUSH"
    MAIL = "MAIL"


class NotificationLevel(Enum):
    """The notifications of a topic or a community that reach a person who is offline. The value is stored."""

    ALL = "ALL"
    MENTIONS = "MENTIONS"
    NOTHING = "NOTHING"


class DigestPeriod(Enum):
    """How often a person gets a digest by mail at most. The value is stored."""

    NEVER = "NEVER"
    HOURLY = "HOURLY"
    DAILY = "DAILY"
    WEEKLY = "WEEKLY"


class NotificationPlaceKind(Enum):
    """Kind of a place that has a level. The value is stored."""

    TOPIC = "TOPIC"
    COMMUNITY = "COMMUNITY"


class NotificationPlace(NamedTuple):
    """A topic, conversation or community that has a level."""

    kind: NotificationPlaceKind
    id: str


@dataclass(frozen=True, slots=True)
class PlaceLevel:
    """The level that a person chose for a place."""

    kind: NotificationPlaceKind
    place_id: str
    level: NotificationLevel


@dataclass(frozen=True, slots=True)
class WaysOfCategory:
    """Whether notifications of a category are pushed to devices, and whether they are part of digests."""

    category: NotificationCategory
    push: bool
    mail: bool

    def includes(self, way: NotificationWay) -> bool:
        """Returns whether the person wants the notifications by this way."""
        return self.push if way is NotificationWay.PUSH else self.mail


_OFF_BY_DEFAULT = {NotificationCategory.REACTION, NotificationCategory.FOLLOW}
DEFAULT_WAYS = {
    each: WaysOfCategory(each, push=each not in _OFF_BY_DEFAULT, mail=each not in _OFF_BY_DEFAULT)
    for each in NotificationCategory
}


@dataclass(frozen=True, slots=True)
class NotificationSettings:
    """The settings of one person. By default no digest is sent, and no hours are quiet."""

    ways_by_category: Mapping[NotificationCategory, WaysOfCategory] = field(default_factory=lambda: DEFAULT_WAYS)
    level_by_place: Mapping[NotificationPlace, NotificationLevel] = field(default_factory=dict)
    quiet_hours: QuietHours | None = None
    digest: DigestPeriod = DigestPeriod.NEVER
    language: MailLanguage = MailLanguage.EN

    @property
    def ways(self) -> list[WaysOfCategory]:
        """The ways of each category."""
        return list(self.ways_by_category.values())

    @property
    def levels(self) -> list[PlaceLevel]:
        """The levels that the person chose, by kind and id of the place."""
        return [PlaceLevel(*place, self.level_by_place[place]) for place in sorted(self.level_by_place, key=_place_key)]

    def is_wanted(self, notification: Notification, way: NotificationWay) -> bool:
        """Returns whether the person wants the notification by this way. Mutes and blocks are not checked here."""
        category = CATEGORIES[notification.kind]
        if not self.ways_by_category[category].includes(way):
            return False
        level = self._level(notification)
        return level is NotificationLevel.ALL or (
            level is NotificationLevel.MENTIONS and notification.kind is NotificationKind.MENTION
        )

    def is_conversation_wanted(self, topic_id: str, way: NotificationWay) -> bool:
        """Returns whether the person wants to know by this way of new messages in a conversation."""
        level = self.level_by_place.get(NotificationPlace(NotificationPlaceKind.TOPIC, topic_id), NotificationLevel.ALL)
        ways = self.ways_by_category[NotificationCategory.DIRECT_MESSAGE]
        return level is NotificationLevel.ALL and ways.includes(way)

    def _level(self, notification: Notification) -> NotificationLevel:
        """Returns the level of the message's topic, else of its community. Other notifications have the level ALL.

        A message in a thread has the level of the parent's topic.
        """
        message, community_id = notification.message, notification.community_id
        if message is None or CATEGORIES[notification.kind] is NotificationCategory.MODERATION:
            return NotificationLevel.ALL
        of_community = self.level_by_place.get(
            NotificationPlace(NotificationPlaceKind.COMMUNITY, community_id or ""), NotificationLevel.ALL
        )
        topic_id = notification.parent_topic_id or message.topic_id
        return self.level_by_place.get(NotificationPlace(NotificationPlaceKind.TOPIC, topic_id), of_community)


@dataclass(frozen=True, slots=True)
class NotificationSettingsChange:
    """New values of settings. None leaves a setting as it is."""

    ways: Sequence[WaysOfCategory] = ()
    quiet_hours: QuietHours | None = None
    ends_quiet_hours: bool = False
    """Whether the person has no quiet hours any more."""

    digest: DigestPeriod | None = None
    language: MailLanguage | None = None


class NotificationSettingsStore:
    """Reads and changes settings. Each change is one atomic write."""

    def __init__(self, mongo: Mongo) -> None:
        self._mongo = mongo
        self._settings: AsyncCollection[NotificationSettingsDocument] = mongo[NOTIFICATION_SETTINGS]

    async def get(self, owner: UserKey) -> NotificationSettings:
        """Returns the settings of a person; the defaults if the person has chosen none."""
        query: Document = {"_id": _owner(owner)}
        found: list[NotificationSettingsDocument] = await self._mongo.find(NOTIFICATION_SETTINGS, query, limit=1)
        return _record(found[0]) if found else NotificationSettings()

    async def change(
        self, owner: UserKey, change: NotificationSettingsChange, session: Session | None = None
    ) -> NotificationSettings:
        """Stores the new values, and leaves all other settings as they are. Returns all settings.

        A new period of digests also needs `DigestStore.change_settings`, which adds the channel.
        """
        values: dict[str, Any] = {
            f"ways.{each.category.value}": [way.value for way in NotificationWay if each.includes(way)]
            for each in change.ways
        }
        if change.quiet_hours is not None or change.ends_quiet_hours:
            values["quiet"] = _quiet_hours_document(change.quiet_hours)
        if change.digest is not None:
            values["digest"] = change.digest.value
        if change.language is not None:
            values["language"] = change.language.value
        return await self._update(owner, {**literals(values), "at": "$$NOW"}, session)

    async def set_level(
        self, owner: UserKey, place: NotificationPlace, level: NotificationLevel | None
    ) -> NotificationSettings:
        """Sets the level of a place, or removes it with None. Returns all settings. Idempotent.

        Raises: Conflict for the level of one more place if the person has MAX_LEVELS.
        """
        key = _place_key(place)
        others = {
            "$filter": {
                "input": {"$objectToArray": {"$ifNull": ["$levels", {}]}},
                "cond": {"$ne": ["$$this.k", {"$literal": key}]},
            }
        }
        chosen = [] if level is None else [{"k": {"$literal": key}, "v": level.value}]
        levels = {"$concatArrays": [others, chosen]}
        has_room = {"$lte": [{"$size": levels}, MAX_LEVELS]}
        changed = {"$cond": [has_room, {"$arrayToObject": levels}, "$levels"]}
        settings = await self._update(owner, {"levels": changed, "at": "$$NOW"})
        if settings.level_by_place.get(place) is not level:
            raise Conflict(f"At most {MAX_LEVELS} topics and communities have a level. Remove one first.")
        return settings

    async def _update(self, owner: UserKey, values: Document, session: Session | None = None) -> NotificationSettings:
        document = await self._settings.find_one_and_update(
            {"_id": _owner(owner)},
            [{"$set": values}],
            upsert=True,
            return_document=ReturnDocument.AFTER,
            session=session,
        )
        assert document is not None
        return _record(document)


def _owner(owner: UserKey) -> NotificationOwner:
    return {"o": owner.organization_id, "u": owner.user_id}


def _quiet_hours_document(hours: QuietHours | None) -> QuietHoursDocument | None:
    if hours is None:
        return None
    return {"start": hours.start_minute, "end": hours.end_minute, "zone": hours.time_zone}


def _record(document: NotificationSettingsDocument) -> NotificationSettings:
    stored_ways, quiet = document.get("ways", {}), document.get("quiet")
    return NotificationSettings(
        ways_by_category={each: _ways(each, stored_ways.get(each.value)) for each in NotificationCategory},
        level_by_place={_place(key): NotificationLevel(level) for key, level in document.get("levels", {}).items()},
        quiet_hours=None if quiet is None else QuietHours(quiet["start"], quiet["end"], quiet["zone"]),
        digest=DigestPeriod(document.get("digest", DigestPeriod.NEVER.value)),
        language=MailLanguage(document.get("language", MailLanguage.EN.value)),
    )


def _ways(category: NotificationCategory, stored: Sequence[str] | None) -> WaysOfCategory:
    if stored is None:
        return DEFAULT_WAYS[category]
    return WaysOfCategory(category, NotificationWay.PUSH.value in stored, NotificationWay.MAIL.value in stored)


def _place_key(place: NotificationPlace) -> str:
    return f"{place.kind.value}:{place.id}"


def _place(key: str) -> NotificationPlace:
    kind, _, id_ = key.partition(":")
    return NotificationPlace(NotificationPlaceKind(kind), id_)

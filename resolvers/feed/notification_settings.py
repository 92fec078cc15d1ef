"""The viewer's settings of offline notifications."""

import re
from enum import Enum
from typing import Annotated

import strawberry
from strawberry import ID, UNSET, Parent

from resolvers.access import find_visible_community, find_visible_topic, require_member
from resolvers.arguments import checked_time_zone
from resolvers.context import Info
from storage.chat.records import Community, Topic
from storage.errors import BadUserInput, NotFound
from storage.identity.accounts.local_accounts import MailLanguage
from storage.ids import UserKey
from storage.mail.addresses import normalize
from storage.mail.records import VerdictRule
from storage.notifications.quiet_hours import QuietHours
from storage.notifications.settings import (
    DigestPeriod,
    NotificationCategory,
    NotificationLevel,
    NotificationPlace,
    NotificationPlaceKind,
    NotificationSettings,
    NotificationSettingsChange,
    PlaceLevel,
    WaysOfCategory,
)

_CLOCK_TIME = re.compile(r"([01]\d|2[0-3]):([0-5]\d)", re.ASCII)

strawberry.enum(
    NotificationCategory,
    description="A group of notifications. DIRECT_MESSAGE: new messages in the person's conversations. REPLY: replies "
    "to the person's posts, quotes of them, and replies in followed threads. REACTION: also reposts of the person's "
    "posts. PUBLICATION: a scheduled post failed, or its outcome is unknown. MODERATION: decisions about the person's "
    "reports, and warnings. MEMBERSHIP: the person became a member of a community. STAMP_PACK: the person got a pack "
    "of stamps.",
)
strawberry.enum(
    NotificationLevel,
    description="The notifications of a topic or community that reach a person who is offline. MENTIONS: mentions of "
    "the person only. Decisions and warnings of moderators do not depend on it.",
)
strawberry.enum(
    DigestPeriod, description="How often a person gets a mail with unread notifications at most. NEVER: no mails."
)


class DigestObstacle(Enum):
    """Why a person gets no digests."""

    NO_VERIFIED_ADDRESS = "NO_VERIFIED_ADDRESS"
    UNSUBSCRIBED = "UNSUBSCRIBED"
    ADDRESS_BLOCKED = "ADDRESS_BLOCKED"
    NOT_SET_UP = "NOT_SET_UP"


strawberry.enum(
    DigestObstacle,
    description="Why a person gets no digests. NO_VERIFIED_ADDRESS: no mail address is known that the person has "
    "proved, or that the identity provider has verified. UNSUBSCRIBED: the person ended digests by the link in a mail. "
    "Choosing a period turns them on again. ADDRESS_BLOCKED: mails to the address bounced, or were reported as spam. "
    "NOT_SET_UP: the server sends no digests.",
)

Level = Annotated[
    NotificationLevel | None,
    strawberry.argument(description="The level. Omitted or null: removes the level that the viewer chose."),
]


@strawberry.input(description="The ways by which notifications of a category reach a person who is offline.")
class NotificationWaysInput:
    category: NotificationCategory = strawberry.field(description="The category.")
    push: bool = strawberry.field(description="Whether they are pushed to the person's devices.")
    mail: bool = strawberry.field(description="Whether they are part of digests.")


@strawberry.input(description="Local times of every day, between which nothing is pushed or mailed.")
class QuietHoursInput:
    start: str = strawberry.field(description="Time of day from which it is quiet, such as 22:00.")
    end: str = strawberry.field(
        description="Time of day until which it is quiet, such as 07:00; another time than `start`. If it is before "
        "`start`, it is on the next day."
    )
    time_zone: str = strawberry.field(description="IANA time zone of start and end, such as Asia/Tokyo.")


@strawberry.input(description="New values of settings. Omitted fields stay as they are.")
class NotificationSettingsInput:
    ways: list[NotificationWaysInput] | None = strawberry.field(
        default=UNSET, description="Ways of some categories, each at most once. Other categories stay as they are."
    )
    quiet_hours: QuietHoursInput | None = strawberry.field(
        default=UNSET, description="The quiet hours; null removes them."
    )
    digest: DigestPeriod | None = strawberry.field(default=UNSET, description="How often digests are mailed at most.")
    language: MailLanguage | None = strawberry.field(default=UNSET, description="MailLanguage of pushes and digests.")


async def notification_settings(info: Info) -> NotificationSettings:
    """Returns the viewer's settings."""
    return await info.context.stores.notification_settings.get(require_member(info).key)


async def set_notification_settings(
    info: Info,
    new_values: Annotated[
        NotificationSettingsInput, strawberry.argument(name="input", description="The new values of settings.")
    ],
) -> NotificationSettings:
    """Changes some of the viewer's settings."""
    viewer = require_member(info)
    change = NotificationSettingsChange(
        ways=_checked_ways(new_values.ways or []),
        quiet_hours=_checked_quiet_hours(new_values.quiet_hours) if new_values.quiet_hours else None,
        ends_quiet_hours=new_values.quiet_hours is None,
        digest=new_values.digest or None,
        language=new_values.language or None,
    )
    if change.digest not in (None, DigestPeriod.NEVER):
        await _end_unsubscription(info, viewer.key)
    return await info.context.stores.digests.change_settings(viewer.key, change)


async def _end_unsubscription(info: Info, viewer: UserKey) -> None:
    """Records that the viewer wants digests again, if a link in a mail has ended them."""
    stores = info.context.stores
    address = normalize(await stores.users.verified_address(viewer) or "")
    if address is not None and stores.address_book.has_keys:
        await stores.address_book.set_unsubscribed(viewer.organization_id, address, False)


async def digest_address(info: Info) -> str | None:
    """Returns the viewer's verified mail address, or None."""
    return await info.context.stores.users.verified_address(require_member(info).key)


async def digest_obstacle(info: Info) -> DigestObstacle | None:
    """Returns why the viewer gets no digests, whether or not the viewer has chosen them; None if nothing is wrong."""
    viewer, stores = require_member(info), info.context.stores
    address = await stores.users.verified_address(viewer.key)
    if address is None:
        return DigestObstacle.NO_VERIFIED_ADDRESS
    if not stores.address_book.has_keys:
        return DigestObstacle.NOT_SET_UP
    (standing,) = await stores.address_book.look_up(viewer.organization_id, [address])
    if standing.verdict.rule is VerdictRule.UNSUBSCRIBED:
        return DigestObstacle.UNSUBSCRIBED
    return DigestObstacle.ADDRESS_BLOCKED if standing.blocked else None


async def set_topic_notifications(
    info: Info,
    topic_id: Annotated[ID, strawberry.argument(description="Id of the topic or conversation.")],
    level: Level = UNSET,
) -> NotificationSettings:
    """Sets or removes the level of a topic that the viewer may see."""
    is_visible = await find_visible_topic(info, topic_id) is not None
    return await _set_level(info, NotificationPlace(NotificationPlaceKind.TOPIC, topic_id), level, is_visible)


async def set_community_notifications(
    info: Info,
    community_id: Annotated[ID, strawberry.argument(description="Id of the community.")],
    level: Level = UNSET,
) -> NotificationSettings:
    """Sets or removes the level of a community that the viewer may see."""
    is_visible = await find_visible_community(info, community_id) is not None
    return await _set_level(info, NotificationPlace(NotificationPlaceKind.COMMUNITY, community_id), level, is_visible)


async def _set_level(
    info: Info, place: NotificationPlace, level: NotificationLevel | None, is_visible: bool
) -> NotificationSettings:
    """Sets the level of a place. Removes it also from a place that the viewer may not see any more."""
    owner, store = require_member(info).key, info.context.stores.notification_settings
    chosen = level or None
    if not is_visible and (chosen is not None or place not in (await store.get(owner)).level_by_place):
        raise NotFound(place.kind.value.lower(), place.id)
    return await store.set_level(owner, place, chosen)


async def topic(root: Parent[PlaceLevel], info: Info) -> Topic | None:
    """Returns the topic, or None for a community and for a topic that the viewer may not see any more."""
    return await find_visible_topic(info, root.place_id) if root.kind is NotificationPlaceKind.TOPIC else None


async def community(root: Parent[PlaceLevel], info: Info) -> Community | None:
    """Returns the community, or None for a topic and for a community that the viewer may not see any more."""
    return await find_visible_community(info, root.place_id) if root.kind is NotificationPlaceKind.COMMUNITY else None


def _checked_ways(inputs: list[NotificationWaysInput]) -> list[WaysOfCategory]:
    categories = [each.category for each in inputs]
    if len(set(categories)) < len(categories):
        raise BadUserInput("ways", "each category at most once")
    return [WaysOfCategory(each.category, each.push, each.mail) for each in inputs]


def _checked_quiet_hours(hours: QuietHoursInput) -> QuietHours:
    start, end = _minutes("start", hours.start), _minutes("end", hours.end)
    if start == end:
        raise BadUserInput("end", "another time than start")
    return QuietHours(start, end, checked_time_zone(hours.time_zone))


def _minutes(name: str, written: str) -> int:
    match = _CLOCK_TIME.fullmatch(written)
    if match is None:
        raise BadUserInput(name, "a time of day such as 22:00")
    return int(match[1]) * 60 + int(match[2])

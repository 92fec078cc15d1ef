"""Settings of offline notifications: defaults, concurrent changes, and which notifications are wanted."""

import asyncio
from dataclasses import replace

import pytest

from storage.errors import Conflict
from storage.ids import MessageKey, UserKey, new_id
from storage.notifications import Notification, NotificationKind, settings
from storage.notifications.settings import (
    CATEGORIES,
    DigestPeriod,
    NotificationCategory,
    NotificationLevel,
    NotificationPlace,
    NotificationPlaceKind,
    NotificationSettings,
    NotificationSettingsChange,
    NotificationWay,
    WaysOfCategory,
)
from storage.stores import Stores
from storage.timeline import Timestamp

pytestmark = pytest.mark.anyio

COMMUNITY, TOPIC = (
    NotificationPlace(NotificationPlaceKind.COMMUNITY, "harbour"),
    NotificationPlace(NotificationPlaceKind.TOPIC, "tides"),
)
ALL, MENTIONS, NOTHING = NotificationLevel.ALL, NotificationLevel.MENTIONS, NotificationLevel.NOTHING


@pytest.fixture
def owner() -> UserKey:
    return UserKey(f"acme-{new_id()}", "$ann")


def notification(kind: NotificationKind, topic: str | None = "tides") -> Notification:
    message = None if topic is None else MessageKey(topic, 5)
    return Notification("$ann", Timestamp(7), kind, "bob", message, None, None, community_id="harbour")


def test_every_kind_has_a_category() -> None:
    assert CATEGORIES.keys() == set(NotificationKind)
    assert set(CATEGORIES.values()) == set(NotificationCategory)


async def test_person_without_settings_has_the_defaults(shared_stores: Stores, owner: UserKey) -> None:
    found = await shared_stores.notification_settings.get(owner)
    assert found == NotificationSettings()
    assert (found.digest, found.quiet_hours, found.levels) == (DigestPeriod.NEVER, None, [])
    assert {each.category.name for each in found.ways if not each.push} == {"REACTION", "FOLLOW"}


async def test_concurrent_changes_of_settings_all_take_effect(shared_stores: Stores, owner: UserKey) -> None:
    store = shared_stores.notification_settings
    ways = [WaysOfCategory(each, push=False, mail=True) for each in NotificationCategory]
    changes = [NotificationSettingsChange(ways=[each]) for each in ways]
    places = [NotificationPlace(NotificationPlaceKind.TOPIC, f"t{n}") for n in range(20)]
    await asyncio.gather(
        *(store.change(owner, each) for each in changes),
        *(store.set_level(owner, each, MENTIONS) for each in places),
        store.change(owner, NotificationSettingsChange(digest=DigestPeriod.DAILY)),
    )
    found = await store.get(owner)
    assert (found.ways, found.digest) == (ways, DigestPeriod.DAILY)
    assert found.level_by_place.keys() == set(places)
    assert await store.get(UserKey("elsewhere", owner.user_id)) == NotificationSettings()


async def test_levels_are_limited_under_concurrency(
    shared_stores: Stores, owner: UserKey, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settings, "MAX_LEVELS", 3)
    store = shared_stores.notification_settings
    places = [NotificationPlace(NotificationPlaceKind.COMMUNITY, f"c{n}") for n in range(6)]
    results = await asyncio.gather(*(store.set_level(owner, each, NOTHING) for each in places), return_exceptions=True)
    assert sum(isinstance(each, Conflict) for each in results) == 3
    first, second, _ = (await store.get(owner)).level_by_place
    changed = await store.set_level(owner, first, ALL)
    assert changed.level_by_place[first] is ALL
    for _ in range(2):
        assert len((await store.set_level(owner, second, None)).levels) == 2
    missing = next(each for each in places if each not in changed.level_by_place)
    assert len((await store.set_level(owner, missing, ALL)).levels) == 3


@pytest.mark.parametrize(
    ("levels", "mention", "reaction"),
    [
        ({}, True, True),
        ({COMMUNITY: MENTIONS}, True, False),
        ({COMMUNITY: NOTHING}, False, False),
        ({COMMUNITY: NOTHING, TOPIC: ALL}, True, True),
        ({TOPIC: NOTHING}, False, False),
    ],
)
def test_level_of_topic_overrides_that_of_its_community(
    levels: dict[NotificationPlace, NotificationLevel], mention: bool, reaction: bool
) -> None:
    ways = {each: WaysOfCategory(each, push=True, mail=False) for each in NotificationCategory}
    chosen = NotificationSettings(ways, levels)
    for kind, expected in ((NotificationKind.MENTION, mention), (NotificationKind.REACTION, reaction)):
        assert chosen.is_wanted(notification(kind), NotificationWay.PUSH) is expected
        assert not chosen.is_wanted(notification(kind), NotificationWay.MAIL)
    assert chosen.is_wanted(notification(NotificationKind.WARNING), NotificationWay.PUSH)
    assert chosen.is_wanted(notification(NotificationKind.FOLLOW, None), NotificationWay.PUSH)


@pytest.mark.parametrize(("level", "is_wanted"), [(ALL, True), (MENTIONS, False), (NOTHING, False)])
def test_reply_in_a_thread_has_the_level_of_its_topic(level: NotificationLevel, is_wanted: bool) -> None:
    reply = replace(notification(NotificationKind.THREAD_REPLY, "thread"), parent_topic_id=TOPIC.id)
    chosen = NotificationSettings(level_by_place={COMMUNITY: NOTHING, TOPIC: level})
    assert chosen.is_wanted(reply, NotificationWay.PUSH) is is_wanted

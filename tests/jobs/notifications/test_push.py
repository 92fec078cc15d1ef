"""Pushes: each notification once to each device, however workers die; nothing that was read or is not wanted."""

import asyncio
from datetime import timedelta

import pytest

from jobs.notifications import push
from jobs.notifications.push import send_pushes
from jobs.notifications.texts import TITLES
from storage.identity.accounts.local_accounts import MailLanguage
from storage.identity.audit import Actor
from storage.identity.mutes import MuteSubject
from storage.identity.records import user_stream
from storage.identity.session_records import NewSession, SignInMethod
from storage.notifications import NotificationKind, notification_ref
from storage.notifications.channels import CHANNELS
from storage.notifications.quiet_hours import QuietHours
from storage.notifications.settings import (
    NotificationCategory,
    NotificationLevel,
    NotificationPlace,
    NotificationPlaceKind,
    NotificationSettingsChange,
    WaysOfCategory,
)
from storage.secrets.random_tokens import token_digest
from storage.streams.outbox import add_rows
from tests.jobs.notifications.conftest import OfflineScenario
from tests.resolvers.chat.test_conversations import ACCEPT, start
from tests.resolvers.feed.test_notifications import MARK_READ
from tests.resolvers.people import DELETE, until_outbox_is_empty
from tests.twins.push_service import SubscribedBrowser
from tests.unclosed_sockets import may_leave_sockets

pytestmark = pytest.mark.anyio

ADD_MEMBER = """mutation ($community: ID!, $user: ID!) {
  addMember(communityId: $community, userId: $user) { user { id } }
}"""
MARK_TOPIC_READ = "mutation ($topic: ID!, $at: Timestamp!) { markRead(topicId: $topic, timestamp: $at) { id } }"


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(push, "PAUSE_S", 0.0)


async def test_mention_is_pushed_once_to_each_device(offline: OfflineScenario) -> None:
    chat = offline.chat
    phone, laptop = [await offline.add_browser(chat.bob) for _ in range(2)]
    of_ann = await offline.add_browser(chat.ann)
    message = await chat.ann.post(chat.topic, "> **Look** @bob")
    assert await offline.push() == 2
    assert await offline.push() == 0
    place = f"#/topic/{chat.topic}/{message['timestamp']}"
    for browser in (phone, laptop):
        (shown,) = browser.pushes
        assert (shown["title"], shown["body"], shown["place"]) == ("ann mentioned you", "Look @bob", place)
        assert (shown["tag"], shown["keys"]) == (f"#/topic/{chat.topic}", [place])
    assert of_ann.pushes == []


async def test_reply_also_in_the_conversation_is_pushed_once(offline: OfflineScenario) -> None:
    chat = offline.chat
    phone = await offline.add_browser(chat.bob)
    conversation = await start(chat.ann, chat.bob)
    parent = await chat.bob.post(conversation, "Who rows?")
    reply = await chat.ann.post(conversation, "You do, @bob", replyTo=parent["id"], alsoToTopic=True)
    await until_outbox_is_empty(chat.ann.stores)
    assert await chat.bob.texts(conversation) == ["Who rows?", "You do, @bob"]
    await offline.push()
    (shown,) = phone.pushes
    assert (shown["title"], len(shown["keys"])) == ("ann mentioned you", 1)
    assert shown["place"].endswith(f"{reply['topicId']}/{reply['timestamp']}")


async def test_device_gets_nothing_older_than_its_registration(offline: OfflineScenario) -> None:
    await offline.chat.ann.post(offline.chat.topic, "@bob")
    await offline.find()
    browser = await offline.add_browser(offline.chat.bob)
    await offline.push()
    assert browser.pushes == []


@pytest.mark.parametrize("read", ["notifications", "topic", "deleted"])
async def test_read_notification_is_not_pushed(offline: OfflineScenario, read: str) -> None:
    chat = offline.chat
    browser = await offline.add_browser(chat.bob)
    message = await chat.ann.post(chat.topic, "@bob")
    await offline.find()
    if read == "notifications":
        await chat.bob.run(MARK_READ, at="9999999999.999999")
    elif read == "topic":
        await chat.bob.run(MARK_TOPIC_READ, topic=chat.topic, at=message["timestamp"])
    else:
        await chat.ann.run(DELETE, id=message["id"])
    assert await offline.push() == 1
    assert browser.pushes == []
    await chat.ann.post(chat.topic, "@bob again")
    await offline.push()
    assert [each["body"] for each in browser.pushes] == ["@bob again"]


@pytest.mark.parametrize("reason", ["category", "level", "mute", "block", "left", "unwanted"])
async def test_unwanted_notification_is_not_pushed(offline: OfflineScenario, reason: str) -> None:
    chat, stores = offline.chat, offline.jobs.stores
    browser, bob = await offline.add_browser(chat.bob), offline.key(chat.bob)
    await chat.ann.post(chat.topic, "@bob")
    if reason == "category":
        off = WaysOfCategory(NotificationCategory.MENTION, push=False, mail=True)
        await stores.notification_settings.change(bob, NotificationSettingsChange(ways=[off]))
    elif reason == "level":
        place = NotificationPlace(NotificationPlaceKind.COMMUNITY, chat.community)
        await stores.notification_settings.set_level(bob, place, NotificationLevel.NOTHING)
    elif reason == "mute":
        await stores.mutes.mute(bob, MuteSubject.TOPIC, chat.topic, None)
    elif reason == "block":
        await chat.bob.block(chat.ann)
    elif reason == "left":
        await chat.bob.leave(chat.community)
    else:
        await stores.mutes.mute(bob, MuteSubject.USER, chat.ann.id, None)
    assert await offline.push() == 1
    assert browser.pushes == []


async def test_removed_person_is_not_told_of_the_community(offline: OfflineScenario) -> None:
    chat, browser = offline.chat, await offline.add_browser(offline.chat.eve)
    cave, cellar = [await chat.ann.create_community(name, visibility="PRIVATE") for name in ("Cave", "Cellar")]
    for community in (cave, cellar):
        await chat.ann.run(ADD_MEMBER, community=community, user=chat.eve.id)
    await chat.eve.leave(cellar)
    assert await offline.push() == 1
    assert [each["place"] for each in browser.pushes] == [f"#/community/{cave}"]


@pytest.mark.parametrize("kind", [each for each in NotificationKind if each.value.startswith("ACCOUNT_")])
async def test_push_about_an_account_opens_the_accounts(offline: OfflineScenario, kind: NotificationKind) -> None:
    stores, bob = offline.chat.bob.stores, offline.chat.bob
    browser = await offline.add_browser(bob)
    ref = notification_ref(kind)
    ref["account"], ref["occasion"] = "account", "claim"
    stream = user_stream("acme", bob.id)
    await add_rows(stores.mongo, stream, "Notify", [ref])
    stores.outbox.nudge(stream.name)
    assert await offline.push() == 1
    (shown,) = browser.pushes
    assert (shown["title"], shown["place"]) == (TITLES[MailLanguage.EN][kind.value], "#/publishing")


async def test_push_waits_until_quiet_hours_end(offline: OfflineScenario) -> None:
    chat, stores = offline.chat, offline.jobs.stores
    browser, now = await offline.add_browser(chat.bob), await offline.jobs.stores.clock.now()
    minute = now.hour * 60 + now.minute
    hours = QuietHours((minute - 5) % 1440, (minute + 60) % 1440, "UTC")
    await stores.notification_settings.change(offline.key(chat.bob), NotificationSettingsChange(quiet_hours=hours))
    await chat.ann.post(chat.topic, "@bob")
    assert await offline.push() == 1
    channel = await stores.mongo[CHANNELS].find_one({})
    assert channel is not None
    assert timedelta(minutes=58) < channel["due"] - now <= timedelta(minutes=60)
    await stores.notification_settings.change(offline.key(chat.bob), NotificationSettingsChange(ends_quiet_hours=True))
    await offline.end_waiting()
    await offline.push()
    assert browser.titles == ["ann mentioned you"]


async def test_what_arrives_together_is_one_push(offline: OfflineScenario) -> None:
    browser = await offline.add_browser(offline.chat.bob)
    for n in range(3):
        await offline.chat.ann.post(offline.chat.topic, f"{n} @bob")
    await offline.push()
    (shown,) = browser.pushes
    assert (shown["title"], shown["place"]) == ("3 new notifications", "#/notifications")


async def test_notification_that_arrives_while_pushing_follows(offline: OfflineScenario) -> None:
    chat = offline.chat
    browser = await offline.add_browser(chat.bob)

    async def mention_again(_: SubscribedBrowser) -> None:
        offline.service.on_push = None
        await chat.ann.post(chat.topic, "@bob second")
        await offline.find()

    offline.service.on_push = mention_again
    await chat.ann.post(chat.topic, "@bob first")
    await offline.push()
    await offline.push()
    assert [each["body"] for each in browser.pushes] == ["@bob first", "@bob second"]
    assert len(browser.shown) == 2


async def test_concurrent_workers_push_once(offline: OfflineScenario) -> None:
    browsers = [await offline.add_browser(offline.chat.bob) for _ in range(8)]
    await offline.chat.ann.post(offline.chat.topic, "@bob")
    await asyncio.gather(*(offline.push() for _ in range(4)))
    assert [len(each.pushes) for each in browsers] == [1] * 8


@may_leave_sockets
async def test_worker_killed_after_the_push_repeats_it_as_the_same(offline: OfflineScenario) -> None:
    """The browser shows one notification, because both pushes have the same id and topic."""
    browser = await offline.add_browser(offline.chat.bob)
    await offline.chat.ann.post(offline.chat.topic, "@bob")
    await offline.find()

    async def kill(_: SubscribedBrowser) -> None:
        offline.service.on_push = None
        killed.cancel()

    offline.service.on_push = kill
    killed = asyncio.create_task(send_pushes(offline.jobs))
    with pytest.raises(asyncio.CancelledError):
        await killed
    assert await offline.push() == 0
    await offline.end_waiting()
    await asyncio.gather(*(offline.push() for _ in range(3)))
    assert len(browser.pushes) == 2
    assert len(browser.shown) == len(set(browser.topics)) == 1


async def test_worker_whose_claim_ended_records_nothing(offline: OfflineScenario) -> None:
    browser = await offline.add_browser(offline.chat.bob)
    await offline.chat.ann.post(offline.chat.topic, "@bob")
    await offline.find()

    async def take_over(_: SubscribedBrowser) -> None:
        offline.service.on_push = None
        await offline.end_waiting()
        assert await send_pushes(offline.jobs) == 1
        await offline.chat.ann.post(offline.chat.topic, "@bob later")
        assert await offline.push() == 1

    offline.service.on_push = take_over
    await send_pushes(offline.jobs)
    await offline.push()
    assert [each["body"] for each in browser.pushes] == ["@bob", "@bob", "@bob later"]
    assert len(browser.shown) == 2


@pytest.mark.parametrize("status", [404, 410])
async def test_unknown_subscription_is_removed(offline: OfflineScenario, status: int) -> None:
    browser = await offline.add_browser(offline.chat.bob)
    browser.statuses = [status]
    await offline.chat.ann.post(offline.chat.topic, "@bob")
    await offline.push()
    assert await offline.jobs.stores.notification_channels.devices(offline.key(offline.chat.bob)) == []


async def test_delayed_push_is_tried_again(offline: OfflineScenario) -> None:
    browser, other = [await offline.add_browser(offline.chat.bob) for _ in range(2)]
    browser.statuses = [503, 429]
    await offline.chat.ann.post(offline.chat.topic, "@bob")
    for _ in range(3):
        await offline.push()
        await offline.end_waiting()
    assert (browser.titles, other.titles) == (["ann mentioned you"],) * 2


async def test_failing_push_is_given_up(offline: OfflineScenario, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(push, "MAX_TRIES", 2)
    browser = await offline.add_browser(offline.chat.bob)
    browser.statuses = [500] * 2
    await offline.chat.ann.post(offline.chat.topic, "@bob")
    for _ in range(5):
        await offline.push()
        await offline.end_waiting()
    assert (browser.statuses, browser.pushes) == ([], [])


async def test_device_ends_with_its_session_and_its_person(offline: OfflineScenario) -> None:
    chat, stores = offline.chat, offline.jobs.stores
    new = NewSession(offline.key(chat.bob), SignInMethod.DEMO)
    sessions = [token_digest(await stores.sessions.begin(new)) for _ in range(2)]
    ended, open_ = [await offline.add_browser(chat.bob, session) for session in sessions]
    await stores.sessions.end(offline.key(chat.bob), sessions[0])
    await chat.ann.post(chat.topic, "@bob")
    await offline.push()
    assert (len(ended.pushes), len(open_.pushes)) == (0, 1)
    (device,) = await stores.notification_channels.devices(offline.key(chat.bob))
    assert device.session_id == sessions[1]
    without_session = await offline.add_browser(chat.eve)
    await chat.ann.create_post("@eve")
    await stores.user_administration.deactivate(Actor("acme", chat.ann.id), chat.eve.id, "left")
    await offline.push()
    assert without_session.pushes == []


async def test_direct_message_is_pushed_to_the_others(offline: OfflineScenario) -> None:
    chat = offline.chat
    browsers = [await offline.add_browser(each) for each in (chat.ann, chat.bob)]
    conversation = await start(chat.ann, chat.bob)
    message = await chat.ann.post(conversation, "Are you there?")
    await offline.push()
    of_ann, of_bob = browsers
    (shown,) = of_bob.pushes
    assert (shown["title"], shown["body"]) == ("ann wrote to you", "Are you there?")
    assert shown["place"] == f"#/topic/{conversation}/{message['timestamp']}"
    assert (shown["tag"], shown["keys"]) == (f"#/topic/{conversation}", [shown["place"]])
    assert of_ann.pushes == []
    await offline.push()
    assert len(of_bob.pushes) == 1
    page = await chat.bob.do('{ done: notifications(latest: "now") { items { kind } } }')
    assert page["items"] == [{"kind": "DIRECT_MESSAGE"}]


async def test_message_of_a_stranger_is_pushed_after_acceptance(offline: OfflineScenario) -> None:
    chat = offline.chat
    browser = await offline.add_browser(chat.ann)
    conversation = await start(chat.eve, chat.ann)
    await chat.eve.post(conversation, "Hello")
    await offline.push()
    assert browser.pushes == []
    page = await chat.ann.do('{ done: notifications(latest: "now") { items { kind } } }')
    assert page["items"] == [{"kind": "CONVERSATION_REQUEST"}]
    await chat.ann.do(ACCEPT, id=conversation)
    await chat.eve.post(conversation, "Thank you")
    # The conversation's activity is announced once a second.
    await offline.push()
    assert [each["body"] for each in browser.pushes] == ["Thank you"]


async def test_scan_reads_many_events_in_pages(offline: OfflineScenario, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("storage.notifications.arrivals.PAGE_SIZE", 2)
    browser = await offline.add_browser(offline.chat.bob)
    for n in range(5):
        await offline.chat.ann.post(offline.chat.topic, f"{n} @bob")
        await until_outbox_is_empty(offline.jobs.stores)
    await offline.push()
    assert browser.titles == ["5 new notifications"]
    (shown,) = browser.pushes
    assert shown["tag"] == shown["id"]
    assert len(set(shown["keys"])) == 5


async def test_push_of_a_follower_has_the_key_of_the_notification(offline: OfflineScenario) -> None:
    chat = offline.chat
    ways = [WaysOfCategory(NotificationCategory.FOLLOW, push=True, mail=False)]
    settings = offline.jobs.stores.notification_settings
    await settings.change(offline.key(chat.bob), NotificationSettingsChange(ways=ways))
    browser = await offline.add_browser(chat.bob)
    await chat.ann.do("mutation ($id: ID!) { done: follow(userId: $id) { id } }", id=chat.bob.id)
    await offline.push()
    page = await chat.bob.do('{ done: notifications(latest: "now") { items { timestamp } } }')
    (notification,) = page["items"]
    (shown,) = browser.pushes
    assert shown["tag"] == f"#/person/{chat.ann.id}"
    assert shown["keys"] == [f"{shown['tag']}?{notification['timestamp']}"]


def test_every_kind_has_a_title_in_each_language() -> None:
    assert all({kind.value for kind in NotificationKind} <= texts.keys() for texts in TITLES.values())

"""Digests: each unread notification in one mail at most, at the chosen times, and to addresses that may get mail."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from jobs.mail.aggregation import aggregate_mail
from jobs.notifications import digest_texts, digests
from jobs.notifications.digest_texts import HEADINGS
from jobs.notifications.digests import send_digests
from jobs.providers.mailer import Mailer
from storage.identity.accounts.local_accounts import MailLanguage
from storage.identity.audit import Actor
from storage.identity.mutes import MuteSubject
from storage.identity.roles import Role
from storage.mail.addresses import normalize
from storage.mail.records import DeliveryEvent, DeliveryEventKind, VerdictRule
from storage.mongo.clock import DatabaseClock
from storage.notifications.channels import CHANNELS, ClaimedChannel, NotificationChannels
from storage.notifications.quiet_hours import QuietHours
from storage.notifications.settings import (
    DigestPeriod,
    NotificationCategory,
    NotificationSettingsChange,
    WaysOfCategory,
)
from tests.cancellation import CancelledAwait
from tests.jobs.notifications.conftest import OfflineScenario, address_of
from tests.jobs.notifications.test_push import MARK_TOPIC_READ
from tests.resolvers.chat.test_conversations import start
from tests.resolvers.feed.test_notifications import MARK_READ
from tests.resolvers.people import Person, SignIn
from tests.twins.mail_server import MailServer, mail_server
from tests.unclosed_sockets import may_leave_sockets

pytestmark = pytest.mark.anyio

BOB = "bob@example.org"
CHANGE = NotificationSettingsChange


@pytest.fixture
async def server() -> AsyncIterator[MailServer]:
    async with mail_server() as server:
        yield server


@pytest.fixture
async def bob(offline: OfflineScenario) -> Person:
    """Bob, who has chosen hourly digests."""
    await offline.choose_digests(offline.chat.bob)
    return offline.chat.bob


async def add_delivery_event(offline: OfflineScenario, **fields: Any) -> None:
    """Adds an event about Bob's address to the address book."""
    now = await offline.jobs.stores.mongo.now()
    await offline.jobs.stores.ledger.record("acme", "mx", [DeliveryEvent("e1", BOB, now, **fields)])
    await aggregate(offline)


async def aggregate(offline: OfflineScenario) -> None:
    """Aggregates all waiting delivery events."""
    stores = offline.jobs.stores
    aggregating = asyncio.create_task(aggregate_mail(offline.jobs))
    async with asyncio.timeout(60):
        while await stores.mongo["mail_ledger"].count_documents({"waiting": {"$exists": True}}):
            await asyncio.sleep(0.02)
    aggregating.cancel()
    await asyncio.gather(aggregating, return_exceptions=True)


async def test_unread_notifications_are_one_mail(offline: OfflineScenario, server: MailServer, bob: Person) -> None:
    chat = offline.chat
    message = await chat.ann.post(chat.topic, "Look <b>@bob</b>")
    conversation = await start(chat.ann, bob)
    await chat.ann.post(conversation, "Are you there?")
    assert await offline.mail(server) == 1
    assert await offline.mail(server) == 0
    (mail,) = server.mails
    text, html = offline.text_of(mail), offline.text_of(mail, "html")
    assert (mail["Subject"], mail["To"]) == ("2 unread notifications on Noroshi", "bob <bob@example.org>")
    link = f"http://127.0.0.1:8000/#/topic/{chat.topic}/{message['timestamp']}"
    for part in ("Direct messages", "ann wrote to you", "Are you there?", "Mentions", "ann mentioned you", link):
        assert part in text
        assert part in html
    assert "Look <b>@bob</b>" in text
    assert "Look &lt;b&gt;@bob&lt;/b&gt;" in html
    assert "<b>" not in html


async def test_header_offers_one_click_over_https(offline: OfflineScenario, server: MailServer, bob: Person) -> None:
    jobs = replace(offline.jobs, base_url=f"https://{'a' * 60}.example.org")
    await offline.chat.ann.post(offline.chat.topic, "@bob")
    await offline.mail(server, jobs)
    (mail,) = server.mails
    link = mail["List-Unsubscribe"]
    assert link.startswith(f"<https://{'a' * 60}.example.org/unsubscribe/")
    assert link.endswith(">")
    assert mail["List-Unsubscribe-Post"] == "List-Unsubscribe=One-Click"
    assert link[1:-1] in offline.text_of(mail)
    # Programs that follow links do not decode headers.
    assert f"\r\nList-Unsubscribe: {link}\r\n".encode() in server.contents[0]
    assert not {"bob", "acme", BOB} & set(link.split("/"))


async def test_header_without_https_offers_no_one_click(
    offline: OfflineScenario, server: MailServer, bob: Person
) -> None:
    await offline.chat.ann.post(offline.chat.topic, "@bob")
    await offline.mail(server)
    assert server.mails[0]["List-Unsubscribe"].startswith("<http://127.0.0.1:8000/unsubscribe/")
    assert server.mails[0]["List-Unsubscribe-Post"] is None


async def test_long_digest_in_japanese_shows_the_newest(
    offline: OfflineScenario, server: MailServer, bob: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = 3
    monkeypatch.setattr(digest_texts, "MAX_SHOWN", shown)
    await offline.jobs.stores.notification_settings.change(offline.key(bob), CHANGE(language=MailLanguage.JA))
    for n in range(shown + 2):
        await offline.chat.ann.post(offline.chat.topic, f"{n}. @bob .{n}")
    await offline.mail(server)
    (mail,) = server.mails
    text = offline.text_of(mail)
    assert mail["Subject"] == f"Noroshi の未読の通知 {shown + 2} 件"
    assert (text.count("さんがあなたにメンションしました"), "ほか 2 件" in text) == (shown, True)
    assert f"  {shown + 1}. @bob" in text
    assert "  1. @bob" not in text


def test_every_category_has_a_heading_in_each_language() -> None:
    assert all(headings.keys() == set(NotificationCategory) for headings in HEADINGS.values())


READ_OR_UNWANTED = ["read", "topic read", "mute", "block", "left", "category"]
NO_RECIPIENT = ["never", "unverified", "other address", "deactivated", "erased"]
BLOCKED = ["bounced", "complained", "domain", "unsubscribed"]


@pytest.mark.parametrize("reason", [*READ_OR_UNWANTED, *NO_RECIPIENT, *BLOCKED])
async def test_nothing_is_mailed(offline: OfflineScenario, server: MailServer, bob: Person, reason: str) -> None:
    chat, stores, key = offline.chat, offline.jobs.stores, offline.key(bob)
    message = await chat.ann.post(chat.topic, "@bob")
    await offline.find()
    if reason == "read":
        await bob.run(MARK_READ, at="9999999999.999999")
    elif reason == "topic read":
        await bob.run(MARK_TOPIC_READ, topic=chat.topic, at=message["timestamp"])
    elif reason == "mute":
        await stores.mutes.mute(key, MuteSubject.COMMUNITY, chat.community, None)
    elif reason == "block":
        await bob.block(chat.ann)
    elif reason == "left":
        await bob.leave(chat.community)
    elif reason == "category":
        off = WaysOfCategory(NotificationCategory.MENTION, push=True, mail=False)
        await stores.notification_settings.change(key, CHANGE(ways=[off]))
    elif reason == "never":
        await stores.digests.change_settings(key, CHANGE(digest=DigestPeriod.NEVER))
    elif reason in ("unverified", "other address"):
        address = BOB if reason == "unverified" else "eve@example.org"
        await stores.users.sign_in(*key, [Role.MEMBER], "bob", None, address)
    elif reason == "deactivated":
        await stores.user_administration.deactivate(Actor("acme", chat.ann.id), bob.id, "left")
    elif reason == "erased":
        await stores.erasures.request(Actor(*key), bob.id, "bob")
    elif reason == "bounced":
        await add_delivery_event(offline, smtp_code=550, enhanced_status="5.1.1")
    elif reason == "complained":
        await add_delivery_event(offline, kind=DeliveryEventKind.COMPLAINT)
    elif reason == "domain":
        await stores.address_book.set_domain_blocked("acme", "example.org", True, "olga", "closed")
    else:
        address_in_book = normalize(BOB)
        assert address_in_book is not None
        await stores.address_book.set_unsubscribed("acme", address_in_book, True)
    await offline.mail(server)
    await offline.end_waiting()
    await offline.mail(server)
    assert server.mails == []


async def test_digest_waits_for_the_delay_and_the_period(
    offline: OfflineScenario, server: MailServer, bob: Person
) -> None:
    jobs = replace(offline.jobs, digest_delay_s=600.0)
    channels, now = offline.jobs.stores.mongo[CHANNELS], await offline.jobs.stores.mongo.now()
    await offline.chat.ann.post(offline.chat.topic, "first @bob")
    assert await offline.mail(server, jobs) == 1
    channel = await channels.find_one({})
    assert channel is not None
    assert timedelta(seconds=590) < channel["due"] - now < timedelta(seconds=660)
    await offline.end_waiting()
    assert await offline.mail(server) == 1
    await offline.chat.ann.post(offline.chat.topic, "second @bob")
    assert await offline.mail(server) == 0
    channel = await channels.find_one({})
    assert channel is not None
    assert timedelta(minutes=59) < channel["due"] - now < timedelta(minutes=61)
    await offline.end_waiting()
    assert await offline.mail(server) == 1
    assert ["first @bob" in offline.text_of(mail) for mail in server.mails] == [True, False]
    assert "second @bob" in offline.text_of(server.mails[1])


async def test_conversation_waits_since_its_oldest_unread_message(
    offline: OfflineScenario, server: MailServer, bob: Person
) -> None:
    """A person who writes all the time does not delay the digest for ever."""
    stores, ann = offline.jobs.stores, offline.chat.ann
    conversation = await start(ann, bob)
    first = await ann.post(conversation, "One")
    await offline.find()
    minute = timedelta(minutes=1)
    hours_later = await stores.mongo.now() + 60 * minute
    move = {"$set": {"last": round(hours_later.timestamp() * 1e6)}}
    await stores.mongo[CHANNELS].update_many({}, move)
    now = await stores.mongo.now()
    old = {"t": conversation, "ts": round((now - 20 * minute).timestamp() * 1e6)}
    message = await stores.mongo["messages"].find_one({"_id.t": conversation})
    assert message is not None
    await stores.mongo["messages"].insert_one({**message, "_id": old})
    await stores.mongo[CHANNELS].update_many({}, {"$set": {"sent": 0}})
    await send_digests(jobs_with(offline, server, digest_delay_s=900.0))
    assert [offline.text_of(mail).count("One") for mail in server.mails] == [1]
    assert first["text"] == "One"


def jobs_with(offline: OfflineScenario, server: MailServer, **changes: Any) -> Any:
    """Returns a worker's context that mails by the server."""
    return replace(offline.jobs, mailer=Mailer(server.url, "noroshi@example.org", Path()), **changes)


@pytest.mark.parametrize(
    ("now", "ends_after"),
    [
        # In Berlin, 2027-03-28 has 23 hours and 2027-10-31 has 25 hours.
        ("2027-03-28T00:30:00", timedelta(hours=4, minutes=30)),
        ("2027-10-31T00:30:00", timedelta(hours=5, minutes=30)),
        ("2027-11-24T03:00:00", timedelta(hours=3)),
        ("2027-11-24T12:00:00", None),
    ],
)
async def test_digest_waits_until_quiet_hours_end(
    offline: OfflineScenario,
    server: MailServer,
    bob: Person,
    monkeypatch: pytest.MonkeyPatch,
    now: str,
    ends_after: timedelta | None,
) -> None:
    at = datetime.fromisoformat(now).replace(tzinfo=UTC)
    hours = QuietHours(22 * 60, 7 * 60, "Europe/Berlin")
    await offline.jobs.stores.notification_settings.change(offline.key(bob), CHANGE(quiet_hours=hours))
    await offline.chat.ann.post(offline.chat.topic, "@bob")
    await offline.find()

    async def settable_now(_: DatabaseClock) -> datetime:
        return at

    monkeypatch.setattr(DatabaseClock, "now", settable_now)
    await send_digests(jobs_with(offline, server))
    channel = await offline.jobs.stores.mongo[CHANNELS].find_one({})
    assert channel is not None
    if ends_after is None:
        assert len(server.mails) == 1
    else:
        assert (server.mails, channel["due"].replace(tzinfo=UTC)) == ([], at + ends_after)


async def test_concurrent_workers_mail_once(offline: OfflineScenario, server: MailServer) -> None:
    people = [offline.chat.bob, *[await SignIn(offline.jobs.stores)(f"p{n}") for n in range(7)]]
    for person in people:
        await offline.choose_digests(person)
    await offline.chat.ann.create_post(" ".join(f"@{person.id}" for person in people))
    await asyncio.gather(*(offline.mail(server) for _ in range(4)))
    assert [len(server.to(address_of(person))) for person in people] == [1] * 8


async def test_worker_whose_claim_ended_mails_nothing(
    offline: OfflineScenario, server: MailServer, bob: Person
) -> None:
    await offline.chat.ann.post(offline.chat.topic, "@bob")
    await offline.find()

    async def take_over(step: str) -> None:
        if step == "rcpt":
            server.on_step = None
            await offline.end_waiting()
            assert await offline.mail(server) == 1

    server.on_step = take_over
    await offline.mail(server)
    await offline.end_waiting()
    await offline.mail(server)
    assert len(server.mails) == 1


async def test_lost_answer_counts_as_sent(offline: OfflineScenario, server: MailServer, bob: Person) -> None:
    async def drop(step: str) -> None:
        if step == "content":
            server.on_step = None
            raise ConnectionError

    server.on_step = drop
    await offline.chat.ann.post(offline.chat.topic, "first @bob")
    await offline.mail(server)
    await offline.end_waiting()
    await offline.mail(server)
    await offline.chat.ann.post(offline.chat.topic, "second @bob")
    await offline.find()
    await offline.end_waiting()
    await offline.mail(server)
    assert ["first @bob" in offline.text_of(mail) for mail in server.mails] == [True, False]


@pytest.mark.parametrize("step", ["connect", "mail", "rcpt", "data", "content"])
async def test_delayed_digest_is_sent_later(
    offline: OfflineScenario, server: MailServer, bob: Person, step: str
) -> None:
    server.refusals[step] = [b"451 4.3.0 later", b"554 5.3.2 closed" if step == "connect" else b"451 4.3.0 later"]
    conversation = await start(offline.chat.ann, bob)
    await offline.chat.ann.post(conversation, "Are you there?")
    for _ in range(4):
        await offline.mail(server)
        await offline.end_waiting()
    assert [offline.text_of(mail).count("Are you there?") for mail in server.mails] == [1]
    assert server.refusals[step] == []


async def test_failing_digest_is_given_up(
    offline: OfflineScenario, server: MailServer, bob: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(digests, "MAX_TRIES", 2)
    server.refusals["content"] = [b"451 4.3.0 later"] * 2
    await offline.chat.ann.post(offline.chat.topic, "@bob")
    for _ in range(4):
        await offline.mail(server)
        await offline.end_waiting()
    assert (server.refusals["content"], server.mails) == ([], [])


async def test_refused_address_reaches_the_address_book(
    offline: OfflineScenario, server: MailServer, bob: Person
) -> None:
    server.refusals["rcpt"] = [b"550 5.1.1 <bob@example.org>: no such user"]
    for _ in range(2):
        await offline.chat.ann.post(offline.chat.topic, "@bob")
        await offline.mail(server)
        await offline.end_waiting()
        await aggregate(offline)
    (standing,) = await offline.jobs.stores.address_book.look_up("acme", [BOB])
    assert (standing.verdict.rule, standing.hard_bounce) == (VerdictRule.HARD_BOUNCED, 1)
    assert server.mails == []


@may_leave_sockets
async def test_stopping_worker_transfers_what_it_recorded(
    offline: OfflineScenario, server: MailServer, bob: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SIGTERM cancels the sweeper between the record and the transfer."""
    finish = NotificationChannels.finish

    async def finish_and_stop(channels: NotificationChannels, channel: ClaimedChannel, pause_s: float) -> bool:
        is_recorded = await finish(channels, channel, pause_s)
        worker.cancel()
        await asyncio.sleep(0)
        return is_recorded

    await offline.chat.ann.post(offline.chat.topic, "@bob")
    await offline.find()
    monkeypatch.setattr(NotificationChannels, "finish", finish_and_stop)
    worker = asyncio.create_task(send_digests(jobs_with(offline, server)))
    with pytest.raises(asyncio.CancelledError):
        await worker
    assert len(server.mails) == 1


@may_leave_sockets
async def test_digest_is_mailed_once_however_its_worker_is_cancelled(
    offline: OfflineScenario, server: MailServer, bob: Person
) -> None:
    """A worker is cancelled at each await of its sweep. Another worker sends what this one has not sent."""
    numbers: list[int] = []
    is_cancelled = True
    while is_cancelled:
        numbers.append(len(numbers) + 1)
        await offline.chat.ann.post(offline.chat.topic, f"<{numbers[-1]}> @bob")
        await offline.find()
        await offline.end_waiting()
        sweep = CancelledAwait(send_digests(jobs_with(offline, server)), numbers[-1])
        with contextlib.suppress(asyncio.CancelledError):
            await sweep
        is_cancelled = sweep.awaits >= numbers[-1]
        await offline.end_waiting()
        await offline.mail(server)
    texts = [offline.text_of(mail) for mail in server.mails]
    assert [[f"<{n}>" in text for text in texts].count(True) for n in numbers] == [1] * len(numbers)
    assert len(numbers) > 3


async def test_same_user_id_elsewhere_gets_no_mail(offline: OfflineScenario, server: MailServer, bob: Person) -> None:
    """Two people of two organizations have the same id, and one of them ends digests."""
    sign_in = SignIn(offline.jobs.stores)
    cat, other_bob = await sign_in("cat", "zoo"), await sign_in("bob", "zoo")
    await offline.jobs.stores.users.sign_in(
        "zoo", "bob", [Role.MEMBER], "bob", None, "bob@zoo.example", is_email_verified=True
    )
    key = offline.key(other_bob)
    await cat.create_post("@bob")
    await offline.mail(server)
    assert server.mails == []
    await offline.jobs.stores.digests.change_settings(key, CHANGE(digest=DigestPeriod.DAILY))
    await offline.jobs.stores.digests.change_settings(offline.key(bob), CHANGE(digest=DigestPeriod.NEVER))
    await cat.create_post("@bob again")
    await offline.mail(server)
    assert [mail["To"] for mail in server.mails] == ["bob <bob@zoo.example>"]


async def test_worker_without_address_keys_mails_nothing(
    offline: OfflineScenario, server: MailServer, bob: Person, mongodb_uri: str, redis_url: str, database: str
) -> None:
    from storage.stores import open_stores

    await offline.chat.ann.post(offline.chat.topic, "@bob")
    await offline.find()
    async with open_stores(mongodb_uri, redis_url, database) as stores:
        await send_digests(jobs_with(offline, server, stores=stores))
    assert server.mails == []
    await offline.end_waiting()
    await offline.mail(server)
    assert len(server.mails) == 1

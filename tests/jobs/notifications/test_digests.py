"""Digests: each unread notification in one mail at most, at the chosen times, however workers and servers fail."""

import asyncio
import contextlib
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from jobs.notifications import digests
from jobs.notifications.digests import send_digests
from storage.mongo.clock import DatabaseClock
from storage.notifications.channels import CHANNELS, ClaimedChannel, NotificationChannels
from storage.notifications.quiet_hours import QuietHours
from storage.notifications.settings import NotificationSettingsChange
from tests.cancellation import CancelledAwait
from tests.jobs.notifications.conftest import OfflineScenario, address_of, jobs_with
from tests.resolvers.chat.test_conversations import start
from tests.resolvers.people import Person, SignIn
from tests.twins.mail_server import MailServer
from tests.unclosed_sockets import may_leave_sockets

pytestmark = pytest.mark.anyio

CHANGE = NotificationSettingsChange


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


QUIET_HOURS = [
    # In Berlin, 2027-03-28 has 23 hours and 2027-10-31 has 25 hours.
    ("2027-03-28T00:30:00", timedelta(hours=4, minutes=30)),
    ("2027-10-31T00:30:00", timedelta(hours=5, minutes=30)),
    ("2027-11-24T03:00:00", timedelta(hours=3)),
]


async def test_digest_waits_until_quiet_hours_end(
    offline: OfflineScenario, server: MailServer, bob: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    hours = QuietHours(22 * 60, 7 * 60, "Europe/Berlin")
    await offline.jobs.stores.notification_settings.change(offline.key(bob), CHANGE(quiet_hours=hours))
    await offline.chat.ann.post(offline.chat.topic, "@bob")
    await offline.find()
    for now, ends_after in QUIET_HOURS:
        at = await send_at(offline, server, monkeypatch, now)
        channel = await offline.jobs.stores.mongo[CHANNELS].find_one({})
        assert channel is not None
        assert (server.mails, channel["due"].replace(tzinfo=UTC)) == ([], at + ends_after)
    await send_at(offline, server, monkeypatch, "2027-11-24T12:00:00")
    assert len(server.mails) == 1


async def send_at(offline: OfflineScenario, server: MailServer, monkeypatch: pytest.MonkeyPatch, time: str) -> datetime:
    """Sends the digests that wait, with a clock that shows this time in UTC. Returns the time."""
    at = datetime.fromisoformat(time).replace(tzinfo=UTC)

    async def now(_: DatabaseClock) -> datetime:
        return at

    monkeypatch.setattr(DatabaseClock, "now", now)
    await offline.end_waiting()
    await send_digests(jobs_with(offline, server))
    return at


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


async def test_delayed_digest_is_sent_later(offline: OfflineScenario, server: MailServer, bob: Person) -> None:
    """The server delays at each step of its protocol, one digest at each."""
    conversation = await start(offline.chat.ann, bob)
    steps = ["connect", "mail", "rcpt", "data", "content"]
    for number, step in enumerate(steps):
        closed = b"554 5.3.2 closed" if step == "connect" else b"451 4.3.0 later"
        server.refusals[step] = [b"451 4.3.0 later", closed]
        await offline.chat.ann.post(conversation, f"Are you there at {step}?")
        for _ in range(4):
            await offline.mail(server)
            await offline.end_waiting()
        texts = [offline.text_of(mail) for mail in server.mails]
        assert [f"at {step}?" in text for text in texts] == [False] * number + [True]
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

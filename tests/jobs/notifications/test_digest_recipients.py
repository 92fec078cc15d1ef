"""People who get no digest: they have read or do not want it, or their address must not get mail."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from jobs.mail.aggregation import aggregate_mail
from jobs.notifications.digests import send_digests
from storage.identity.audit import Actor
from storage.identity.mutes import MuteSubject
from storage.identity.roles import Role
from storage.mail.addresses import normalize
from storage.mail.records import DeliveryEvent, DeliveryEventKind, VerdictRule
from storage.notifications.settings import (
    DigestPeriod,
    NotificationCategory,
    NotificationSettingsChange,
    WaysOfCategory,
)
from storage.stores import open_stores
from tests.jobs.notifications.conftest import OfflineScenario, address_of, jobs_with
from tests.jobs.notifications.test_push import MARK_TOPIC_READ
from tests.resolvers.feed.test_notifications import MARK_READ
from tests.resolvers.people import Person, SignIn
from tests.twins.mail_server import MailServer

pytestmark = pytest.mark.anyio

BOB = "bob@example.org"
CHANGE = NotificationSettingsChange
CLOSED_DOMAIN = "closed.example"

Refusal = Callable[[OfflineScenario, Person], Awaitable[object]]
"""Gives a person, who has an unread mention, a reason to get no digest."""


def read_notifications(offline: OfflineScenario, person: Person) -> Awaitable[object]:
    return person.run(MARK_READ, at="9999999999.999999")


async def read_topic(offline: OfflineScenario, person: Person) -> None:
    (newest,) = (await person.page(offline.chat.topic, latest="now", limit=1))["items"]
    await person.run(MARK_TOPIC_READ, topic=offline.chat.topic, at=newest["timestamp"])


def mute(offline: OfflineScenario, person: Person) -> Awaitable[object]:
    mutes = offline.jobs.stores.mutes
    return mutes.mute(offline.key(person), MuteSubject.COMMUNITY, offline.chat.community, None)


def block(offline: OfflineScenario, person: Person) -> Awaitable[object]:
    return person.block(offline.chat.ann)


def leave(offline: OfflineScenario, person: Person) -> Awaitable[object]:
    return person.leave(offline.chat.community)


def end_mails_of_mentions(offline: OfflineScenario, person: Person) -> Awaitable[object]:
    off = WaysOfCategory(NotificationCategory.MENTION, push=True, mail=False)
    return offline.jobs.stores.notification_settings.change(offline.key(person), CHANGE(ways=[off]))


def end_digests(offline: OfflineScenario, person: Person) -> Awaitable[object]:
    return offline.jobs.stores.digests.change_settings(offline.key(person), CHANGE(digest=DigestPeriod.NEVER))


async def sign_in_unverified(offline: OfflineScenario, person: Person, address: str | None = None) -> None:
    """Signs the person in with an address that is not verified, by default the same address as before."""
    arguments = (*offline.key(person), [Role.MEMBER], person.id, None, address or address_of(person))
    await offline.jobs.stores.users.sign_in(*arguments)


def change_address(offline: OfflineScenario, person: Person) -> Awaitable[object]:
    return sign_in_unverified(offline, person, "another@example.org")


def deactivate(offline: OfflineScenario, person: Person) -> Awaitable[object]:
    actor = Actor("acme", offline.chat.ann.id)
    return offline.jobs.stores.user_administration.deactivate(actor, person.id, "left")


def erase(offline: OfflineScenario, person: Person) -> Awaitable[object]:
    return offline.jobs.stores.erasures.request(Actor(*offline.key(person)), person.id, person.id)


def bounce(offline: OfflineScenario, person: Person) -> Awaitable[object]:
    return add_delivery_event(offline, person, smtp_code=550, enhanced_status="5.1.1")


def complain(offline: OfflineScenario, person: Person) -> Awaitable[object]:
    return add_delivery_event(offline, person, kind=DeliveryEventKind.COMPLAINT)


def unsubscribe(offline: OfflineScenario, person: Person) -> Awaitable[object]:
    address = normalize(address_of(person))
    assert address is not None
    return offline.jobs.stores.address_book.set_unsubscribed("acme", address, True)


async def close_domain(offline: OfflineScenario, person: Person) -> None:
    """Moves the person's verified address to a domain that the address book blocks."""
    arguments = (*offline.key(person), [Role.MEMBER], person.id, None, f"{person.id}@{CLOSED_DOMAIN}")
    await offline.jobs.stores.users.sign_in(*arguments, is_email_verified=True)
    await offline.jobs.stores.address_book.set_domain_blocked("acme", CLOSED_DOMAIN, True, "olga", "closed")


READ_OR_UNWANTED: list[Refusal] = [read_notifications, read_topic, mute, block, leave, end_mails_of_mentions]
NO_RECIPIENT: list[Refusal] = [end_digests, sign_in_unverified, change_address, deactivate, erase]
BLOCKED: list[Refusal] = [bounce, complain, unsubscribe, close_domain]


async def add_delivery_event(offline: OfflineScenario, person: Person, **fields: Any) -> None:
    """Adds an event about the person's address to the address book."""
    event = DeliveryEvent(person.id, address_of(person), await offline.jobs.stores.mongo.now(), **fields)
    await offline.jobs.stores.ledger.record("acme", "mx", [event])
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


async def test_only_wanted_and_allowed_digest_is_mailed(offline: OfflineScenario, server: MailServer) -> None:
    """A message mentions one person for each reason to get no digest, and one person without a reason."""
    refusals = [*READ_OR_UNWANTED, *NO_RECIPIENT, *BLOCKED]
    people = [await SignIn(offline.jobs.stores)(f"p{n}") for n in range(len(refusals) + 1)]
    for person in people:
        await person.join(offline.chat.community)
        await offline.choose_digests(person)
    await offline.chat.ann.post(offline.chat.topic, " ".join(f"@{person.id}" for person in people))
    await offline.find()
    for refusal, person in zip(refusals, people, strict=False):
        await refusal(offline, person)
    await offline.mail(server)
    await offline.end_waiting()
    await offline.mail(server)
    reasons = dict(zip([person.id for person in people], [each.__name__ for each in refusals], strict=False))
    recipients = [mail["To"].split()[0] for mail in server.mails]
    assert [reasons.get(name, "none") for name in recipients] == ["none"]


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
    await offline.chat.ann.post(offline.chat.topic, "@bob")
    await offline.find()
    async with open_stores(mongodb_uri, redis_url, database) as stores:
        await send_digests(jobs_with(offline, server, stores=stores))
    assert server.mails == []
    await offline.end_waiting()
    await offline.mail(server)
    assert len(server.mails) == 1

"""The team gets one summary a day, by mail, of posts that may need a person, if the settings allow it."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta

import pytest

from jobs.notifications.publication_summaries import send_publication_summaries
from storage.identity.accounts.local_accounts import MailLanguage
from storage.identity.roles import Role
from storage.notifications.quiet_hours import QuietHours
from storage.notifications.settings import NotificationCategory, NotificationSettingsChange, WaysOfCategory
from storage.publishing.records import HomeFeedTarget
from storage.publishing.scheduling import NewScheduledPost
from storage.publishing.transitions import MarkFailed
from tests.jobs.notifications.conftest import OfflineScenario, address_of, jobs_with
from tests.jobs.notifications.test_digest_recipients import bounce, unsubscribe
from tests.resolvers.people import Person, until_outbox_is_empty
from tests.twins.mail_server import MailServer

pytestmark = pytest.mark.anyio

CHANGE = NotificationSettingsChange
Refusal = Callable[[OfflineScenario, Person], Awaitable[object]]


async def make_operator(offline: OfflineScenario, person: Person) -> None:
    """Gives a person the role OPERATOR and a verified mail address."""
    arguments = (*offline.key(person), [Role.OPERATOR], person.id, None, address_of(person))
    await offline.jobs.stores.users.sign_in(*arguments, is_email_verified=True)


async def fail_post(offline: OfflineScenario, text: str) -> str:
    """Lets a post of Ann fail. Returns its id."""
    stores = offline.jobs.stores
    due_at = await stores.mongo.now() + timedelta(seconds=2)
    new = NewScheduledPost("acme", "ann", text, (), (HomeFeedTarget("ann"),), due_at, "UTC", 3600)
    post = await stores.scheduled_posts.schedule(new, None)
    (claimed,) = await stores.claims.claim(10)
    await stores.scheduled_posts.apply(MarkFailed(claimed, "REFUSED", "no"))
    await until_outbox_is_empty(stores)
    return post.id


async def pass_night(offline: OfflineScenario) -> None:
    """Moves the beginning of the reports, and the summaries that were sent, to the day before."""
    back_ms, mongo = 25 * 3_600_000, offline.jobs.stores.mongo
    since = {"$subtract": ["$since", back_ms]}
    await mongo["publication_problems"].update_many({}, [{"$set": {"since": since}}])
    sent = {"at": {"$subtract": ["$at", back_ms]}, "day": "2000-01-01"}
    await mongo["publication_summaries"].update_many({}, [{"$set": sent}])


async def make_due(offline: OfflineScenario) -> None:
    """Ends the pause of every organization."""
    problems = offline.jobs.stores.mongo["publication_problems"]
    await problems.update_many({}, [{"$set": {"due": "$$NOW"}}])


async def send_summaries(offline: OfflineScenario, server: MailServer, workers: int = 1) -> None:
    """Looks at every organization once more."""
    await make_due(offline)
    jobs = jobs_with(offline, server)
    await asyncio.gather(*(send_publication_summaries(jobs) for _ in range(workers)))


async def test_team_gets_one_summary_a_day(offline: OfflineScenario, server: MailServer) -> None:
    await make_operator(offline, offline.chat.bob)
    post = await fail_post(offline, "High **water**")
    await send_summaries(offline, server)
    assert server.mails == []
    await pass_night(offline)
    for _ in range(2):
        await send_summaries(offline, server, workers=3)
    (mail,) = server.mails
    assert mail["To"] == "bob <bob@example.org>"
    assert mail["List-Unsubscribe"] is not None
    for kind in ("plain", "html"):
        text = offline.text_of(mail, kind)
        for words in ("Not published (1)", "High water", f"#/publishing/calendar/today/{post}"):
            assert words in text
    assert "Published late" not in offline.text_of(mail)
    await fail_post(offline, "Low water")
    await pass_night(offline)
    await send_summaries(offline, server)
    assert len(server.mails) == 2
    assert "Low water" in offline.text_of(server.mails[1])


async def test_summary_is_in_the_language_of_the_person(offline: OfflineScenario, server: MailServer) -> None:
    bob = offline.chat.bob
    await make_operator(offline, bob)
    settings = offline.jobs.stores.notification_settings
    await settings.change(offline.key(bob), CHANGE(language=MailLanguage.JA))
    await fail_post(offline, "満潮")
    await pass_night(offline)
    await send_summaries(offline, server)
    (mail,) = server.mails
    assert "公開できなかった投稿（1 件）" in offline.text_of(mail)


def end_mails(offline: OfflineScenario, person: Person) -> Awaitable[object]:
    off = WaysOfCategory(NotificationCategory.PUBLICATION, push=True, mail=False)
    return offline.jobs.stores.notification_settings.change(offline.key(person), CHANGE(ways=[off]))


async def be_quiet(offline: OfflineScenario, person: Person) -> None:
    """Makes the present hours quiet."""
    now = await offline.jobs.stores.mongo.now()
    begin = (now.hour * 60 + now.minute - 60) % 1440
    change = CHANGE(quiet_hours=QuietHours(begin, (begin + 180) % 1440, "UTC"))
    await offline.jobs.stores.notification_settings.change(offline.key(person), change)


def be_unverified(offline: OfflineScenario, person: Person) -> Awaitable[object]:
    arguments = (*offline.key(person), [Role.OPERATOR], person.id, None, "another@example.org")
    return offline.jobs.stores.users.sign_in(*arguments)


def lose_role(offline: OfflineScenario, person: Person) -> Awaitable[object]:
    return offline.jobs.stores.users.sign_in(*offline.key(person), [Role.MEMBER], person.id, None)


@pytest.mark.parametrize("refuse", [end_mails, be_quiet, be_unverified, lose_role, bounce, unsubscribe])
async def test_refused_summary_is_not_mailed(offline: OfflineScenario, server: MailServer, refuse: Refusal) -> None:
    for person in (offline.chat.bob, offline.chat.eve):
        await make_operator(offline, person)
    await refuse(offline, offline.chat.bob)
    await fail_post(offline, "High water")
    await pass_night(offline)
    await send_summaries(offline, server)
    assert [mail["To"] for mail in server.mails] == ["eve <eve@example.org>"]


async def test_summary_that_is_refused_for_now_is_sent_later(offline: OfflineScenario, server: MailServer) -> None:
    await make_operator(offline, offline.chat.bob)
    await fail_post(offline, "High water")
    await pass_night(offline)
    server.refusals = {"content": [b"451 4.3.0 later"]}
    await send_summaries(offline, server)
    assert server.mails == []
    await send_summaries(offline, server)
    assert len(server.mails) == 1


async def test_summary_that_is_refused_for_good_is_not_repeated(offline: OfflineScenario, server: MailServer) -> None:
    await make_operator(offline, offline.chat.bob)
    await fail_post(offline, "High water")
    await pass_night(offline)
    server.refusals = {"rcpt": [b"550 5.7.1 no"]}
    for _ in range(2):
        await send_summaries(offline, server)
    assert server.mails == []


async def test_interrupted_transfer_is_no_second_summary(offline: OfflineScenario, server: MailServer) -> None:
    """The connection ends when the mail has arrived: the server may have it."""

    async def cut(step: str) -> None:
        if step == "content":
            raise ConnectionResetError

    await make_operator(offline, offline.chat.bob)
    await fail_post(offline, "High water")
    await pass_night(offline)
    server.on_step = cut
    await send_summaries(offline, server)
    server.on_step = None
    await send_summaries(offline, server)
    assert len(server.mails) == 1


async def test_organization_without_problems_is_closed(offline: OfflineScenario, server: MailServer) -> None:
    await make_operator(offline, offline.chat.bob)
    await fail_post(offline, "High water")
    stores = offline.jobs.stores
    await send_summaries(offline, server)
    assert await stores.mongo["publication_problems"].count_documents({}) == 1
    await stores.mongo["publications"].update_many({}, {"$set": {"state": "CANCELLED"}})
    await pass_night(offline)
    await send_summaries(offline, server)
    assert (await stores.mongo["publication_problems"].count_documents({}), server.mails) == (0, [])

"""People of a topic, a push service, a mail server, and a worker's context that pushes without delay."""

import ssl
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from email.message import EmailMessage
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import pytest

from jobs.context import JobContext
from jobs.notifications.digests import send_digests
from jobs.notifications.push import find_arrivals, send_pushes
from jobs.providers.egress import Egress
from jobs.providers.mailer import Mailer
from jobs.providers.web_push import WebPush
from storage.ids import UserKey
from storage.notifications.channels import CHANNELS, PushSubscription
from storage.notifications.settings import DigestPeriod, NotificationSettingsChange
from storage.secrets.vapid_keys import new_vapid_key
from storage.stores import Stores
from tests.jobs.contexts import job_context
from tests.resolvers.people import ChatScenario, Person, SignIn, until_outbox_is_empty
from tests.twins.mail_server import MailServer, mail_server
from tests.twins.push_service import PushService, SubscribedBrowser, push_service


@dataclass
class OfflineScenario:
    """Ann, Bob and Eve, who are offline, and a worker."""

    chat: ChatScenario
    service: PushService
    jobs: JobContext
    vapid_key: str

    async def add_browser(self, person: Person, session_id: str | None = None) -> SubscribedBrowser:
        """Registers a new browser of the person."""
        browser = self.service.browser()
        subscription = PushSubscription(browser.url, browser.public_key, browser.auth_secret)
        assert person.user is not None
        await self.jobs.stores.notification_channels.add_device(person.user.key, subscription, session_id, None)
        return browser

    async def find(self) -> None:
        """Finds what has arrived until now."""
        await until_outbox_is_empty(self.jobs.stores)
        await find_arrivals(self.jobs)

    async def push(self) -> int:
        """Finds what has arrived, and pushes it. Returns how many devices were due."""
        await self.find()
        return await send_pushes(self.jobs)

    async def choose_digests(self, person: Person, period: DigestPeriod = DigestPeriod.HOURLY) -> None:
        """Gives a person a verified mail address, and turns digests on."""
        assert person.user is not None
        user = person.user
        await self.jobs.stores.users.sign_in(
            *(*user.key, list(user.roles), user.name, None, address_of(person)), is_email_verified=True
        )
        await self.jobs.stores.digests.change_settings(user.key, NotificationSettingsChange(digest=period))

    async def mail(self, server: MailServer, jobs: JobContext | None = None) -> int:
        """Finds what has arrived, and mails it. Returns how many digests were due."""
        await self.find()
        mailer = Mailer(server.url, "Noroshi <noroshi@example.org>", Path())
        return await send_digests(replace(jobs or self.jobs, mailer=mailer))

    @staticmethod
    def text_of(mail: EmailMessage, kind: str = "plain") -> str:
        """Returns the text of a mail, or its HTML."""
        part = mail.get_body((kind,))
        assert part is not None
        return str(part.get_content())

    async def end_waiting(self) -> None:
        """Makes all channels due that wait: for the end of a claim, of a pause, or of quiet hours."""
        past = [{"$set": {"due": {"$subtract": ["$$NOW", 1000]}}}]
        await self.jobs.stores.mongo[CHANNELS].update_many({"due": {"$exists": True}}, past)

    def key(self, person: Person) -> UserKey:
        assert person.user is not None
        return person.user.key


@dataclass(frozen=True)
class RunningService:
    """The push service of a module's tests, and the client's context that trusts its certificate."""

    service: PushService
    trust: ssl.SSLContext
    certificate: Path


def address_of(person: Person) -> str:
    """Returns the mail address of a person."""
    return f"{person.id}@example.org"


def jobs_with(offline: OfflineScenario, server: MailServer, **changes: Any) -> JobContext:
    """Returns a worker's context that mails by the server."""
    return replace(offline.jobs, mailer=Mailer(server.url, "noroshi@example.org", Path()), **changes)


@pytest.fixture(scope="module")
async def running_service(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[RunningService]:
    folder = tmp_path_factory.mktemp("push-service")
    async with push_service(folder) as (service, trust):
        yield RunningService(service, trust, folder / "certificate.pem")


@pytest.fixture
async def offline(stores: Stores, running_service: RunningService, tmp_path: Path) -> AsyncIterator[OfflineScenario]:
    sign_in = SignIn(stores)
    ann, bob, eve = [await sign_in(name) for name in ("ann", "bob", "eve")]
    community = await ann.create_community()
    await bob.join(community)
    chat = ChatScenario(ann, bob, eve, community, await ann.create_topic(community))
    key = new_vapid_key()
    egress = Egress((ip_network("127.0.0.0/8"),), ssl_context=running_service.trust)
    web_push = WebPush(egress.transport, key, "mailto:operator@example.org")
    mailer = Mailer(None, "noroshi@example.org", tmp_path / "mail")
    jobs = job_context(stores, egress, mailer=mailer, web_push=web_push)
    scenario = OfflineScenario(chat, running_service.service, jobs, key.private_text)
    await scenario.find()
    yield scenario
    running_service.service.on_push = None
    await egress.aclose()


@pytest.fixture
async def server() -> AsyncIterator[MailServer]:
    """A mail server that keeps what it gets."""
    async with mail_server() as server:
        yield server


@pytest.fixture
async def bob(offline: OfflineScenario) -> Person:
    """Bob, who has chosen hourly digests."""
    await offline.choose_digests(offline.chat.bob)
    return offline.chat.bob

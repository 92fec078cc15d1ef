"""The link of a digest ends digests without a sign-in: by POST only, for its person only, and however often."""

import asyncio
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from pathlib import Path

import httpx2
import pytest
from starlette.applications import Starlette

from jobs.account_mails import send_account_mails
from jobs.providers.mailer import Mailer
from server.http.unsubscribe import TEXTS, unsubscribe_route
from storage.identity.accounts.local_accounts import MailLanguage
from storage.identity.accounts.mails import AccountMailKind
from storage.identity.audit import Actor
from storage.identity.roles import Role
from storage.ids import UserKey
from storage.mail.records import VerdictRule
from storage.notifications.channels import CHANNELS
from storage.notifications.settings import DigestPeriod, NotificationSettingsChange
from storage.secrets.unsubscribe_links import VALID_S, UnsubscribeLinks, UnsubscribeTarget
from storage.stores import Stores
from tests.jobs.contexts import job_context
from tests.resolvers.people import Person

pytestmark = pytest.mark.anyio

ANN = UserKey("acme", "ann")
ADDRESS = "Ann@example.org"
ONE_CLICK = "List-Unsubscribe=One-Click"
FORM = "application/x-www-form-urlencoded"
CHANGE = """mutation ($digest: DigestPeriod!) { done: setNotificationSettings(input: { digest: $digest }) {
  digest digestAddress digestObstacle } }"""


@dataclass
class Unsubscribing:
    """Ann, who gets digests, and the link of one."""

    stores: Stores
    http: httpx2.AsyncClient
    link: str
    ann: Person

    async def digest(self, person: UserKey = ANN) -> DigestPeriod:
        return (await self.stores.notification_settings.get(person)).digest

    async def rule(self, organization_id: str = "acme") -> VerdictRule:
        (standing,) = await self.stores.address_book.look_up(organization_id, [ADDRESS])
        return standing.verdict.rule


@pytest.fixture
async def scenario(stores: Stores) -> AsyncIterator[Unsubscribing]:
    for organization_id in ("acme", "zoo"):
        user = await stores.users.sign_in(
            organization_id, "ann", [Role.MEMBER], "Ann", None, ADDRESS, is_email_verified=True
        )
        await stores.digests.change_settings(user.key, NotificationSettingsChange(digest=DigestPeriod.DAILY))
    ann = Person(stores, await stores.users.get(*ANN), frozenset({Role.MEMBER}))
    links = UnsubscribeLinks("http://test", b"secret")
    app = Starlette(routes=[unsubscribe_route(stores, links)])
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app)) as http:
        yield Unsubscribing(stores, http, links.link(UnsubscribeTarget(ANN, ADDRESS, "en")), ann)


@pytest.mark.parametrize("method", ["GET", "HEAD"])
async def test_opening_the_link_shows_a_button_and_changes_nothing(scenario: Unsubscribing, method: str) -> None:
    answer = await scenario.http.request(method, scenario.link)
    assert answer.status_code == 200
    assert method == "HEAD" or f"<button>{TEXTS[MailLanguage.EN].button}</button>" in answer.text
    assert answer.headers["cache-control"] == "no-store"
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert (await scenario.digest(), await scenario.rule()) == (DigestPeriod.DAILY, VerdictRule.UNKNOWN_ADDRESS)


@pytest.mark.parametrize(("body", "content_type"), [(ONE_CLICK, FORM), ("", FORM), ("x" * 100_000, "text/plain")])
async def test_one_click_ends_digests_and_blocks_the_address(
    scenario: Unsubscribing, body: str, content_type: str
) -> None:
    """Neither a cookie nor a header is needed. Repetitions and another organization change nothing."""
    headers = {"content-type": content_type}
    answers = await asyncio.gather(
        *(scenario.http.post(scenario.link, content=body, headers=headers) for _ in range(4))
    )
    answers.append(await scenario.http.post(scenario.link, content=body, headers=headers))
    assert {each.status_code for each in answers} == {200}
    assert TEXTS[MailLanguage.EN].done in answers[0].text
    assert (await scenario.digest(), await scenario.rule()) == (DigestPeriod.NEVER, VerdictRule.UNSUBSCRIBED)
    assert [each["org"] async for each in scenario.stores.mongo[CHANNELS].find()] == ["zoo"]
    assert await scenario.digest(UserKey("zoo", "ann")) is DigestPeriod.DAILY
    assert await scenario.rule("zoo") is VerdictRule.UNKNOWN_ADDRESS


async def test_page_has_the_language_of_the_mail(scenario: Unsubscribing) -> None:
    links = UnsubscribeLinks("http://test", b"secret")
    link = links.link(UnsubscribeTarget(ANN, ADDRESS, "ja"))
    page = (await scenario.http.get(link)).text
    assert '<html lang="ja">' in page
    assert TEXTS[MailLanguage.JA].question in page
    assert TEXTS[MailLanguage.JA].done in (await scenario.http.post(link)).text


async def test_wrong_and_old_links_do_nothing(scenario: Unsubscribing, monkeypatch: pytest.MonkeyPatch) -> None:
    other = UnsubscribeLinks("http://test", b"another secret").link(UnsubscribeTarget(ANN, ADDRESS, "en"))
    for wrong in (scenario.link[:-6], other, "http://test/unsubscribe/ann", f"http://test/unsubscribe/{'a' * 9000}"):
        assert (await scenario.http.post(wrong)).status_code == 404
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + VALID_S + 5)
    assert (await scenario.http.post(scenario.link)).status_code == 404
    assert (await scenario.digest(), await scenario.rule()) == (DigestPeriod.DAILY, VerdictRule.UNKNOWN_ADDRESS)


def test_link_shows_no_personal_data() -> None:
    links = UnsubscribeLinks("http://test", b"secret")
    target = UnsubscribeTarget(UserKey("organization", "person"), ADDRESS, "en")
    token = links.link(target).rpartition("/")[2]
    assert links.open(token) == target
    assert not any(part in token for part in ("organization", "person", "example"))


async def test_person_turns_digests_on_again(scenario: Unsubscribing) -> None:
    shown = await scenario.ann.do(CHANGE, digest="HOURLY")
    assert shown == {"digest": "HOURLY", "digestAddress": ADDRESS, "digestObstacle": None}
    await scenario.http.post(scenario.link)
    shown = await scenario.ann.do(CHANGE, digest="NEVER")
    assert shown == {"digest": "NEVER", "digestAddress": ADDRESS, "digestObstacle": "UNSUBSCRIBED"}
    shown = await scenario.ann.do(CHANGE, digest="WEEKLY")
    assert shown == {"digest": "WEEKLY", "digestAddress": ADDRESS, "digestObstacle": None}
    assert await scenario.rule() is not VerdictRule.UNSUBSCRIBED


async def test_account_mails_still_arrive(scenario: Unsubscribing, tmp_path: Path) -> None:
    await scenario.http.post(scenario.link)
    jobs = job_context(scenario.stores, mailer=Mailer(None, "noroshi@example.org", tmp_path))
    await scenario.stores.account_mails.add(AccountMailKind.REGISTRATION, "acme", ADDRESS.lower(), MailLanguage.EN)
    await send_account_mails(jobs)
    assert len(list(tmp_path.iterdir())) == 1


async def test_link_of_an_erased_person_stores_no_settings(scenario: Unsubscribing) -> None:
    """The erasure may delete the settings at any moment, and nothing may store them again."""
    await scenario.stores.erasures.request(Actor(*ANN), "ann", "ann")
    assert (await scenario.http.post(scenario.link)).status_code == 200
    assert await scenario.digest() is DigestPeriod.DAILY
    assert await scenario.rule() is VerdictRule.UNSUBSCRIBED


async def test_link_without_address_keys_ends_digests(
    scenario: Unsubscribing, mongodb_uri: str, redis_url: str, database: str
) -> None:
    from storage.stores import open_stores

    links = UnsubscribeLinks("http://test", b"secret")
    async with open_stores(mongodb_uri, redis_url, database) as stores:
        app = Starlette(routes=[unsubscribe_route(stores, links)])
        async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app)) as http:
            answer = await http.post(scenario.link)
        shown = await replace(scenario.ann, stores=stores).do(CHANGE, digest="NEVER")
    assert answer.status_code == 200
    assert await scenario.digest() is DigestPeriod.NEVER
    assert shown["digestObstacle"] == "NOT_SET_UP"


@pytest.mark.parametrize(("address", "is_verified"), [(None, False), (ADDRESS, False)])
async def test_settings_say_that_no_address_is_verified(
    scenario: Unsubscribing, address: str | None, is_verified: bool
) -> None:
    user = await scenario.stores.users.sign_in(
        "acme", "bob", [Role.MEMBER], "Bob", None, address, is_email_verified=is_verified
    )
    bob = Person(scenario.stores, user, frozenset({Role.MEMBER}))
    shown = await bob.do(CHANGE, digest="DAILY")
    assert shown == {"digest": "DAILY", "digestAddress": None, "digestObstacle": "NO_VERIFIED_ADDRESS"}

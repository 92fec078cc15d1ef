"""Strangers who guess passwords, and members who change theirs often, keep nobody else from signing in."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from itertools import cycle
from typing import Any

import httpx2
import orjson
import pytest

from storage.errors import RateLimited
from storage.identity.accounts.attempt_limits import (
    PASSWORD_CHOICES_OF_ACCOUNT,
    SIGN_INS_BY_KNOWN_BROWSER,
    SIGN_INS_OF_ACCOUNT,
)
from storage.identity.accounts.tokens import TokenPurpose, TokenSubject
from storage.identity.audit import Actor
from storage.ids import new_id
from storage.stores import Stores
from tests.browser_sessions import CLIENT
from tests.http_errors import error_of
from tests.server.http.conftest import ORG
from tests.serving import WebProcess
from tests.storage.identity.accounts.conftest import PASSWORD, new_invitation

pytestmark = pytest.mark.anyio

OTHER_PASSWORD = "another beacon on the hill"


@pytest.fixture
async def http(web: WebProcess) -> AsyncIterator[httpx2.AsyncClient]:
    async with httpx2.AsyncClient(base_url=web.url, timeout=60) as http:
        yield http


class CookieBrowser:
    """A browser that keeps every cookie."""

    def __init__(self, http: httpx2.AsyncClient) -> None:
        self._http = http
        self.cookies: dict[str, str] = {}

    async def post(self, path: str, **body: object) -> tuple[int, dict[str, Any]]:
        """Sends a request. Returns the status and the answer."""
        cookies = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        response = await self._http.post(path, json=body, headers={**CLIENT, "cookie": cookies})
        for header in response.headers.get_list("set-cookie"):
            name, _, value = header.partition(";")[0].partition("=")
            self.cookies[name] = value
        return response.status_code, orjson.loads(response.content)

    async def sign_in(self, address: str, password: str = PASSWORD) -> int:
        """Tries to sign in. Returns the status."""
        return (await self.post("/sign-in/password", address=address, password=password))[0]


async def register(stores: Stores, http: httpx2.AsyncClient, admin: Actor) -> tuple[CookieBrowser, str]:
    """Registers a person. Returns the person's browser and address."""
    address, browser = f"{new_id()}@example.org", CookieBrowser(http)
    created = await stores.invitations.create(admin, new_invitation(address=address), None)
    status, answer = await browser.post("/accounts", invitation=created.token, name="Bea", password=PASSWORD)
    assert status == 201, answer
    return browser, address


async def use_up_sign_ins(stores: Stores, address: str) -> None:
    """Counts as many attempts at the account as strangers have."""
    with suppress(RateLimited):
        while True:
            await stores.attempt_limits.count([(SIGN_INS_OF_ACCOUNT, f"{ORG}\n{address}")])


async def new_reset_token(stores: Stores, address: str) -> str:
    """Returns the token of a link to reset the password."""
    account = await stores.local_accounts.find(ORG, address)
    assert account is not None
    return await stores.account_tokens.issue(TokenPurpose.RESET, TokenSubject(ORG, account.user_id, address))


async def test_known_browser_signs_in_while_strangers_guess(
    web_stores: Stores, http: httpx2.AsyncClient, admin: Actor
) -> None:
    browser, address = await register(web_stores, http, admin)
    await browser.post("/sign-out")
    await use_up_sign_ins(web_stores, address)
    assert await CookieBrowser(http).sign_in(address) == 429
    assert await browser.sign_in(address) == 200


async def test_browser_of_a_sign_in_is_known(web_stores: Stores, http: httpx2.AsyncClient, admin: Actor) -> None:
    _, address = await register(web_stores, http, admin)
    browser = CookieBrowser(http)
    assert await browser.sign_in(address) == 200
    await use_up_sign_ins(web_stores, address)
    assert await browser.sign_in(address) == 200


async def test_right_passwords_of_a_known_browser_use_nothing_up(
    web_stores: Stores, http: httpx2.AsyncClient, admin: Actor
) -> None:
    browser, address = await register(web_stores, http, admin)
    first_cookies = dict(browser.cookies)
    await use_up_sign_ins(web_stores, address)
    for _ in range(SIGN_INS_BY_KNOWN_BROWSER.burst + 1):
        browser.cookies = dict(first_cookies)
        assert await browser.sign_in(address) == 200


async def test_guesses_by_a_known_browser_are_limited(
    web_stores: Stores, http: httpx2.AsyncClient, admin: Actor
) -> None:
    browser, address = await register(web_stores, http, admin)
    other = CookieBrowser(http)
    assert await other.sign_in(address) == 200
    await use_up_sign_ins(web_stores, address)
    guesses = (browser.sign_in(address, "wrong guess") for _ in range(SIGN_INS_BY_KNOWN_BROWSER.burst + 3))
    statuses = sorted(await asyncio.gather(*guesses))
    assert statuses == [401] * SIGN_INS_BY_KNOWN_BROWSER.burst + [429] * 3
    assert await browser.sign_in(address) == 429
    assert await other.sign_in(address) == 200


async def test_known_browser_without_own_attempts_is_like_others(
    web_stores: Stores, http: httpx2.AsyncClient, admin: Actor
) -> None:
    """Somebody who stole the cookie can use up its attempts. The person then has those of every browser."""
    browser, address = await register(web_stores, http, admin)
    for _ in range(SIGN_INS_BY_KNOWN_BROWSER.burst):
        assert await browser.sign_in(address, "wrong guess") == 401
    assert await browser.sign_in(address) == 200


async def test_browser_of_another_account_learns_nothing(
    web_stores: Stores, http: httpx2.AsyncClient, admin: Actor
) -> None:
    browser, _ = await register(web_stores, http, admin)
    _, known = await register(web_stores, http, admin)
    answers = []
    for address in (known, f"{new_id()}@example.org"):
        wrong = await browser.post("/sign-in/password", address=address, password="wrong guess")
        await use_up_sign_ins(web_stores, address)
        status, answer = await browser.post("/sign-in/password", address=address, password=PASSWORD)
        refused = error_of(answer)
        assert refused["retryAfterMs"] > 0
        answers.append((wrong, status, refused["code"]))
    assert answers[0] == answers[1]
    assert answers[0][1] == 429


async def test_new_password_forgets_all_other_browsers(
    web_stores: Stores, http: httpx2.AsyncClient, admin: Actor
) -> None:
    browser, address = await register(web_stores, http, admin)
    changing = CookieBrowser(http)
    assert await changing.sign_in(address) == 200
    await use_up_sign_ins(web_stores, address)
    passwords = {"currentPassword": PASSWORD, "password": OTHER_PASSWORD}
    assert await changing.post("/accounts/password", **passwords) == (200, {})
    assert await browser.sign_in(address, OTHER_PASSWORD) == 429
    assert await changing.sign_in(address, OTHER_PASSWORD) == 200
    resetting, token = CookieBrowser(http), await new_reset_token(web_stores, address)
    assert await resetting.post("/accounts/reset", reset=token, password=PASSWORD) == (200, {})
    assert await changing.sign_in(address) == 429
    assert await resetting.sign_in(address) == 200


async def test_password_changes_are_limited_though_they_succeed(
    web_stores: Stores, http: httpx2.AsyncClient, admin: Actor
) -> None:
    browser, address = await register(web_stores, http, admin)
    passwords, statuses = cycle([PASSWORD, OTHER_PASSWORD]), []
    current = next(passwords)
    for _ in range(PASSWORD_CHOICES_OF_ACCOUNT.burst + 1):
        new = next(passwords)
        statuses.append((await browser.post("/accounts/password", currentPassword=current, password=new))[0])
        current = new
    assert statuses == [200] * PASSWORD_CHOICES_OF_ACCOUNT.burst + [429]
    token = await new_reset_token(web_stores, address)
    status, answer = await browser.post("/accounts/reset", reset=token, password=PASSWORD)
    assert (status, error_of(answer)["code"]) == (429, "RATE_LIMITED")


async def test_wrong_passwords_use_no_choices_up(web_stores: Stores, http: httpx2.AsyncClient, admin: Actor) -> None:
    """Somebody at an unlocked computer can't keep the person from resetting the password."""
    browser, address = await register(web_stores, http, admin)
    change = {"currentPassword": "wrong guess", "password": OTHER_PASSWORD}
    statuses = [
        (await browser.post("/accounts/password", **change))[0] for _ in range(SIGN_INS_BY_KNOWN_BROWSER.burst + 1)
    ]
    assert statuses == [400] * SIGN_INS_BY_KNOWN_BROWSER.burst + [429]
    token = await new_reset_token(web_stores, address)
    assert await browser.post("/accounts/reset", reset=token, password=OTHER_PASSWORD) == (200, {})

"""Each named limit of sign-ins, mails and links refuses a request once it is used up."""

from collections.abc import AsyncIterator
from dataclasses import replace

import httpx2
import pytest

from storage.identity.accounts.attempt_limits import (
    LINKS_BY_CLIENT,
    MAILS_BY_CLIENT,
    MAILS_OF_ORGANIZATION,
    MAILS_TO_ADDRESS,
    SIGN_INS_BY_CLIENT,
    SIGN_INS_OF_ACCOUNT,
    SIGN_INS_OF_ACCOUNT_BY_CLIENT,
    AttemptLimit,
    client_key,
)
from storage.identity.audit import Actor
from storage.stores import Stores
from tests.http_errors import error_of
from tests.server.http.accounts.test_routes import SessionBrowser, register
from tests.server.http.conftest import ORG
from tests.serving import WebProcess
from tests.storage.identity.accounts.conftest import PASSWORD

pytestmark = pytest.mark.anyio

CLIENT_KEY = client_key("127.0.0.1")


WEB_SETTINGS = {"NOROSHI_OPEN_REGISTRATION": "true"}


@pytest.fixture
async def http(web: WebProcess) -> AsyncIterator[httpx2.AsyncClient]:
    async with httpx2.AsyncClient(base_url=web.url, timeout=60) as http:
        yield http


async def use_up(stores: Stores, limit: AttemptLimit, subject: str) -> None:
    """Uses all attempts of a limit up, as if they had been made at once."""
    await stores.attempt_limits.count([(replace(limit, burst=2, every_s=limit.burst * limit.every_s), subject)])


async def assert_limited(browser: SessionBrowser, path: str, **body: object) -> None:
    status, answer = await browser.post(path, **body)
    assert (status, error_of(answer)["code"]) == (429, "RATE_LIMITED"), path
    assert error_of(answer)["retryAfterMs"] > 0


@pytest.mark.parametrize(
    ("limit", "subject"),
    [
        (SIGN_INS_BY_CLIENT, CLIENT_KEY),
        (SIGN_INS_OF_ACCOUNT, f"{ORG}\n<address>"),
        (SIGN_INS_OF_ACCOUNT_BY_CLIENT, f"{ORG}\n<address>\n{CLIENT_KEY}"),
    ],
    ids=lambda each: each.name if isinstance(each, AttemptLimit) else "",
)
async def test_used_up_limit_refuses_the_right_password(
    web_stores: Stores, http: httpx2.AsyncClient, admin: Actor, limit: AttemptLimit, subject: str
) -> None:
    _, address = await register(web_stores, http, admin, "Bea")
    sign_in = {"address": address, "password": PASSWORD}
    assert (await SessionBrowser(http).post("/sign-in/password", **sign_in))[0] == 200
    await use_up(web_stores, limit, subject.replace("<address>", address))
    await assert_limited(SessionBrowser(http), "/sign-in/password", **sign_in)


@pytest.mark.parametrize("path", ["/accounts", "/accounts/reset-request"])
@pytest.mark.parametrize(
    ("limit", "subject"),
    [(MAILS_BY_CLIENT, CLIENT_KEY), (MAILS_OF_ORGANIZATION, ORG), (MAILS_TO_ADDRESS, f"{ORG}\nann@example.org")],
    ids=lambda each: each.name if isinstance(each, AttemptLimit) else "",
)
async def test_used_up_limit_refuses_a_mail(
    web_stores: Stores, http: httpx2.AsyncClient, admin: Actor, limit: AttemptLimit, subject: str, path: str
) -> None:
    assert (await SessionBrowser(http).post(path, address="ann@example.org"))[0] == 202
    await web_stores.mongo["account_mails"].delete_many({})
    await use_up(web_stores, limit, subject)
    await assert_limited(SessionBrowser(http), path, address="ann@example.org")
    assert await web_stores.mongo["account_mails"].count_documents({}) == 0


@pytest.mark.parametrize(
    ("path", "field"),
    [
        ("/accounts", "invitation"),
        ("/accounts", "firstAdmin"),
        ("/accounts/invitation", "invitation"),
        ("/accounts/options", "invitation"),
        ("/accounts/verification", "verification"),
        ("/accounts/reset", "reset"),
    ],
)
async def test_used_up_limit_refuses_a_link(
    web_stores: Stores, http: httpx2.AsyncClient, admin: Actor, path: str, field: str
) -> None:
    """Otherwise a client may guess links, or create accounts without end by the link of an invitation."""
    body = {field: "x", "name": "Bea", "password": PASSWORD}
    assert (await SessionBrowser(http).post(path, **body))[0] in (403, 404)
    await use_up(web_stores, LINKS_BY_CLIENT, CLIENT_KEY)
    await assert_limited(SessionBrowser(http), path, **body)

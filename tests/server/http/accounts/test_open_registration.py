"""Registration by everybody, with NOROSHI_OPEN_REGISTRATION: it shows nobody which addresses have accounts."""

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import httpx2
import orjson
import pytest

from jobs.account_mails import send_account_mails
from jobs.providers.mailer import Mailer
from storage.identity.accounts.attempt_limits import MAILS_BY_CLIENT, MAILS_TO_ADDRESS
from storage.identity.accounts.tokens import TokenPurpose, TokenSubject
from storage.identity.audit import Actor
from storage.identity.roles import Role
from storage.ids import new_id
from storage.stores import Stores
from tests.browser_sessions import CLIENT
from tests.http_errors import error_of
from tests.jobs.contexts import job_context
from tests.server.http.accounts.test_routes import SessionBrowser, register
from tests.server.http.conftest import ORG
from tests.serving import WebProcess
from tests.storage.identity.accounts.conftest import PASSWORD

pytestmark = pytest.mark.anyio


WEB_SETTINGS = {"NOROSHI_OPEN_REGISTRATION": "true"}


@pytest.fixture
async def http(web: WebProcess) -> AsyncIterator[httpx2.AsyncClient]:
    async with httpx2.AsyncClient(base_url=web.url, timeout=60) as http:
        yield http


async def request_registration(http: httpx2.AsyncClient, address: str) -> tuple[int, bytes, dict[str, str]]:
    """Returns the status, the body and the headers of the answer, except for the time."""
    response = await http.post("/accounts", json={"address": address}, headers=CLIENT)
    headers = {name: value for name, value in response.headers.items() if name != "date"}
    return response.status_code, response.content, headers


async def all_documents(stores: Stores) -> dict[tuple[str, str], Any]:
    """Returns all documents, by collection and id."""
    names = await stores.mongo.database.list_collection_names()
    return {(name, str(each["_id"])): each for name in names async for each in stores.mongo[name].find()}


def shape(document: Any) -> dict[str, str]:
    return {name: type(value).__name__ for name, value in document.items()}


async def work_of(stores: Stores, http: httpx2.AsyncClient, address: str) -> list[tuple[str, dict[str, str]]]:
    """Requests a registration. Returns the collection and the shape of each document that was written."""
    await stores.mongo["sign_in_limits"].delete_many({})
    before = await all_documents(stores)
    assert (await request_registration(http, address))[0] == 202
    after = await all_documents(stores)
    assert before.keys() <= after.keys()
    return sorted((key[0], shape(each)) for key, each in after.items() if before.get(key) != each)


async def test_known_and_unknown_addresses_get_the_same_answer(
    web_stores: Stores, http: httpx2.AsyncClient, admin: Actor
) -> None:
    _, known = await register(web_stores, http, admin, "Bea")
    answers = [await request_registration(http, each) for each in (known, known.upper(), f"{new_id()}@example.org")]
    assert answers[0] == answers[1] == answers[2]
    status, body, headers = answers[0]
    assert (status, orjson.loads(body)) == (202, {})
    assert "set-cookie" not in headers


async def test_known_and_unknown_addresses_cause_the_same_work(
    web_stores: Stores, http: httpx2.AsyncClient, admin: Actor
) -> None:
    """The worker looks for the account later, so that the time of an answer shows nothing."""
    _, known = await register(web_stores, http, admin, "Bea")
    work = [await work_of(web_stores, http, address) for address in (known, f"{new_id()}@example.org")]
    assert work[0] == work[1]
    assert [collection for collection, _ in work[0]] == ["account_mails"] + ["sign_in_limits"] * 4


async def test_requests_for_mails_are_limited_alike(web_stores: Stores, http: httpx2.AsyncClient, admin: Actor) -> None:
    _, known = await register(web_stores, http, admin, "Bea")
    for address in (known, f"{new_id()}@example.org"):
        answers = [await request_registration(http, address) for _ in range(MAILS_TO_ADDRESS.burst + 1)]
        assert [status for status, *_ in answers] == [202] * MAILS_TO_ADDRESS.burst + [429]
        assert error_of(orjson.loads(answers[-1][1]))["code"] == "RATE_LIMITED"
        mails = {"address": address, "kind": "REGISTRATION"}
        assert await web_stores.mongo["account_mails"].count_documents(mails) == MAILS_TO_ADDRESS.burst
    others = [await request_registration(http, f"{new_id()}@example.org") for _ in range(MAILS_BY_CLIENT.burst)]
    assert [status for status, *_ in others].count(429) == 2 * (MAILS_TO_ADDRESS.burst + 1)


async def test_registration_is_offered_and_makes_a_member(
    web_stores: Stores, http: httpx2.AsyncClient, admin: Actor
) -> None:
    methods = orjson.loads((await http.get("/sign-in/options")).content)["methods"]
    assert {"method": "REGISTRATION", "name": "", "url": "/accounts"} in methods
    address, browser = f"{new_id()}@example.org", SessionBrowser(http)
    token = await web_stores.account_tokens.issue(TokenPurpose.REGISTRATION, TokenSubject(ORG, address=address))
    status, answer = await browser.post("/accounts/verification", verification=token, name="Eve", password=PASSWORD)
    assert status == 201, answer
    assert (await web_stores.users.get(ORG, answer["userId"])).roles == (Role.MEMBER,)
    assert await browser.viewer() == "Eve"


async def test_owner_of_a_known_address_is_told_by_mail_only(
    web_stores: Stores, http: httpx2.AsyncClient, admin: Actor, tmp_path: Any
) -> None:
    _, known = await register(web_stores, http, admin, "Bea")
    await web_stores.mongo["account_mails"].delete_many({})
    unknown = f"{new_id()}@example.org"
    for address in (known, unknown):
        await request_registration(http, address)
    jobs = replace(job_context(web_stores), mailer=Mailer(None, "noroshi@example.org", tmp_path))
    assert await send_account_mails(jobs) == 2
    mails = [file.read_text() for file in tmp_path.iterdir()]
    assert {address: "#verification=" in mail for mail in mails for address in (known, unknown) if address in mail} == {
        known: False,
        unknown: True,
    }

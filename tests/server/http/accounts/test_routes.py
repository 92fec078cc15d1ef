"""Accounts over HTTP on a real web process: every way to get an account or a session, and the refusals."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import orjson
import pytest

from storage.identity.accounts.registration import offer_first_admin
from storage.identity.accounts.tokens import TokenPurpose, TokenSubject
from storage.identity.audit import Actor, AuditAction, AuditFilter
from storage.identity.roles import Role
from storage.ids import new_id
from storage.stores import Stores
from tests.browser_sessions import CLIENT, SESSION_COOKIE, session_headers
from tests.databases import refusing_documents
from tests.http_errors import error_of
from tests.server.http.conftest import ORG
from tests.serving import WebProcess
from tests.storage.identity.accounts.conftest import PASSWORD, new_invitation
from tests.waiting import until

pytestmark = pytest.mark.anyio

OTHER_PASSWORD = "another beacon on the hill"


@pytest.fixture
async def http(web: WebProcess) -> AsyncIterator[httpx2.AsyncClient]:
    async with httpx2.AsyncClient(base_url=web.url, timeout=60) as http:
        yield http


class SessionBrowser:
    """A browser that keeps the cookie of its session."""

    def __init__(self, http: httpx2.AsyncClient) -> None:
        self._http = http
        self.token: str | None = None

    async def post(self, path: str, **body: object) -> tuple[int, dict[str, Any]]:
        """Sends a request. Returns the status and the answer."""
        headers = CLIENT if self.token is None else session_headers(self.token)
        response = await self._http.post(path, json=body, headers=headers)
        for set_cookie in response.headers.get_list("set-cookie"):
            assert {"HttpOnly", "Secure", "Path=/"} <= set(set_cookie.split("; "))
            if set_cookie.startswith(f"{SESSION_COOKIE}="):
                self.token = set_cookie.partition("=")[2].partition(";")[0]
                assert "SameSite=lax" in set_cookie
        assert response.headers["cache-control"] == "no-store"
        return response.status_code, orjson.loads(response.content)

    async def viewer(self) -> str | None:
        """Returns the name of the signed-in user, or None."""
        headers = CLIENT if self.token is None else session_headers(self.token)
        response = await self._http.post("/graphql", json={"query": "{ viewer { name } }"}, headers=headers)
        viewer = (orjson.loads(response.content).get("data") or {}).get("viewer")
        return viewer and str(viewer["name"])

    async def is_signed_out(self) -> bool:
        return await self.viewer() is None


async def register(web_stores: Stores, http: httpx2.AsyncClient, admin: Actor, name: str) -> tuple[SessionBrowser, str]:
    """Registers a person by an invitation. Returns the person's browser and address."""
    address = f"{name.lower()}-{new_id()}@example.org"
    created = await web_stores.invitations.create(admin, new_invitation(address=address), None)
    browser = SessionBrowser(http)
    status, answer = await browser.post("/accounts", invitation=created.token, name=name, password=PASSWORD)
    assert status == 201, answer
    return browser, address


async def test_first_admin_link_makes_one_admin(web_stores: Stores, http: httpx2.AsyncClient) -> None:
    """Runs first, since the organization must have no user."""
    token = await offer_first_admin(web_stores.mongo, ORG)
    browsers = [SessionBrowser(http) for _ in range(4)]
    clicks = (
        each.post("/accounts", firstAdmin=token, address=f"a{n}@example.org", name=f"Ada {n}", password=PASSWORD)
        for n, each in enumerate(browsers)
    )
    statuses = [status for status, _ in await asyncio.gather(*clicks)]
    assert sorted(statuses)[0] == 201
    assert set(sorted(statuses)[1:]) <= {404, 409}
    signed_in = [name for name in [await each.viewer() for each in browsers] if name is not None]
    assert len(signed_in) == 1
    assert await web_stores.mongo["users"].count_documents({"_id.org": ORG, "roles": "ADMIN"}) == 1


async def test_invited_person_signs_in_again(web_stores: Stores, http: httpx2.AsyncClient, admin: Actor) -> None:
    browser, address = await register(web_stores, http, admin, "Bea")
    assert await browser.viewer() == "Bea"
    other = SessionBrowser(http)
    assert (await other.post("/sign-in/password", address=address.upper(), password=PASSWORD))[0] == 200
    assert await other.viewer() == "Bea"


async def test_sign_in_and_new_account_end_the_replaced_session(
    web_stores: Stores, http: httpx2.AsyncClient, admin: Actor
) -> None:
    """Somebody who copied the cookie before the sign-in has no access afterwards. Other browsers stay signed in."""
    browser, address = await register(web_stores, http, admin, "Bea")
    elsewhere, copy = SessionBrowser(http), SessionBrowser(http)
    invitation = await web_stores.invitations.create(admin, new_invitation(address=f"{new_id()}@example.org"), None)
    new_account = {"invitation": invitation.token, "name": "Cyd", "password": PASSWORD}
    assert (await elsewhere.post("/sign-in/password", address=address, password=PASSWORD))[0] == 200
    for path, body, name in (
        ("/sign-in/password", {"address": address, "password": PASSWORD}, "Bea"),
        ("/accounts", new_account, "Cyd"),
    ):
        copy.token = browser.token
        assert await copy.viewer() == "Bea"
        assert (await browser.post(path, **body))[0] in (200, 201)
        assert await browser.viewer() == name
        await until(copy.is_signed_out)
    assert await elsewhere.viewer() == "Bea"


async def test_refused_sign_in_ends_no_session(web_stores: Stores, http: httpx2.AsyncClient, admin: Actor) -> None:
    browser, address = await register(web_stores, http, admin, "Bea")
    assert (await browser.post("/sign-in/password", address=address, password=OTHER_PASSWORD))[0] == 401
    assert await browser.viewer() == "Bea"


async def test_malformed_cookie_does_not_hinder_a_sign_in(
    web_stores: Stores, http: httpx2.AsyncClient, admin: Actor
) -> None:
    browser, address = await register(web_stores, http, admin, "Bea")
    browser.token = "nonsense"
    assert (await browser.post("/sign-in/password", address=address, password=PASSWORD))[0] == 200
    assert await browser.viewer() == "Bea"


async def test_unknown_address_and_wrong_password_look_alike(
    web_stores: Stores, http: httpx2.AsyncClient, admin: Actor
) -> None:
    _, address = await register(web_stores, http, admin, "Bea")
    answers = [
        await SessionBrowser(http).post("/sign-in/password", address=each, password=OTHER_PASSWORD)
        for each in (address, "nobody@example.org")
    ]
    assert answers[0] == answers[1]
    assert answers[0][0] == 401
    assert error_of(answers[0][1])["code"] == "UNAUTHENTICATED"


async def test_guesses_are_limited_for_known_and_unknown_accounts(
    web_stores: Stores, http: httpx2.AsyncClient, admin: Actor
) -> None:
    _, known = await register(web_stores, http, admin, "Bea")
    statuses = []
    for address in (known, f"{new_id()}@example.org"):
        guesses = (
            SessionBrowser(http).post("/sign-in/password", address=address, password="wrong guess") for _ in range(14)
        )
        statuses.append(sorted(status for status, _ in await asyncio.gather(*guesses)))
    assert statuses[0] == statuses[1] == [401] * 10 + [429] * 4
    status, answer = await SessionBrowser(http).post("/sign-in/password", address=known, password=PASSWORD)
    assert (status, error_of(answer)["code"]) == (429, "RATE_LIMITED")
    assert error_of(answer)["retryAfterMs"] > 0


async def test_request_without_browser_header_is_refused(http: httpx2.AsyncClient, admin: Actor) -> None:
    body = {"address": "a@example.org", "password": PASSWORD}
    for path in ("/sign-in/password", "/accounts", "/accounts/reset-request", "/accounts/reset"):
        assert (await http.post(path, json=body)).status_code == 403
        foreign_origin = {**CLIENT, "origin": "https://evil.example.org"}
        assert (await http.post(path, json=body, headers=foreign_origin)).status_code == 403


async def test_link_invitation_needs_a_mailed_proof_of_the_address(
    web_stores: Stores, http: httpx2.AsyncClient, admin: Actor
) -> None:
    created = await web_stores.invitations.create(admin, new_invitation(Role.OPERATOR), None)
    address, browser = f"{new_id()}@example.org", SessionBrowser(http)
    invitation = (await browser.post("/accounts/invitation", invitation=created.token))[1]
    assert (invitation["state"], invitation["role"], invitation["address"]) == ("OPEN", "OPERATOR", None)
    assert await browser.post("/accounts", invitation=created.token, address=address) == (202, {})
    mail = await web_stores.mongo["account_mails"].find_one({"address": address})
    assert mail is not None
    assert mail["invitation"] == created.invitation.id
    assert await web_stores.local_accounts.find(ORG, address) is None
    subject = TokenSubject(ORG, address=address, invitation_id=created.invitation.id)
    token = await web_stores.account_tokens.issue(TokenPurpose.REGISTRATION, subject)
    status, answer = await browser.post("/accounts/verification", verification=token, name="Bea", password=PASSWORD)
    assert status == 201, answer
    assert (await web_stores.users.get(ORG, answer["userId"])).roles == (Role.OPERATOR,)
    assert (await web_stores.invitations.get(ORG, created.invitation.id)).uses == 1


async def test_registrations_by_one_link_never_exceed_its_uses(
    web_stores: Stores, http: httpx2.AsyncClient, admin: Actor
) -> None:
    created = await web_stores.invitations.create(admin, new_invitation(max_uses=2), None)
    registering = []
    for n in range(6):
        subject = TokenSubject(ORG, address=f"{n}-{new_id()}@example.org", invitation_id=created.invitation.id)
        token = await web_stores.account_tokens.issue(TokenPurpose.REGISTRATION, subject)
        registering.append(
            SessionBrowser(http).post("/accounts/verification", verification=token, name=f"P{n}", password=PASSWORD)
        )
    statuses = sorted(status for status, _ in await asyncio.gather(*registering))
    assert statuses == [201, 201, 409, 409, 409, 409]


async def test_registration_without_invitation_is_closed(http: httpx2.AsyncClient, admin: Actor) -> None:
    status, answer = await SessionBrowser(http).post("/accounts", address="eve@example.org")
    assert (status, error_of(answer)["code"]) == (403, "FORBIDDEN")


async def test_reset_ends_every_session_and_the_old_password(
    web_stores: Stores, http: httpx2.AsyncClient, admin: Actor
) -> None:
    browser, address = await register(web_stores, http, admin, "Bea")
    account = await web_stores.local_accounts.find(ORG, address)
    assert account is not None
    subject = TokenSubject(ORG, account.user_id, address)
    tokens = [await web_stores.account_tokens.issue(TokenPurpose.RESET, subject) for _ in range(2)]
    assert await browser.viewer() == "Bea"
    weak = await SessionBrowser(http).post("/accounts/reset", reset=tokens[0], password="password123")
    assert (weak[0], error_of(weak[1])["field"]) == (400, "password")
    assert await SessionBrowser(http).post("/accounts/reset", reset=tokens[0], password=OTHER_PASSWORD) == (200, {})
    for used in tokens:
        assert (await SessionBrowser(http).post("/accounts/reset", reset=used, password=PASSWORD))[0] == 404
    assert await web_stores.mongo["sessions"].count_documents({"user": account.user_id}) == 0
    assert (await SessionBrowser(http).post("/sign-in/password", address=address, password=PASSWORD))[0] == 401
    assert (await SessionBrowser(http).post("/sign-in/password", address=address, password=OTHER_PASSWORD))[0] == 200


async def test_reset_request_answers_alike_and_is_limited(
    web_stores: Stores, http: httpx2.AsyncClient, admin: Actor
) -> None:
    _, known = await register(web_stores, http, admin, "Bea")
    for address in (known, f"{new_id()}@example.org"):
        answers = [await SessionBrowser(http).post("/accounts/reset-request", address=address) for _ in range(4)]
        assert [status for status, _ in answers] == [202, 202, 202, 429]
        assert await web_stores.mongo["account_mails"].count_documents({"address": address, "kind": "RESET"}) == 3


async def test_changed_password_ends_the_other_sessions(
    web_stores: Stores, http: httpx2.AsyncClient, admin: Actor
) -> None:
    browser, address = await register(web_stores, http, admin, "Bea")
    other = SessionBrowser(http)
    await other.post("/sign-in/password", address=address, password=PASSWORD)
    passwords = {"currentPassword": PASSWORD, "password": OTHER_PASSWORD}
    assert (await SessionBrowser(http).post("/accounts/password", **passwords))[0] == 401
    wrong = await browser.post("/accounts/password", currentPassword="wrong", password=OTHER_PASSWORD)
    refused = error_of(wrong[1])
    assert (wrong[0], refused["code"], refused["field"]) == (400, "BAD_USER_INPUT", "currentPassword")
    assert await browser.post("/accounts/password", **passwords) == (200, {})
    account = await web_stores.local_accounts.find(ORG, address)
    assert account is not None
    assert await web_stores.mongo["sessions"].count_documents({"user": account.user_id}) == 1
    assert await browser.viewer() == "Bea"


async def test_changed_and_reset_passwords_are_in_the_audit_log(
    web_stores: Stores, http: httpx2.AsyncClient, admin: Actor
) -> None:
    browser, address = await register(web_stores, http, admin, "Bea")
    account = await web_stores.local_accounts.find(ORG, address)
    assert account is not None
    passwords = {"currentPassword": PASSWORD, "password": OTHER_PASSWORD}
    async with refusing_documents(web_stores.mongo, "audit"):
        assert (await browser.post("/accounts/password", **passwords))[0] == 500
    assert await web_stores.local_accounts.find(ORG, address) == account, "The password was changed without an entry."
    assert (await browser.post("/accounts/password", **passwords))[0] == 200
    token = await web_stores.account_tokens.issue(TokenPurpose.RESET, TokenSubject(ORG, account.user_id, address))
    assert (await SessionBrowser(http).post("/accounts/reset", reset=token, password=PASSWORD))[0] == 200
    entry_filter = AuditFilter(action=AuditAction.PASSWORD_CHANGED, actor_id=account.user_id)
    entries = await web_stores.audit.list_entries(ORG, entry_filter, None, 10)
    assert [(each.target_id, each.details, each.address) for each in entries] == [
        (account.user_id, [], "127.0.0.1"),
        (account.user_id, [], "127.0.0.1"),
    ]


async def test_sign_ins_during_a_reset_leave_no_old_session(
    web_stores: Stores, http: httpx2.AsyncClient, admin: Actor
) -> None:
    _, address = await register(web_stores, http, admin, "Bea")
    account = await web_stores.local_accounts.find(ORG, address)
    assert account is not None
    token = await web_stores.account_tokens.issue(TokenPurpose.RESET, TokenSubject(ORG, account.user_id, address))
    sign_ins = (SessionBrowser(http).post("/sign-in/password", address=address, password=PASSWORD) for _ in range(6))
    reset = SessionBrowser(http).post("/accounts/reset", reset=token, password=OTHER_PASSWORD)
    statuses = [status for status, _ in await asyncio.gather(*sign_ins, reset)]
    assert statuses[-1] == 200
    assert await web_stores.mongo["sessions"].count_documents({"user": account.user_id}) == 0


async def test_deactivated_person_does_not_sign_in(web_stores: Stores, http: httpx2.AsyncClient, admin: Actor) -> None:
    _, address = await register(web_stores, http, admin, "Bea")
    account = await web_stores.local_accounts.find(ORG, address)
    assert account is not None
    await web_stores.user_administration.deactivate(admin, account.user_id, "left")
    status, answer = await SessionBrowser(http).post("/sign-in/password", address=address, password=PASSWORD)
    assert status == 401
    assert "deactivated" in error_of(answer)["message"]


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        ("/sign-in/password", {"password": PASSWORD}, "address"),
        ("/sign-in/password", {"address": "nobody", "password": PASSWORD}, "address"),
        ("/sign-in/password", {"address": "a@example.org", "password": 7}, "password"),
        ("/accounts/reset-request", {"address": "a@example.org", "language": "de"}, "language"),
        ("/accounts/reset", {"password": PASSWORD}, "reset"),
        ("/accounts", {"invitation": "x" * 201}, "invitation"),
    ],
)
async def test_invalid_body_names_the_field(
    http: httpx2.AsyncClient, admin: Actor, path: str, body: dict[str, object], field: str
) -> None:
    status, answer = await SessionBrowser(http).post(path, **body)
    assert (status, error_of(answer)["field"]) == (400, field)


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"name": " "}, "name"),
        ({"name": "a\u202eb"}, "name"),
        ({"handle": "A B"}, "handle"),
        ({"password": "x"}, "password"),
    ],
)
async def test_invalid_new_account_names_the_field(
    web_stores: Stores, http: httpx2.AsyncClient, admin: Actor, fields: dict[str, str], field: str
) -> None:
    created = await web_stores.invitations.create(admin, new_invitation(address=f"{new_id()}@example.org"), None)
    body = {"invitation": created.token, "name": "Bea", "password": PASSWORD, **fields}
    status, answer = await SessionBrowser(http).post("/accounts", **body)
    assert (status, error_of(answer)["field"]) == (400, field)


@pytest.mark.parametrize("field", ["address", "password", "name"])
async def test_lone_surrogate_is_refused_with_its_field(http: httpx2.AsyncClient, field: str) -> None:
    body = {"address": "ann@example.org", "password": PASSWORD, "name": "Ann", field: "<half>"}
    for path in ("/accounts", "/sign-in/password"):
        content = orjson.dumps(body).replace(b"<half>", b"\\ud83d")
        response = await http.post(path, content=content, headers={**CLIENT, "content-type": "application/json"})
        answer = error_of(orjson.loads(response.content))
        assert (response.status_code, answer["code"], answer["field"]) == (400, "BAD_USER_INPUT", field)


@pytest.mark.parametrize("name", [" ", "\u200b", "\u3164", "\u2800\ufe0f"])
async def test_name_without_visible_character_is_refused(
    web_stores: Stores, http: httpx2.AsyncClient, admin: Actor, name: str
) -> None:
    created = await web_stores.invitations.create(admin, new_invitation(address=f"{new_id()}@example.org"), None)
    answer = await SessionBrowser(http).post("/accounts", invitation=created.token, name=name, password=PASSWORD)
    refused = error_of(answer[1])
    assert (answer[0], refused["code"], refused["field"]) == (400, "BAD_USER_INPUT", "name")

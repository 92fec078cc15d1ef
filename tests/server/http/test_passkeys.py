"""Passkeys over HTTP on a real web process, with a software authenticator that can lie."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx2
import orjson
import pytest

from server.auth.passkeys.ceremonies import PASSKEY_COOKIE
from storage.identity.accounts.attempt_limits import SIGN_INS_BY_CLIENT, SIGN_INS_OF_ACCOUNT, AttemptLimit, client_key
from storage.identity.accounts.registration import offer_first_admin
from storage.identity.accounts.tokens import TokenPurpose, TokenSubject
from storage.identity.audit import Actor
from storage.identity.passkeys.records import passkey_id
from storage.identity.roles import Role
from storage.identity.session_records import NewSession, SignInMethod
from storage.ids import UserKey, new_id
from storage.stores import Stores
from tests.browser_sessions import CLIENT, SESSION_COOKIE
from tests.http_errors import error_of
from tests.server.http.accounts.test_limits import use_up
from tests.server.http.conftest import ORG
from tests.serving import WebProcess
from tests.software_authenticator import MAY_BE_COPIED, PRESENT, VERIFIED, SoftwareAuthenticator
from tests.storage.identity.accounts.conftest import PASSWORD, new_invitation
from tests.waiting import until

pytestmark = pytest.mark.anyio

PARTY, ORIGIN = "chat.example.org", "https://chat.example.org"
MINE = "{ myPasskeys { id name synced lastUsedAt } mySessions { method current } }"
REMOVE = "mutation ($id: ID!) { removePasskey(id: $id) { name } }"
RENAME = "mutation ($id: ID!, $name: String!) { renamePasskey(id: $id, name: $name) { name } }"


WEB_SETTINGS = {"NOROSHI_PUBLIC_URL": ORIGIN}


class CookieBrowser:
    """A browser that keeps its cookies, which the test may take."""

    def __init__(self, url: str) -> None:
        self._url = url
        self.cookies: dict[str, str] = {}

    async def post(self, path: str, **body: object) -> tuple[int, dict[str, Any]]:
        """Sends a request. Returns the status and the answer."""
        headers = {**CLIENT, "cookie": "; ".join(f"{name}={value}" for name, value in self.cookies.items())}
        async with httpx2.AsyncClient(base_url=self._url, timeout=60) as http:
            response = await http.post(path, json=body, headers=headers)
        for header in response.headers.get_list("set-cookie"):
            name, _, value = header.partition(";")[0].partition("=")
            self.cookies[name] = value
            assert {"HttpOnly", "Secure", "Path=/"} <= set(header.split("; "))
            if "Max-Age=0" in header:
                del self.cookies[name]
        return response.status_code, orjson.loads(response.content)

    async def ask(self, query: str, **variables: object) -> dict[str, Any]:
        """Runs an operation. Returns the answer with data and errors."""
        return (await self.post("/graphql", query=query, variables=variables))[1]

    async def options(self, path: str, **body: object) -> dict[str, Any]:
        """Begins a ceremony, and returns its options."""
        status, answer = await self.post(path, **body)
        assert status == 200, answer
        options: dict[str, Any] = answer["publicKey"]
        return options

    async def sign_in(self, authenticator: SoftwareAuthenticator) -> tuple[int, dict[str, Any]]:
        """Signs in with a passkey."""
        options = await self.options("/sign-in/passkey/options")
        return await self.post("/sign-in/passkey", passkey=authenticator.sign_in(options))

    async def add(self, authenticator: SoftwareAuthenticator, name: str = "Phone") -> tuple[int, dict[str, Any]]:
        """Adds a passkey for the person who is signed in."""
        options = await self.options("/accounts/passkeys/options")
        return await self.post("/accounts/passkeys", passkey=authenticator.create(options), passkeyName=name)


def authenticator(**fields: Any) -> SoftwareAuthenticator:
    return SoftwareAuthenticator(ORIGIN, PARTY, **fields)


async def person(web: WebProcess, web_stores: Stores, admin: Actor) -> tuple[CookieBrowser, str]:
    """Registers a person with a password. Returns the browser and the user's id."""
    created = await web_stores.invitations.create(admin, new_invitation(address=f"{new_id()}@example.org"), None)
    browser = CookieBrowser(web.url)
    status, answer = await browser.post("/accounts", invitation=created.token, name="Bea", password=PASSWORD)
    assert status == 201, answer
    return browser, answer["userId"]


async def passkey_person(
    web: WebProcess, web_stores: Stores, admin: Actor, **fields: Any
) -> tuple[CookieBrowser, str, SoftwareAuthenticator]:
    """Registers a person with a passkey and no password."""
    created = await web_stores.invitations.create(admin, new_invitation(address=f"{new_id()}@example.org"), None)
    browser, device = CookieBrowser(web.url), authenticator(**fields)
    options = await browser.options("/accounts/options", invitation=created.token, name="Cyd")
    body = {"invitation": created.token, "name": "Cyd", "passkey": device.create(options), "passkeyName": "Phone"}
    status, answer = await browser.post("/accounts", **body)
    assert status == 201, answer
    return browser, answer["userId"], device


async def test_person_without_a_password_signs_in(web: WebProcess, web_stores: Stores, admin: Actor) -> None:
    browser, user_id, device = await passkey_person(web, web_stores, admin)
    assert (await browser.ask(MINE))["data"]["mySessions"] == [{"method": "PASSKEY", "current": True}]
    other = CookieBrowser(web.url)
    assert await other.sign_in(device) == (200, {"userId": user_id})
    mine = (await other.ask(MINE))["data"]
    assert [each["method"] for each in mine["mySessions"]] == ["PASSKEY", "PASSKEY"]
    assert [(each["name"], each["synced"]) for each in mine["myPasskeys"]] == [("Phone", False)]
    assert mine["myPasskeys"][0]["lastUsedAt"] is not None
    assert PASSKEY_COOKIE not in other.cookies
    stored = await web_stores.mongo["local_accounts"].find_one({"_id.id": user_id})
    assert stored is not None
    assert "hash" not in stored


async def test_passkey_sign_in_ends_the_replaced_session(web: WebProcess, web_stores: Stores, admin: Actor) -> None:
    browser, _, device = await passkey_person(web, web_stores, admin)
    copy = CookieBrowser(web.url)
    copy.cookies = dict(browser.cookies)
    assert "errors" not in await copy.ask(MINE)
    assert (await browser.sign_in(device))[0] == 200
    assert (await browser.ask(MINE))["data"]["mySessions"] == [{"method": "PASSKEY", "current": True}]

    async def is_copy_refused() -> bool:
        errors = (await copy.ask(MINE)).get("errors", [])
        return [error["extensions"]["code"] for error in errors] == ["UNAUTHENTICATED"]

    await until(is_copy_refused)


async def test_options_ask_for_a_discoverable_passkey(web: WebProcess, web_stores: Stores, admin: Actor) -> None:
    browser, user_id = await person(web, web_stores, admin)
    options = await browser.options("/accounts/passkeys/options")
    assert options["rp"] == {"name": "Noroshi", "id": PARTY}
    assert options["authenticatorSelection"]["residentKey"] == "required"
    assert options["authenticatorSelection"]["userVerification"] == "required"
    assert user_id not in str(options)
    options = await browser.options("/sign-in/passkey/options")
    assert (options["userVerification"], options["allowCredentials"], options["rpId"]) == ("required", [], PARTY)
    first = await browser.options("/sign-in/passkey/options")
    assert first["challenge"] != options["challenge"]


async def test_first_admin_may_have_a_passkey_only(web: WebProcess, web_stores: Stores) -> None:
    await web_stores.mongo["users"].delete_many({})
    token = await offer_first_admin(web_stores.mongo, ORG)
    browser, device, own = CookieBrowser(web.url), authenticator(), {"name": "Ada", "address": "ada@example.org"}
    options = await browser.options("/accounts/options", firstAdmin=token, **own)
    body = {"passkey": device.create(options), "passkeyName": "Key", **own}
    assert (await browser.post("/accounts", firstAdmin=token, **body))[0] == 201
    assert await web_stores.mongo["users"].count_documents({"_id.org": ORG, "roles": "ADMIN"}) == 1


async def test_verified_address_may_get_a_passkey(web: WebProcess, web_stores: Stores, admin: Actor) -> None:
    token = await web_stores.account_tokens.issue(
        TokenPurpose.REGISTRATION, TokenSubject(ORG, address=f"{new_id()}@example.org")
    )
    browser, device = CookieBrowser(web.url), authenticator()
    options = await browser.options("/accounts/options", verification=token, name="Dan")
    body = {"verification": token, "name": "Dan", "passkey": device.create(options), "passkeyName": "Key"}
    assert (await browser.post("/accounts/verification", **body))[0] == 201
    assert (await CookieBrowser(web.url).sign_in(device))[0] == 200


async def test_options_for_an_account_need_a_link(web: WebProcess, web_stores: Stores, admin: Actor) -> None:
    for body in ({"invitation": "x"}, {"verification": "x"}, {"firstAdmin": "x"}):
        assert (await CookieBrowser(web.url).post("/accounts/options", name="Eve", **body))[0] == 404
    created = await web_stores.invitations.create(admin, new_invitation(), None)
    assert (await CookieBrowser(web.url).post("/accounts/options", name="Eve", invitation=created.token))[0] == 404


@pytest.mark.parametrize(
    "lie",
    [
        {"origin": "https://evil.example.org"},
        {"origin": "https://www.chat.example.org"},
        {"origin": "http://chat.example.org"},
        {"rp_id": "example.org"},
        {"flags": PRESENT},
        {"flags": VERIFIED},
        {"flags": PRESENT | VERIFIED | MAY_BE_COPIED},
        {"is_framed": True},
        {"handle": b"another person"},
        {"handle": b""},
        {"key": authenticator().key},
        {"credential": b"unknown"},
    ],
    ids=lambda lie: " ".join(f"{name}={str(value)[:30]}" for name, value in lie.items()),
)
async def test_lying_sign_ins_are_refused_alike(
    web: WebProcess, web_stores: Stores, admin: Actor, lie: dict[str, Any]
) -> None:
    _, user_id, device = await passkey_person(web, web_stores, admin)
    status, answer = await CookieBrowser(web.url).sign_in(device.lying(**lie))
    assert (status, error_of(answer)["code"]) == (401, "UNAUTHENTICATED")
    assert error_of(answer)["message"].startswith("This passkey does not work here.")
    assert (await CookieBrowser(web.url).sign_in(device.lying(counter=device.counter + 1)))[1] == {"userId": user_id}


@pytest.mark.parametrize(
    "lie",
    [
        {"origin": "https://evil.example.org"},
        {"rp_id": "example.org"},
        {"flags": PRESENT},
        {"flags": VERIFIED},
        {"is_framed": True},
    ],
    ids=lambda lie: " ".join(f"{name}={value}" for name, value in lie.items()),
)
async def test_lying_registrations_are_refused(
    web: WebProcess, web_stores: Stores, admin: Actor, lie: dict[str, Any]
) -> None:
    browser, _ = await person(web, web_stores, admin)
    status, answer = await browser.add(authenticator().lying(**lie))
    assert (status, error_of(answer)["field"]) == (400, "passkey")
    assert (await browser.ask(MINE))["data"]["myPasskeys"] == []


async def test_answers_count_once_and_in_their_browser(web: WebProcess, web_stores: Stores, admin: Actor) -> None:
    """The device's counter never changes, so that only the challenge reveals a repetition."""
    _, _, device = await passkey_person(web, web_stores, admin, step=0)
    browser = CookieBrowser(web.url)
    options = await browser.options("/sign-in/passkey/options")
    answer, cookies = device.sign_in(options), dict(browser.cookies)
    assert (await CookieBrowser(web.url).post("/sign-in/passkey", passkey=answer))[0] == 401
    replaying = [CookieBrowser(web.url) for _ in range(4)]
    for each in replaying:
        each.cookies = dict(cookies)
    attempts = await asyncio.gather(*(each.post("/sign-in/passkey", passkey=answer) for each in replaying))
    statuses = [status for status, _ in attempts]
    assert sorted(statuses) == [200, 401, 401, 401]
    browser.cookies = cookies
    assert (await browser.post("/sign-in/passkey", passkey=answer))[0] == 401
    assert (await CookieBrowser(web.url).sign_in(device))[0] == 200


async def test_answers_count_for_their_purpose_only(web: WebProcess, web_stores: Stores, admin: Actor) -> None:
    browser, _ = await person(web, web_stores, admin)
    device = authenticator()
    options = await browser.options("/accounts/passkeys/options")
    answer = device.create(options)
    created = await web_stores.invitations.create(admin, new_invitation(address=f"{new_id()}@example.org"), None)
    body = {"invitation": created.token, "name": "Eve", "passkey": answer, "passkeyName": "Key"}
    assert (await browser.post("/accounts", **body))[0] == 400
    assert (await browser.post("/accounts/passkeys", passkey=answer, passkeyName="Key"))[0] == 201
    registration = await browser.options("/accounts/passkeys/options")
    assert (await browser.post("/sign-in/passkey", passkey=device.sign_in(registration)))[0] == 401


async def test_replayed_registration_adds_nothing(web: WebProcess, web_stores: Stores, admin: Actor) -> None:
    browser, _ = await person(web, web_stores, admin)
    options = await browser.options("/accounts/passkeys/options")
    answer, cookies = authenticator().create(options), dict(browser.cookies)
    body = {"passkey": answer, "passkeyName": "Key"}
    status, added = await browser.post("/accounts/passkeys", **body)
    assert status == 201
    assert "data" in await browser.ask(REMOVE, id=added["id"])
    browser.cookies = cookies
    assert (await browser.post("/accounts/passkeys", **body))[0] == 400
    assert (await browser.ask(MINE))["data"]["myPasskeys"] == []


async def test_counter_that_goes_back_is_refused(web: WebProcess, web_stores: Stores, admin: Actor) -> None:
    _, _, device = await passkey_person(web, web_stores, admin)
    copy = device.lying()
    for _ in range(2):
        assert (await CookieBrowser(web.url).sign_in(device))[0] == 200
    assert (await CookieBrowser(web.url).sign_in(copy))[0] == 401
    assert web.wait_for_log("passkey_counter_went_back")
    assert (await CookieBrowser(web.url).sign_in(device.lying(counter=0, step=0)))[0] == 401
    assert (await CookieBrowser(web.url).sign_in(device))[0] == 200


async def test_passkey_of_another_account_is_not_added(web: WebProcess, web_stores: Stores, admin: Actor) -> None:
    _, user_id, device = await passkey_person(web, web_stores, admin)
    mallory, _ = await person(web, web_stores, admin)
    status, answer = await mallory.add(device.lying())
    assert (status, error_of(answer)["code"]) == (409, "CONFLICT")
    device.counter += 1
    options = await mallory.options("/accounts/passkeys/options")
    ada, _ = await person(web, web_stores, admin)
    mallory.cookies[SESSION_COOKIE] = ada.cookies[SESSION_COOKIE]
    swapped = {"passkey": authenticator().create(options), "passkeyName": "Key"}
    assert (await mallory.post("/accounts/passkeys", **swapped))[0] == 403
    assert await web_stores.mongo["passkeys"].count_documents({"user": user_id}) == 1


async def test_passkey_is_changed_by_its_owner_only(web: WebProcess, web_stores: Stores, admin: Actor) -> None:
    owner, user_id, _ = await passkey_person(web, web_stores, admin)
    id_ = (await owner.ask(MINE))["data"]["myPasskeys"][0]["id"]
    mallory, _ = await person(web, web_stores, admin)
    for query, more in ((REMOVE, {}), (RENAME, {"name": "Mine"})):
        answer = await mallory.ask(query, id=id_, **more)
        assert answer["errors"][0]["extensions"]["code"] == "NOT_FOUND"
    assert (await owner.ask(RENAME, id=id_, name=" Tablet "))["data"] == {"renamePasskey": {"name": "Tablet"}}
    refused = await owner.ask(RENAME, id=id_, name=" ")
    assert refused["errors"][0]["extensions"]["field"] == "name"
    assert await web_stores.mongo["passkeys"].count_documents({"user": user_id}) == 1


async def test_last_way_to_sign_in_stays(web: WebProcess, web_stores: Stores, admin: Actor) -> None:
    browser, user_id, device = await passkey_person(web, web_stores, admin)
    assert (await browser.add(authenticator(), "Laptop"))[0] == 201
    ids = [each["id"] for each in (await browser.ask(MINE))["data"]["myPasskeys"]]
    answers = await asyncio.gather(*(browser.ask(REMOVE, id=id_) for id_ in ids))
    codes = [each["errors"][0]["extensions"]["code"] for each in answers if "errors" in each]
    assert codes == ["CONFLICT"]
    assert await web_stores.mongo["passkeys"].count_documents({"user": user_id}) == 1
    account = await web_stores.local_accounts.of_user(ORG, user_id)
    assert account is not None
    reset = await web_stores.account_tokens.issue(TokenPurpose.RESET, TokenSubject(ORG, user_id, account.address))
    assert (await browser.post("/accounts/reset", reset=reset, password=PASSWORD))[0] == 200
    assert (await browser.post("/sign-in/password", address=account.address, password=PASSWORD))[0] == 200
    left = (await browser.ask(MINE))["data"]["myPasskeys"][0]["id"]
    assert "errors" not in await browser.ask(REMOVE, id=left)
    assert (await CookieBrowser(web.url).sign_in(device.lying(counter=99)))[0] == 401


async def test_removed_passkey_ends_the_other_sessions(web: WebProcess, web_stores: Stores, admin: Actor) -> None:
    browser, user_id = await person(web, web_stores, admin)
    device, other = authenticator(), CookieBrowser(web.url)
    status, added = await browser.add(device)
    assert status == 201
    assert (await other.sign_in(device))[0] == 200
    assert "errors" not in await browser.ask(REMOVE, id=added["id"])
    assert await web_stores.mongo["sessions"].count_documents({"user": user_id}) == 1
    assert (await browser.ask(MINE))["data"]["mySessions"] == [{"method": "PASSWORD", "current": True}]
    entries = await web_stores.mongo["audit"].find({"actor": user_id, "action": {"$regex": "PASSKEY"}}).to_list(None)
    assert sorted(each["action"] for each in entries) == ["PASSKEY_ADDED", "PASSKEY_REMOVED"]


async def test_number_of_passkeys_is_limited(web: WebProcess, web_stores: Stores, admin: Actor) -> None:
    browser, user_id = await person(web, web_stores, admin)
    assert (await browser.add(authenticator()))[0] == 201
    first = await web_stores.mongo["passkeys"].find_one({"user": user_id})
    assert first is not None
    await web_stores.mongo["passkeys"].insert_many([{**first, "_id": f"{user_id}-{n}"} for n in range(18)])
    browsers = [CookieBrowser(web.url) for _ in range(3)]
    for each in browsers:
        each.cookies = dict(browser.cookies)
    statuses = [status for status, _ in await asyncio.gather(*(each.add(authenticator()) for each in browsers))]
    assert sorted(statuses) == [201, 409, 409]


async def test_adding_a_passkey_needs_a_recent_sign_in(web: WebProcess, web_stores: Stores, admin: Actor) -> None:
    assert (await CookieBrowser(web.url).post("/accounts/passkeys/options"))[0] == 401
    browser, user_id = await person(web, web_stores, admin)
    old = datetime.now(UTC) - timedelta(minutes=16)
    await web_stores.mongo["sessions"].update_many({"user": user_id}, {"$set": {"at": old}})
    status, answer = await browser.post("/accounts/passkeys/options")
    assert (status, error_of(answer)["code"]) == (403, "FORBIDDEN")
    assert "Sign out and in again" in error_of(answer)["message"]
    await web_stores.users.sign_in(ORG, "stranger", [Role.MEMBER], "Stranger", None)
    token = await web_stores.sessions.begin(NewSession(UserKey(ORG, "stranger"), SignInMethod.OIDC))
    browser.cookies[SESSION_COOKIE] = token
    status, answer = await browser.post("/accounts/passkeys/options")
    assert (status, "account on this server" in error_of(answer)["message"]) == (403, True)


async def test_deactivated_person_has_no_way_in(web: WebProcess, web_stores: Stores, admin: Actor) -> None:
    _, user_id, device = await passkey_person(web, web_stores, admin)
    await web_stores.user_administration.deactivate(admin, user_id, "left")
    status, answer = await CookieBrowser(web.url).sign_in(device)
    assert status == 401
    assert "deactivated" in error_of(answer)["message"]


async def test_guesses_are_limited_for_known_and_unknown(web: WebProcess, web_stores: Stores, admin: Actor) -> None:
    _, _, known = await passkey_person(web, web_stores, admin)
    for device in (known.lying(origin="https://evil.example.org"), authenticator()):
        options = await (browser := CookieBrowser(web.url)).options("/sign-in/passkey/options")
        answer = device.sign_in(options)
        statuses = [(await browser.post("/sign-in/passkey", passkey=answer))[0] for _ in range(12)]
        assert statuses == [401] * 10 + [429] * 2


@pytest.mark.parametrize("limit", [SIGN_INS_BY_CLIENT, SIGN_INS_OF_ACCOUNT], ids=lambda limit: limit.name)
async def test_used_up_limit_refuses_the_right_passkey(
    web: WebProcess, web_stores: Stores, admin: Actor, limit: AttemptLimit
) -> None:
    _, _, device = await passkey_person(web, web_stores, admin)
    client = client_key("127.0.0.1")
    subject = client if limit is SIGN_INS_BY_CLIENT else f"{ORG}\npasskey {passkey_id(device.credential)}"
    await use_up(web_stores, limit, subject)
    status, answer = await CookieBrowser(web.url).sign_in(device)
    assert (status, error_of(answer)["code"]) == (429, "RATE_LIMITED")


@pytest.mark.parametrize(
    "passkey",
    [{}, {"id": 7}, {"id": "é"}, {"id": "AA", "response": []}, {"id": "AA", "response": {"clientDataJSON": "!"}}],
    ids=str,
)
async def test_malformed_answers_are_refused(
    web: WebProcess, web_stores: Stores, admin: Actor, passkey: dict[str, Any]
) -> None:
    browser, _ = await person(web, web_stores, admin)
    await browser.options("/sign-in/passkey/options")
    assert (await browser.post("/sign-in/passkey", passkey=passkey))[0] == 401
    await browser.options("/accounts/passkeys/options")
    assert (await browser.post("/accounts/passkeys", passkey=passkey, passkeyName="Key"))[0] == 400
    _, refused = await browser.post("/accounts/passkeys", passkey="x", passkeyName="Key")
    assert error_of(refused)["field"] == "passkey"


async def test_routes_need_a_page_of_the_server(web: WebProcess, admin: Actor) -> None:
    paths = ("/sign-in/passkey", "/sign-in/passkey/options", "/accounts/passkeys", "/accounts/passkeys/options")
    for path in (*paths, "/accounts/options"):
        assert httpx2.post(f"{web.url}{path}", json={}).status_code == 403
        evil = {**CLIENT, "origin": "https://evil.example.org"}
        assert httpx2.post(f"{web.url}{path}", json={}, headers=evil).status_code == 403

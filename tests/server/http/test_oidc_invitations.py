"""Invitations of people who sign in at a provider, and local accounts beside the provider."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest

from storage.chat.communities import NewCommunity
from storage.identity.audit import Actor
from storage.identity.roles import Role
from storage.ids import new_id
from storage.stores import Stores
from tests.browser_sessions import CLIENT, SESSION_COOKIE
from tests.http_errors import error_of
from tests.oidc_provider import SignInBrowser, free_port, issuer_at, oidc_web_process
from tests.server.http.conftest import ORG
from tests.server.http.test_oidc import failure
from tests.serving import WebProcess, web_process
from tests.storage.identity.accounts.conftest import PASSWORD, new_invitation

pytestmark = pytest.mark.anyio

INVITED = "/sign-in/oidc/invitation"
ACCOUNT_PATHS = [
    *("/accounts", "/accounts/options", "/accounts/verification", "/accounts/reset-request", "/accounts/reset"),
    *("/accounts/password", "/sign-in/password", "/sign-in/passkey", "/sign-in/passkey/options"),
    *("/accounts/passkeys", "/accounts/passkeys/options"),
]


@pytest.fixture(scope="module")
def web(
    tmp_path_factory: pytest.TempPathFactory, mongodb_uri: str, redis_url: str, shared_database: str
) -> Iterator[WebProcess]:
    variables = {"database": shared_database, "NOROSHI_LOCAL_ACCOUNTS": "true"}
    with oidc_web_process(tmp_path_factory.mktemp("web"), mongodb_uri, redis_url, **variables) as web:
        yield web


def post(web: WebProcess, path: str, **body: object) -> httpx2.Response:
    return httpx2.post(f"{web.url}{path}", json=body, headers=CLIENT, timeout=60)


def begin(browser: SignInBrowser, token: str | None) -> str:
    """Begins a sign-in by an invitation. Returns the address at the provider."""
    response = httpx2.post(f"{browser.product_url}{INVITED}", json={"invitation": token}, headers=CLIENT, timeout=60)
    assert response.status_code == 200, response.text
    name, _, value = response.headers["set-cookie"].partition(";")[0].partition("=")
    browser.cookies[name] = value
    url: str = response.json()["url"]
    assert token is None or token not in url
    return url


def accept(web: WebProcess, account: str, token: str | None) -> httpx2.Response:
    """Signs a person in by an invitation, and returns the answer of the callback."""
    browser = SignInBrowser(web.url)
    return browser.get(browser.log_in(begin(browser, token), account))


async def test_sign_in_grants_what_the_invitation_says(web: WebProcess, web_stores: Stores, admin: Actor) -> None:
    boss = await web_stores.users.get(ORG, "boss")
    community = await web_stores.communities.create(NewCommunity(ORG, "Hills", ""), boss, None)
    invited = new_invitation(Role.OPERATOR, max_uses=2, community_id=community.id)
    created = await web_stores.invitations.create(admin, invited, None)
    for _ in range(2):
        response = accept(web, "ann", created.token)
        assert (response.status_code, response.headers["location"]) == (303, "/")
        assert f"{SESSION_COOKIE}=" in str(response.headers.get_list("set-cookie"))
    assert (await web_stores.users.get(ORG, "ann")).roles == (Role.MEMBER, Role.OPERATOR)
    assert (await web_stores.invitations.get(ORG, created.invitation.id)).uses == 1
    accepted = {"actor": "ann", "action": "INVITATION_ACCEPTED"}
    assert await web_stores.mongo["audit"].count_documents(accepted) == 1
    for _ in range(200):
        if await web_stores.communities.is_member(community.id, "ann"):
            return
        await anyio.sleep(0.1)
    raise AssertionError("The person is no member of the community.")


@pytest.mark.parametrize("state", ["used up", "revoked", "unknown", "for another address"])
async def test_unusable_invitation_is_refused(web: WebProcess, web_stores: Stores, admin: Actor, state: str) -> None:
    await web_stores.mongo["users"].delete_many({"_id.id": "ben"})
    new = new_invitation(address="cyd@example.org") if state == "for another address" else new_invitation()
    created = await web_stores.invitations.create(admin, new, None)
    id_, token = created.invitation.id, created.token
    if state == "used up":
        await web_stores.mongo["invitations"].update_one({"_id": id_}, {"$set": {"users": ["zed"]}})
    if state == "revoked":
        await web_stores.invitations.revoke(admin, id_)
    assert failure(accept(web, "ben", "unknown" if state == "unknown" else token)) == "INVITATION"
    assert "ben" not in str((await web_stores.mongo["invitations"].find_one({"_id": id_}) or {})["users"])
    assert await web_stores.mongo["users"].find_one({"_id.id": "ben"}) is None


async def test_unverified_address_takes_no_invitation(web: WebProcess, web_stores: Stores, admin: Actor) -> None:
    """People may write any address into their profile at a provider that does not verify it."""
    created = await web_stores.invitations.create(admin, new_invitation(Role.ADMIN, address="cyd@example.org"), None)
    assert failure(accept(web, "cyd", created.token)) == "INVITATION"
    assert (await web_stores.invitations.get(ORG, created.invitation.id)).uses == 0


async def test_invitation_counts_in_its_browser_only(web: WebProcess, web_stores: Stores, admin: Actor) -> None:
    """A sign-in without the invitation's cookie does not use the invitation that waits in another browser."""
    created = await web_stores.invitations.create(admin, new_invitation(Role.OPERATOR), None)
    begin(SignInBrowser(web.url), created.token)
    assert SignInBrowser(web.url).sign_in("cyd").status_code == 303
    assert (await web_stores.invitations.get(ORG, created.invitation.id)).uses == 0
    assert (await web_stores.users.get(ORG, "cyd")).roles == (Role.MEMBER,)


async def test_pages_of_other_origins_begin_nothing(web: WebProcess, admin: Actor) -> None:
    body = {"invitation": "x"}
    assert httpx2.post(f"{web.url}{INVITED}", json=body).status_code == 403
    evil = {**CLIENT, "origin": "https://evil.example.org"}
    assert httpx2.post(f"{web.url}{INVITED}", json=body, headers=evil).status_code == 403
    assert error_of(post(web, INVITED).json())["field"] == "invitation"


async def test_local_accounts_work_beside_the_provider(web: WebProcess, web_stores: Stores, admin: Actor) -> None:
    methods = [each["method"] for each in httpx2.get(f"{web.url}/sign-in/options").json()["methods"]]
    assert methods == ["OIDC", "PASSWORD"]
    address = f"{new_id()}@example.org"
    created = await web_stores.invitations.create(admin, new_invitation(address=address), None)
    body = {"invitation": created.token, "name": "Bea", "password": PASSWORD}
    assert post(web, "/accounts", **body).status_code == 201
    assert post(web, "/sign-in/password", address=address, password=PASSWORD).status_code == 200


async def test_provider_signs_nobody_in_as_a_local_account(web: WebProcess, web_stores: Stores, admin: Actor) -> None:
    account: Any = {"_id": {"org": ORG, "id": "ada"}, "address": "ada@example.org", "hash": "x", "language": "en"}
    await web_stores.mongo["local_accounts"].insert_one(account)
    assert failure(SignInBrowser(web.url).sign_in("ada")) == "LOCAL_ACCOUNT"


async def test_product_starts_without_accounts_and_provider(
    tmp_path: Path, mongodb_uri: str, redis_url: str, database: str
) -> None:
    """Routes of local accounts are absent, and sign-ins fail while the provider is unreachable.

    Invitations are shown, since people accept them by signing in at the provider.
    """
    variables: dict[str, Any] = {"NOROSHI_OIDC_ISSUER": issuer_at(free_port()), "NOROSHI_OIDC_CLIENT_ID": "noroshi"}
    variables |= {"NOROSHI_PUBLIC_URL": "https://chat.example.org", "NOROSHI_OPEN_REGISTRATION": "true"}
    with web_process(tmp_path, mongodb_uri, redis_url, database=database, **variables) as web:
        assert error_of(post(web, "/accounts/invitation", invitation="x").json())["code"] == "NOT_FOUND"
        for path in ACCOUNT_PATHS:
            assert post(web, path).status_code in (404, 405), path
        methods = [each["method"] for each in httpx2.get(f"{web.url}/sign-in/options").json()["methods"]]
        assert methods == ["OIDC"]
        assert failure(SignInBrowser(web.url).get("/sign-in/oidc")) == "UNAVAILABLE"
        assert "Traceback" not in web.log_text

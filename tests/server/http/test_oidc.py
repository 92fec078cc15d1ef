"""Sign-in by OpenID Connect at a certified provider, and everything that a hostile page or answer may try."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import httpx2
import pymongo
import pytest

from tests.browser_sessions import CLIENT, SESSION_COOKIE
from tests.http_errors import error_of
from tests.oidc_provider import ADMIN, SignInBrowser, oidc_web_process
from tests.product import eventually
from tests.serving import WebProcess

PENDING = "__Host-noroshi-sign-in"
VIEWER = "{ viewer { id name handle organizationId roles } mySessions { method current } }"


@pytest.fixture(scope="module")
def web(
    tmp_path_factory: pytest.TempPathFactory, mongodb_uri: str, redis_url: str, shared_database: str
) -> Iterator[WebProcess]:
    folder = tmp_path_factory.mktemp("web")
    with oidc_web_process(folder, mongodb_uri, redis_url, database=shared_database) as web:
        yield web


@pytest.fixture
def browser(web: WebProcess) -> Iterator[SignInBrowser]:
    before = len(web.log_text)
    yield SignInBrowser(web.url)
    assert "Traceback" not in web.log_text[before:]


def viewer(browser: SignInBrowser) -> Any:
    """Returns the viewer of the browser's session, or None if nobody is signed in."""
    cookie = "; ".join(f"{name}={value}" for name, value in browser.cookies.items())
    response = httpx2.post(
        f"{browser.product_url}/graphql", json={"query": VIEWER}, headers={"cookie": cookie, **CLIENT}, timeout=60
    )
    return response.json().get("data") if response.status_code == 200 and SESSION_COOKIE in browser.cookies else None


def failure(response: httpx2.Response) -> str:
    """Returns the code that the sign-in screen shows. Asserts that nobody was signed in."""
    assert response.status_code == 303
    assert f"{SESSION_COOKIE}=" not in str(response.headers.get_list("set-cookie"))
    query = parse_qs(urlsplit(response.headers["location"]).query)
    assert response.headers["location"].startswith("/?")
    return query["signInFailure"][0]


def with_parameter(address: str, name: str, value: str) -> str:
    parts = urlsplit(address)
    query = {key: values[0] for key, values in parse_qs(parts.query).items()} | {name: value}
    return parts._replace(query=urlencode(query)).geturl()


def test_sign_in_creates_user_and_session(browser: SignInBrowser) -> None:
    response = browser.sign_in("ann", "/#/topic/1")
    assert (response.status_code, response.headers["location"]) == (303, "/#/topic/1")
    assert PENDING not in browser.cookies
    assert viewer(browser) == {
        "viewer": {"id": "ann", "name": "Ann Lee", "handle": "ann", "organizationId": "main", "roles": ["MEMBER"]},
        "mySessions": [{"method": "OIDC", "current": True}],
    }


def test_cookies_are_hidden_from_scripts_and_other_sites(browser: SignInBrowser) -> None:
    begun = browser.get("/sign-in/oidc")
    (pending,) = begun.headers.get_list("set-cookie")
    finished = browser.get(browser.log_in(begun.headers["location"], "ann"))
    (session,) = [each for each in finished.headers.get_list("set-cookie") if each.startswith(f"{SESSION_COOKIE}=")]
    for cookie in (pending, session):
        for attribute in ("HttpOnly", "Secure", "SameSite=lax", "Path=/"):
            assert attribute in cookie
        assert "Domain" not in cookie


def test_second_sign_in_ends_the_replaced_session(browser: SignInBrowser) -> None:
    browser.sign_in("ann")
    replaced = SignInBrowser(browser.product_url, dict(browser.cookies))
    browser.sign_in("ann")
    assert viewer(browser) is not None
    assert eventually(lambda: viewer(replaced) is None)


@pytest.mark.parametrize(
    "path",
    [
        "https://evil.example.org/",
        "//evil.example.org/",
        "/\\evil.example.org",
        "\\\\evil.example.org",
        "javascript:alert(1)",
        "/\t/evil.example.org",
        "/\r\nSet-Cookie: a=b",
        "",
        "evil",
        "/" + "a" * 2000,
    ],
)
def test_next_leads_to_no_other_server(browser: SignInBrowser, path: str) -> None:
    assert browser.sign_in("ann", path).headers["location"] == "/"


def test_tampered_or_missing_state_signs_nobody_in(browser: SignInBrowser) -> None:
    for value in ("", "x", "x" * 43):
        answer = browser.callback_address("ann")
        assert failure(browser.get(with_parameter(answer, "state", value))) == "EXPIRED"
    assert viewer(browser) is None


def test_answer_for_another_browser_signs_nobody_in(web: WebProcess, browser: SignInBrowser) -> None:
    """An attacker sends their own answer to a victim, who also has a sign-in pending."""
    victim = SignInBrowser(web.url)
    victim.get("/sign-in/oidc")
    assert failure(victim.get(browser.callback_address("ann"))) == "EXPIRED"
    assert failure(SignInBrowser(web.url).get(browser.callback_address("ann"))) == "EXPIRED"


def test_replayed_answer_signs_nobody_in(web: WebProcess, browser: SignInBrowser) -> None:
    answer = browser.callback_address("ann")
    copied = SignInBrowser(web.url, dict(browser.cookies))
    assert browser.get(answer).headers["location"] == "/"
    assert failure(browser.get(answer)) == "EXPIRED"
    assert failure(copied.get(answer)) == "INVALID"


def test_answer_of_another_issuer_signs_nobody_in(browser: SignInBrowser) -> None:
    answer = browser.callback_address("ann")
    assert failure(browser.get(with_parameter(answer, "iss", "https://evil.example.org"))) == "INVALID"


def test_refusal_of_the_provider_is_shown_by_its_code(browser: SignInBrowser) -> None:
    address = urlsplit(browser.get("/sign-in/oidc").headers["location"])
    state, issuer = parse_qs(address.query)["state"][0], f"{address.scheme}://{address.netloc}"
    query = urlencode({"error": "access_denied", "state": state, "iss": issuer})
    assert failure(browser.get(f"/sign-in/oidc/callback?{query}")) == "REFUSED"


def issuer_of(browser: SignInBrowser) -> str:
    parts = urlsplit(browser.get("/sign-in/oidc").headers["location"])
    return f"{parts.scheme}://{parts.netloc}"


def test_deactivated_user_signs_in_no_more(web: WebProcess, browser: SignInBrowser) -> None:
    browser.sign_in("ben")
    assert viewer(browser) is not None
    admin = {"authorization": f"Bearer {web.token('root', org='main', roles=('ADMIN',))}"}
    query = 'mutation { deactivateUser(userId: "ben", reason: "left") { id } }'
    httpx2.post(f"{web.url}/graphql", json={"query": query}, headers=admin, timeout=60)
    assert failure(browser.sign_in("ben")) == "DEACTIVATED"
    assert eventually(lambda: viewer(browser) is None)


def test_sign_out_offers_sign_out_at_the_provider(browser: SignInBrowser) -> None:
    browser.sign_in("ann")
    cookie = f"{SESSION_COOKIE}={browser.cookies[SESSION_COOKIE]}"
    response = httpx2.post(f"{browser.product_url}/sign-out", headers={"cookie": cookie, **CLIENT}, timeout=60)
    address = response.json()["signOutUrl"]
    assert parse_qs(urlsplit(address).query)["post_logout_redirect_uri"] == [f"{browser.product_url}/"]
    assert eventually(lambda: viewer(browser) is None)


def test_logout_at_the_provider_ends_the_session(browser: SignInBrowser) -> None:
    browser.sign_in("ann")
    assert viewer(browser) is not None
    page = browser.open_at_provider(f"{issuer_of(browser)}/session/end")
    xsrf = re.search(r'name="xsrf" value="(\w+)"', page.text)
    assert xsrf, page.text
    action = re.search(r'<form[^>]* action="([^"]+)"', page.text)
    assert action
    browser.open_at_provider(action[1], {"xsrf": xsrf[1], "logout": "yes"})
    assert eventually(lambda: viewer(browser) is None)


@pytest.mark.parametrize("token", [None, "", "x", "a.b.c", "x" * 20_000])
def test_malformed_logout_token_is_refused(browser: SignInBrowser, token: str | None) -> None:
    form = {} if token is None else {"logout_token": token}
    response = httpx2.post(f"{browser.product_url}/sign-in/oidc/logout", data=form, timeout=60)
    answer = response.json()
    assert (response.status_code, answer.pop("error"), bool(answer.pop("error_description"))) == (
        400,
        "invalid_request",
        True,
    )
    assert error_of(answer)["field"] == "logout_token"
    assert response.headers["cache-control"] == "no-store"


def test_options_name_the_provider(browser: SignInBrowser) -> None:
    assert browser.get("/sign-in/options").json() == {
        "methods": [{"method": "OIDC", "name": "127.0.0.1", "url": "/sign-in/oidc"}]
    }


def test_claim_map_of_keycloak_gives_organization_and_roles(
    tmp_path: Path, mongodb_uri: str, redis_url: str, database: str
) -> None:
    claims = "org=/org,roles=/realm_access/roles,name=/name,handle=/preferred_username,email=/email"
    variables = {
        "NOROSHI_OIDC_CLAIMS": claims,
        "NOROSHI_OIDC_ROLES": f"{ADMIN}:ADMIN",
        "NOROSHI_OIDC_MAIL_DOMAINS": "example.org",
    }
    with oidc_web_process(tmp_path, mongodb_uri, redis_url, None, database=database, **variables) as web:
        ada = SignInBrowser(web.url)
        assert ada.sign_in("ada").headers["location"] == "/"
        signed_in = viewer(ada)["viewer"]
        assert (signed_in["organizationId"], sorted(signed_in["roles"])) == ("globex", ["ADMIN", "MEMBER"])
        with pymongo.MongoClient[Any](mongodb_uri) as mongo:
            entries = list(mongo[web.database]["audit"].find({"actor": "ada"}))
        assert [(each["action"], each["details"]) for each in entries] == [
            ("USER_ROLES_SET", {"before": "MEMBER", "after": "ADMIN, MEMBER", "source": "identity provider"})
        ]
        # Ann's claims name no organization.
        assert failure(SignInBrowser(web.url).sign_in("ann")) == "CLAIMS"
        # Ben's address is in another domain, and Cyd's address is not verified.
        for account in ("ben", "cyd"):
            assert failure(SignInBrowser(web.url).sign_in(account)) == "DOMAIN"

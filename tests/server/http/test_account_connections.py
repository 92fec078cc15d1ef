"""/callbacks/accounts: the way of a browser to a network and back, and what hostile answers and sessions get."""

import base64
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest

from server.http.account_connections import CALLBACK, ConnectionFailure
from storage.identity.roles import Role
from tests.browser_sessions import begin_session, session_headers
from tests.serving import WebProcess, web_process
from tests.twins.mastodon import MastodonTwin
from tests.twins.twin import NetworkFault, running_twin

pytestmark = pytest.mark.anyio

BEGIN = """
mutation ($input: ConnectAccountInBrowserInput!) { done: connectAccountInBrowser(input: $input) { url expiresAt } }
"""
AGAIN = "mutation ($id: ID!) { done: reconnectAccountInBrowser(accountId: $id) { url } }"
LIST = "{ done: connectedAccounts { id name handle } }"
DISCONNECT = "mutation ($id: ID!) { done: disconnectAccount(id: $id) { id } }"


@pytest.fixture(scope="module")
def web(
    tmp_path_factory: pytest.TempPathFactory, mongodb_uri: str, redis_url: str, shared_database: str
) -> Iterator[WebProcess]:
    variables = {
        "NOROSHI_EGRESS_ALLOW": "127.0.0.0/8",
        "NOROSHI_CREDENTIAL_KEYS": f"1:{base64.b64encode(b'k' * 32).decode()}",
        "NOROSHI_PUBLIC_URL": "https://noroshi.example",
    }
    folder = tmp_path_factory.mktemp("web")
    with web_process(folder, mongodb_uri, redis_url, database=shared_database, **variables) as web:
        yield web
    assert "Traceback" not in web.log_text


@dataclass
class Browser:
    """A browser in which a person is signed in."""

    web: WebProcess
    session: str | None

    async def do(self, document: str, **variables: Any) -> Any:
        body, headers = {"query": document, "variables": variables}, session_headers(self.session or "")
        async with httpx2.AsyncClient(timeout=60) as client:
            answer = (await client.post(f"{self.web.url}/graphql", json=body, headers=headers)).json()
        assert "errors" not in answer, answer
        return answer["data"]["done"]

    async def begin(self, twin: MastodonTwin) -> str:
        """Returns the address at the network."""
        input_ = {"network": "MASTODON", "name": "Harbour", "baseUrl": f"{twin.url}/"}
        url: str = (await self.do(BEGIN, input=input_))["url"]
        return url

    async def open(self, address: str) -> tuple[str, str]:
        """Opens the address to which a network sends the browser. Returns the parameter of the publishing screen."""
        parts = urlsplit(address)
        assert f"{parts.scheme}://{parts.netloc}{parts.path}" == f"https://noroshi.example{CALLBACK}"
        # A navigation from another site has the cookie, and none of our headers.
        headers = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}
        if self.session is not None:
            headers["cookie"] = session_headers(self.session)["cookie"]
        async with httpx2.AsyncClient(timeout=60) as client:
            response = await client.get(f"{self.web.url}{parts.path}?{parts.query}", headers=headers)
        assert response.status_code == 303
        assert (response.headers["cache-control"], response.headers["referrer-policy"]) == ("no-store", "no-referrer")
        target = urlsplit(response.headers["location"])
        assert (target.netloc, target.path, target.fragment) == ("", "/", "/publishing")
        ((name, (value,)),) = parse_qs(target.query).items()
        return name, value

    async def fails(self, address: str) -> str:
        name, value = await self.open(address)
        assert name == "accountConnectionFailure"
        assert value in ConnectionFailure.__members__
        return value

    async def accounts(self) -> list[Any]:
        accounts: list[Any] = await self.do(LIST)
        return accounts


@pytest.fixture
async def twin() -> AsyncIterator[MastodonTwin]:
    async with running_twin(MastodonTwin()) as twin:
        assert isinstance(twin, MastodonTwin)
        yield twin


async def signed_in(web: WebProcess, mongodb_uri: str, user: str, role: Role = Role.OPERATOR) -> Browser:
    return Browser(web, await begin_session(mongodb_uri, web.database, user, roles=(role,)))


@pytest.fixture
async def ann(web: WebProcess, mongodb_uri: str) -> AsyncIterator[Browser]:
    ann = await signed_in(web, mongodb_uri, "ann")
    yield ann
    for account in await ann.accounts():
        await ann.do(DISCONNECT, id=account["id"])


async def test_browser_connects_an_account_and_connects_it_again(ann: Browser, twin: MastodonTwin) -> None:
    name, account_id = await ann.open(twin.authorization.allow(await ann.begin(twin)))
    assert name == "connectedAccount"
    assert await ann.accounts() == [{"id": account_id, "name": "Harbour", "handle": "@harbour@127.0.0.1"}]
    again = (await ann.do(AGAIN, id=account_id))["url"]
    assert await ann.open(twin.authorization.allow(again)) == ("connectedAccount", account_id)
    assert len(await ann.accounts()) == 1


async def test_repeated_answer_is_refused(ann: Browser, twin: MastodonTwin) -> None:
    answer = twin.authorization.allow(await ann.begin(twin))
    await ann.open(answer)
    assert await ann.fails(answer) == "EXPIRED"
    assert len(await ann.accounts()) == 1


async def test_answer_in_another_session_is_refused(
    web: WebProcess, mongodb_uri: str, ann: Browser, twin: MastodonTwin
) -> None:
    answer = twin.authorization.allow(await ann.begin(twin))
    assert await (await signed_in(web, mongodb_uri, "ann")).fails(answer) == "OTHER_SESSION"
    assert await (await signed_in(web, mongodb_uri, "ben")).fails(answer) == "OTHER_SESSION"
    assert await Browser(web, None).fails(answer) == "SIGNED_OUT"
    assert await Browser(web, "x" * 43).fails(answer) == "SIGNED_OUT"
    assert await Browser(web, "forged").fails(answer) == "SIGNED_OUT"
    assert await ann.accounts() == []
    assert (await ann.open(answer))[0] == "connectedAccount"


async def test_forged_state_is_refused(ann: Browser, twin: MastodonTwin) -> None:
    await ann.begin(twin)
    for state in ("", "x", "x" * 43, "$ne", "x" * 5000):
        assert await ann.fails(f"https://noroshi.example{CALLBACK}?code=code-0&state={state}") == "EXPIRED"
    assert await ann.fails(f"https://noroshi.example{CALLBACK}") == "EXPIRED"
    assert await ann.accounts() == []


async def test_denied_access_is_shown_and_ends_the_connection(ann: Browser, twin: MastodonTwin) -> None:
    address = await ann.begin(twin)
    assert await ann.fails(twin.authorization.deny(address)) == "REFUSED"
    assert await ann.fails(twin.authorization.allow(address)) == "EXPIRED"


async def test_network_decides_about_code_and_token(ann: Browser, twin: MastodonTwin) -> None:
    state = parse_qs(urlsplit(await ann.begin(twin)).query)["state"][0]
    assert await ann.fails(f"https://noroshi.example{CALLBACK}?code=forged&state={state}") == "NOT_ACCEPTED"
    answer = twin.authorization.allow(await ann.begin(twin))
    twin.verification_faults.append(NetworkFault.FAIL_BEFORE)
    assert await ann.fails(answer) == "UNAVAILABLE"
    assert await ann.accounts() == []


async def test_other_account_is_not_connected_again(ann: Browser, twin: MastodonTwin) -> None:
    _, account_id = await ann.open(twin.authorization.allow(await ann.begin(twin)))
    address = (await ann.do(AGAIN, id=account_id))["url"]
    twin.user_id = "9"
    assert await ann.fails(twin.authorization.allow(address)) == "OTHER_ACCOUNT"
    twin.user_id = MastodonTwin.user_id
    address = (await ann.do(AGAIN, id=account_id))["url"]
    await ann.do(DISCONNECT, id=account_id)
    assert await ann.fails(twin.authorization.allow(address)) == "CONFLICT"


async def test_member_finishes_nothing(web: WebProcess, mongodb_uri: str, twin: MastodonTwin) -> None:
    member = await signed_in(web, mongodb_uri, "mel", Role.MEMBER)
    assert await member.fails(f"https://noroshi.example{CALLBACK}?code=a&state=b") == "FORBIDDEN"


async def test_log_shows_no_secrets(web: WebProcess, ann: Browser, twin: MastodonTwin) -> None:
    answer = twin.authorization.allow(await ann.begin(twin))
    await ann.open(answer)
    query = parse_qs(urlsplit(answer).query)
    for secret in (query["state"][0], query["code"][0], twin.token):
        assert secret not in web.log_text

"""A person connects an account at a network, in a real Chromium: allows access, denies it, and allows it again."""

import asyncio
import base64
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from storage.identity.roles import Role
from tests.browser_sessions import begin_session
from tests.e2e.browser_scripts import SCRIPT_TIMEOUT_S, foreign_requests, run_browser_script
from tests.oidc_provider import free_port
from tests.serving import WebProcess, web_process
from tests.twins.mastodon import MastodonTwin
from tests.twins.twin import running_twin

pytestmark = pytest.mark.anyio


@pytest.fixture
def web(tmp_path: Path, mongodb_uri: str, redis_url: str, database: str) -> Iterator[WebProcess]:
    """A web process whose public address is its own, so that the network sends the browser back to it."""
    port = free_port()
    variables: dict[str, Any] = {
        "NOROSHI_EGRESS_ALLOW": "127.0.0.0/8, ::1/128",
        "NOROSHI_CREDENTIAL_KEYS": f"1:{base64.b64encode(b'k' * 32).decode()}",
        "NOROSHI_PUBLIC_URL": f"http://127.0.0.1:{port}",
    }
    with web_process(tmp_path, mongodb_uri, redis_url, port=port, database=database, **variables) as web:
        yield web
    assert "Traceback" not in web.log_text


@pytest.fixture
async def twin() -> AsyncIterator[MastodonTwin]:
    """A server of another site than the product, as browsers see it: a name, and not the product's address."""
    async with running_twin(MastodonTwin()) as twin:
        assert isinstance(twin, MastodonTwin)
        twin.url = twin.url.replace("127.0.0.1", "localhost")
        yield twin


@pytest.mark.browser
@pytest.mark.timeout(SCRIPT_TIMEOUT_S + 60)
async def test_account_is_connected_denied_and_connected_again(
    web: WebProcess, twin: MastodonTwin, mongodb_uri: str, tmp_path: Path
) -> None:
    session = await begin_session(mongodb_uri, web.database, "ann", roles=(Role.OPERATOR,))

    report = await asyncio.to_thread(
        run_browser_script, "web/account-connections.mjs", web.url, tmp_path, session=session, server=twin.url
    )

    connected, denied, again = report["connected"], report["denied"], report["again"]
    assert connected["notice"] == {"role": "status", "text": "Harbour is connected"}
    assert connected["rows"] == ["Harbour · Mastodon · @harbour@localhost"]
    text = "Access was not allowed at the network. Nothing was connected."
    assert denied["notice"] == {"role": "alert", "text": text}
    assert denied["rows"] == connected["rows"]
    assert again["notice"] == connected["notice"]
    assert again["rows"] == connected["rows"]
    assert report["verifiedAt"][0] < report["verifiedAt"][1], "The account must have other credentials."
    assert report["addresses"] == [f"{web.url}/#/publishing"] * 3, "The result must not stay in the address."
    asked = {
        path: count for path, count in twin.request_counts.items() if path.startswith(("GET /oauth", "POST /oauth"))
    }
    assert asked == {"GET /oauth/authorize": 3, "POST /oauth/authorize": 3, "POST /oauth/token": 2}
    assert report["violations"] == []
    assert report["pageErrors"] == []
    assert foreign_requests(report["requests"], web.url, twin.url) == []

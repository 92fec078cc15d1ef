"""Sign-in at an identity provider in a real Chromium: no token in the browser, and a sign-out of every tab."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.browser_scripts import SCRIPT_TIMEOUT_S, run_browser_script
from tests.oidc_provider import oidc_web_process
from tests.serving import WebProcess


@pytest.fixture
def web(tmp_path: Path, mongodb_uri: str, redis_url: str, database: str) -> Iterator[WebProcess]:
    with oidc_web_process(tmp_path, mongodb_uri, redis_url, database=database) as web:
        yield web


@pytest.mark.browser
@pytest.mark.timeout(SCRIPT_TIMEOUT_S + 60)
def test_person_signs_in_and_out_at_the_provider(web: WebProcess, tmp_path: Path) -> None:
    report = run_browser_script("accounts/oidc.mjs", web.url, tmp_path)
    assert "verified mail address" in report["failure"]
    assert report["address"] == f"{web.url}/#/chat"
    assert "eyJ" not in report["stored"], "A token is stored in the browser."
    assert "__Host" not in report["stored"], "Scripts can read the cookie."
    assert report["graphiql"]["data"]["viewer"]["handle"] == "ann"
    assert report["overflowingScreens"] == []
    assert report["violations"] == []
    assert report["pageErrors"] == []

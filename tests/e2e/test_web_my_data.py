"""The viewer's own data in a real Chromium: browsers in which the viewer is signed in, and their end."""

from pathlib import Path

import pytest

from tests.browser_sessions import begin_session
from tests.e2e.browser_scripts import SCRIPT_TIMEOUT_S, foreign_requests, run_browser_script
from tests.serving import web_process

pytestmark = pytest.mark.anyio

SESSIONS = 3


@pytest.mark.browser
@pytest.mark.timeout(SCRIPT_TIMEOUT_S + 60)
async def test_viewer_signs_out_of_other_browsers(mongodb_uri: str, redis_url: str, tmp_path: Path) -> None:
    with web_process(tmp_path, mongodb_uri, redis_url) as web:
        for _ in range(SESSIONS):
            await begin_session(mongodb_uri, web.database, "ann")
        report = run_browser_script("web-my-data.mjs", web.url, tmp_path, tokens={"ann": web.token()})

    assert "Demo user" in report["text"]
    assert report["counts"] == [SESSIONS, SESSIONS - 1, 0]
    assert (report["violations"], report["overflowingScreens"], report["pageErrors"]) == ([], [], [])
    assert foreign_requests(report["requests"], web.url) == []

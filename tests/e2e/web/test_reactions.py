"""The emoji picker in a real Chromium: by name, from a group, by arrow keys, and at the caret of a text."""

from pathlib import Path

import pytest

from tests.e2e.browser_scripts import SCRIPT_TIMEOUT_S, foreign_requests, run_browser_script
from tests.serving import web_process


@pytest.mark.browser
@pytest.mark.timeout(SCRIPT_TIMEOUT_S + 60)
def test_viewer_picks_emojis_as_reactions(mongodb_uri: str, redis_url: str, tmp_path: Path) -> None:
    with web_process(tmp_path, mongodb_uri, redis_url) as web:
        report = run_browser_script("web/reactions.mjs", web.url, tmp_path, tokens={"ann": web.token()})

    assert report["emojis"] == ["🌋", "🚩", "❤️"]
    inserted, undone = "lit🌋now", "litnow"
    assert report["texts"] == [[inserted, undone, inserted, inserted]] * 2
    assert (report["violations"], report["overflowingScreens"], report["pageErrors"]) == ([], [], [])
    assert foreign_requests(report["requests"], web.url) == []

"""The viewer's own data in a real Chromium: browsers in which the viewer is signed in, and the viewer's mutes."""

from pathlib import Path

import pytest

from tests.browser_sessions import begin_session
from tests.e2e.browser_scripts import SCRIPT_TIMEOUT_S, foreign_requests, run_browser_script
from tests.e2e.conftest import DeployedProduct

pytestmark = pytest.mark.anyio

SESSIONS = 3
ORGANIZATION = "web-my-data"


@pytest.mark.browser
@pytest.mark.timeout(SCRIPT_TIMEOUT_S + 60)
async def test_viewer_ends_sessions_and_mutes(product: DeployedProduct, tmp_path: Path) -> None:
    for _ in range(SESSIONS):
        await begin_session(product.mongodb_uri, "noroshi", "ann", ORGANIZATION)
    tokens = {name: product.token(name, ORGANIZATION) for name in ("ann", "bob")}
    report = run_browser_script("accounts/my-data.mjs", product.url, tmp_path, tokens=tokens)

    assert "Demo user" in report["text"]
    user, topic, community = "USER 24 h", "TOPIC 24 h", "COMMUNITY 8 h"
    assert report["mutes"] == [["USER"], [], [user], [topic, user], [community, topic, user], []]
    assert [text.split(" until ")[0] for text in report["muteTexts"]] == ["Community ·", "Topic ·", "Person ·"]
    assert report["counts"] == [SESSIONS, SESSIONS - 1, 0]
    assert (report["violations"], report["overflowingScreens"], report["pageErrors"]) == ([], [], [])
    assert foreign_requests(report["requests"], product.url) == []

"""Two users of the web client, each in a real Chromium window: chat, disconnect, permalink, follow, post."""

from pathlib import Path

import pytest

from tests.e2e.browser_scripts import SCRIPT_TIMEOUT_S, foreign_requests, run_browser_script
from tests.e2e.conftest import DeployedProduct

FIRST_LOAD_MAX_BYTES = 185_000
LINE_MAX_PX = 800


@pytest.mark.browser
@pytest.mark.timeout(SCRIPT_TIMEOUT_S + 60)
def test_two_users_chat_through_disconnect(product: DeployedProduct, tmp_path: Path) -> None:
    tokens = {name: product.token(name, org="web", name=name.title(), handle=name) for name in ("ann", "ben")}

    report = run_browser_script("web/client.mjs", product.url, tmp_path, tokens=tokens)

    assert 0 < report["scripts_bytes"] < FIRST_LOAD_MAX_BYTES, "The first load of a conversation is too large."
    assert report["mentionLinks"] == 1, "The mention is not a link."
    assert report["title"] == "(1) Watch · Noroshi"
    assert report["afterDisconnect"]["resumed"]
    assert all(report["afterDisconnect"]["resumed"]), "A subscription was not resumed after the disconnect."
    assert report["afterDisconnect"]["ann"] == report["afterDisconnect"]["ben"], (
        "The timelines differ after the disconnect."
    )
    assert len(set(report["afterDisconnect"]["ben"])) == 4
    assert report["permalink"]["isVisible"], "The permalink's message is not visible."
    for step in report["permalink"]["olderPages"]:
        assert step["isLoaded"], "No older page was loaded."
        assert step["moved_px"] <= 2, "The visible rows moved."
    assert report["permalink"]["rows"] < 100, "Invisible rows are in the DOM."
    assert report["isHighlighted"], "The message with the reaction is not highlighted."
    assert report["fanOutProgress"] == "Feeds reached: 1"
    for checks in (report["screens"], report["signIn"]):
        assert checks["violations"] == []
        assert checks["overflowingScreens"] == []
        assert 300 < checks["longestLine_px"] <= LINE_MAX_PX, "Lines are too long on a wide screen."
    assert report["pageErrors"] == []
    assert foreign_requests(report["requests"], product.url, report["proxyUrl"]) == []

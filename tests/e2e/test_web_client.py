"""Two people in the web client, in a real Chromium against the real product: chat, disconnect, jump, follow, post."""

from pathlib import Path

import pytest

from tests.e2e.browser_scripts import SCRIPT_TIMEOUT_S, foreign_requests, run_browser_script
from tests.e2e.conftest import DeployedProduct

FIRST_LOAD_MAX_BYTES = 200_000
LINE_MAX_PX = 800


@pytest.mark.browser
@pytest.mark.timeout(SCRIPT_TIMEOUT_S + 60)
def test_two_users_chat_through_disconnect(product: DeployedProduct, tmp_path: Path) -> None:
    tokens = {name: product.token(name, org="web", name=name.title(), handle=name) for name in ("ann", "ben")}

    report = run_browser_script("web-client.mjs", product.url, tmp_path, tokens=tokens)

    assert 0 < report["scripts_bytes"] < FIRST_LOAD_MAX_BYTES, "The first load of a conversation is too large."
    assert report["mentionLinks"] == 1, "The mention is not a link."
    assert report["missed"]["ann"] == report["missed"]["ben"], "The timelines differ after the disconnect."
    assert len(set(report["missed"]["ben"])) == 4
    assert report["jump"]["inSight"], "The permalink's message is not visible."
    for step in report["jump"]["moved_px"]:
        assert step["added"], "No older page was loaded."
        assert step["by"] <= 2, "The visible rows moved."
    assert report["jump"]["rows"] < 100, "Invisible rows are in the DOM."
    assert report["fromReactions"], "The message with the reaction is not highlighted."
    assert report["post"] == "Feeds reached: 1"
    for looked in (report["screens"], report["signIn"]):
        assert looked["violations"] == []
        assert looked["tooWide"] == []
        assert 300 < looked["line_px"] <= LINE_MAX_PX, "Lines are too long on a wide screen."
    assert report["pageErrors"] == []
    assert foreign_requests(report["requests"], product.url, report["wire"]) == []

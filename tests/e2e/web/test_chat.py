"""Chat beyond plain messages in a real Chromium: stamps, edits, deletions, previews, tabs, hashtags, blocks."""

from pathlib import Path

import pytest

from tests.e2e.browser_scripts import SCRIPT_TIMEOUT_S, foreign_requests, run_browser_script
from tests.e2e.conftest import DeployedProduct


@pytest.mark.browser
@pytest.mark.timeout(SCRIPT_TIMEOUT_S + 60)
def test_chat_actions_show_in_every_tab(product: DeployedProduct, tmp_path: Path) -> None:
    tokens = {name: product.token(name, org="web-chat", name=name.title(), handle=name) for name in ("ann", "ben")}

    report = run_browser_script("web/chat.mjs", product.url, tmp_path, tokens=tokens)

    assert report["stamp"]["width_px"] > 0, f"The stamp {report['stamp']['name']} has no picture."
    assert report["editedMessages"] == 1
    assert report["preview"]["href"] == report["preview"]["linkedUrl"]
    assert report["preview"]["imageWidth_px"] == 1, "The preview's picture did not load."
    assert report["tabs"]["first"] == report["tabs"]["second"] == report["tabs"]["ben"]
    assert len(set(report["tabs"]["ben"])) == 2
    assert report["trending"]
    assert report["draftOfNextUser"] == "", "The draft of a user is shown to the next user of the tab."
    assert report["messagesDuringBlock"] == 0, "Messages of a blocked user are shown."
    assert report["pageErrors"] == []
    assert foreign_requests(report["requests"], product.url) == []

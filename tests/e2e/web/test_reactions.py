"""The emoji picker in a real Chromium: by name, from a group, by arrow keys, and at the caret of a text."""

from pathlib import Path

import pytest

from tests.e2e.browser_scripts import SCRIPT_TIMEOUT_S, foreign_requests, run_browser_script
from tests.e2e.conftest import DeployedProduct


@pytest.mark.browser
@pytest.mark.timeout(SCRIPT_TIMEOUT_S + 60)
def test_viewer_picks_emojis_as_reactions(product: DeployedProduct, tmp_path: Path) -> None:
    tokens = {"ann": product.token("ann", "web-reactions")}
    report = run_browser_script("web/reactions.mjs", product.url, tmp_path, tokens=tokens)

    assert report["emojis"] == ["🌋", "🚩", "❤️"]
    inserted, undone = "lit🌋now", "litnow"
    assert report["texts"] == [[inserted, undone, inserted, inserted]] * 2
    assert (report["violations"], report["overflowingScreens"], report["pageErrors"]) == ([], [], [])
    assert foreign_requests(report["requests"], product.url) == []

"""A post with many replies in a real Chromium, by keyboard alone: one notification, and a mute of the conversation."""

from pathlib import Path

import pytest

from tests.e2e.browser_scripts import SCRIPT_TIMEOUT_S, foreign_requests, run_browser_script
from tests.e2e.conftest import DeployedProduct


@pytest.mark.browser
@pytest.mark.timeout(SCRIPT_TIMEOUT_S + 60)
def test_replies_are_one_row_until_they_are_muted(product: DeployedProduct, tmp_path: Path) -> None:
    names = ("ann", "bob", "cat", "dan")
    tokens = {name: product.token(name, org="web-muted-posts", name=name) for name in names}

    report = run_browser_script("web/muted-posts.mjs", product.url, tmp_path, tokens=tokens)

    assert report["groups"] == [
        "cat and bob wrote 2 replies to your post",
        "dan, cat and 1 other wrote 3 replies to your post",
        "cat and bob wrote 2 replies to your post",
    ]
    assert report["rows"] == 2, "The replies are not one row, or the quote has none."
    assert report["muted"] == 0, "Notifications of a muted conversation are listed."
    assert report["left"] == {"lines": ["The harbour is open", "Conversation of a post"], "myMutes": []}
    assert (report["violations"], report["overflowingScreens"], report["pageErrors"]) == ([], [], [])
    assert foreign_requests(report["requests"], product.url) == []

"""Posts in a real Chromium, by keyboard alone: two people repost, react, reply, and read each other's answers."""

from pathlib import Path

import pytest

from tests.e2e.browser_scripts import SCRIPT_TIMEOUT_S, foreign_requests, run_browser_script
from tests.e2e.conftest import DeployedProduct


@pytest.mark.browser
@pytest.mark.timeout(SCRIPT_TIMEOUT_S + 60)
def test_two_people_answer_posts_by_keyboard(product: DeployedProduct, tmp_path: Path) -> None:
    tokens = {name: product.token(name, org="web-posts") for name in ("ann", "bob", "cat", "dan")}

    report = run_browser_script("web/posts.mjs", product.url, tmp_path, tokens=tokens)

    assert (report["notifications"], report["replies"], report["edited"]) == (5, 1, 1)
    grouped = report["grouped"]
    assert (grouped["unread"], grouped["unreadLater"]) == (5, 0)
    assert "cat and bob reacted 🎉👍 to your post" in grouped["before"].lower()
    assert "dan, cat and 1 other reacted 🐟🎉👍 to your post" in grouped["after"].lower()
    assert report["live"] == [1, 1], "A new post did not appear on the page of everyone, or of its hashtag."
    assert (report["violations"], report["overflowingScreens"], report["pageErrors"]) == ([], [], [])
    assert foreign_requests(report["requests"], product.url) == []

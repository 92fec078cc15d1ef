"""Threads in a real Chromium, by keyboard alone: two people reply to a message side by side."""

from pathlib import Path

import pytest

from tests.e2e.browser_scripts import SCRIPT_TIMEOUT_S, foreign_requests, run_browser_script
from tests.e2e.conftest import DeployedProduct


@pytest.mark.browser
@pytest.mark.timeout(SCRIPT_TIMEOUT_S + 60)
def test_people_reply_in_a_thread_by_keyboard(product: DeployedProduct, tmp_path: Path) -> None:
    tokens = {name: product.token(name, org="web-threads", name=name.title()) for name in ("ann", "ben")}

    report = run_browser_script("web/threads.mjs", product.url, tmp_path, tokens=tokens)

    assert report["empty"] == "No replies yet"
    assert report["link"] == "1 reply"
    assert report["replies"] == ["I do, and Catedited", "Bring oars"]
    assert report["closed"] == "Who rows on Sunday?"
    assert "Thread" in report["found"]
    assert {"Rowers · Boats", "Ann: Who rows on Sunday?", "Ben: At ten"} <= set(report["unread"].splitlines())
    assert "Ben replied in a thread that you follow" in report["notification"]
    assert report["unfollowed"] == "You follow no threads"
    assert report["timeline"] == ["Who rows on Sunday?"]
    assert (report["violations"], report["overflowingScreens"], report["pageErrors"]) == ([], [], [])
    assert foreign_requests(report["requests"], product.url) == []


@pytest.mark.browser
@pytest.mark.timeout(SCRIPT_TIMEOUT_S + 60)
def test_first_reply_stays_when_another_starts_the_thread(product: DeployedProduct, tmp_path: Path) -> None:
    tokens = {name: product.token(name, org="web-thread-page", name=name.title()) for name in ("ann", "ben")}

    report = run_browser_script("web/thread-page.mjs", product.url, tmp_path, tokens=tokens)

    assert report["draft"] == {"continued": "I row on Sunday", "reloaded": "I row on Sunday"}
    assert report["waiting"] == {"waiting": 1, "replies": ["Nobody steers", "I steer"]}
    assert (report["violations"], report["overflowingScreens"], report["pageErrors"]) == ([], [], [])

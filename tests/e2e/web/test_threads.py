"""Threads in a real Chromium, by keyboard alone: two people reply to a message side by side."""

from pathlib import Path
from typing import Any

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


def run_part(product: DeployedProduct, tmp_path: Path, part: str) -> dict[str, Any]:
    """Runs a part of the script about single threads, in an organization of its own. Returns its report."""
    tokens = {name: product.token(name, org=f"web-thread-{part}", name=name.title()) for name in ("ann", "ben")}
    report = run_browser_script("web/thread-page.mjs", product.url, tmp_path, part=part, tokens=tokens)
    assert (report["violations"], report["overflowingScreens"], report["pageErrors"]) == ([], [], [])
    return report


@pytest.mark.browser
@pytest.mark.timeout(SCRIPT_TIMEOUT_S + 60)
def test_draft_stays_when_another_starts_the_thread(product: DeployedProduct, tmp_path: Path) -> None:
    report = run_part(product, tmp_path, "draft")

    assert (report["continued"], report["reloaded"]) == ("I row on Sunday", "I row on Sunday")


@pytest.mark.browser
@pytest.mark.timeout(SCRIPT_TIMEOUT_S + 60)
def test_waiting_reply_stays_when_another_starts_the_thread(product: DeployedProduct, tmp_path: Path) -> None:
    report = run_part(product, tmp_path, "waiting")

    assert report["waiting"] == 1
    assert report["replies"] == ["Nobody steers", "I steer"]


@pytest.mark.browser
@pytest.mark.timeout(SCRIPT_TIMEOUT_S + 60)
def test_thread_on_narrow_screen_is_a_page(product: DeployedProduct, tmp_path: Path) -> None:
    report = run_part(product, tmp_path, "page")

    as_page = {"coversAll": True, "isTopicInert": True, "heading": "H1", "hasFocus": True}
    assert report["page"] == {**as_page, "title": "Thread · Boats · Noroshi"}
    assert report["hasAddress"], "The thread has no address of its own."
    assert report["isSamePlace"], "The topic was scrolled, or has another address."
    assert report["focus"] == report["parentId"]
    panel = {name: report["panel"][name] for name in ("coversAll", "isTopicInert", "heading")}
    assert panel == {"coversAll": False, "isTopicInert": False, "heading": "H2"}


@pytest.mark.browser
@pytest.mark.timeout(SCRIPT_TIMEOUT_S + 60)
def test_muted_thread_is_listed_by_its_first_message(product: DeployedProduct, tmp_path: Path) -> None:
    report = run_part(product, tmp_path, "mute")

    assert (report["name"], report["place"]) == ("Ann: Who rows on Sunday?", "Thread · Rowers · Boats")
    assert report["left"][:2] == ["Replies to a message that you cannot see", "Thread"]
    assert report["myMutes"] == []


@pytest.mark.browser
@pytest.mark.timeout(SCRIPT_TIMEOUT_S + 60)
def test_line_new_is_above_first_unread_reply(product: DeployedProduct, tmp_path: Path) -> None:
    report = run_part(product, tmp_path, "unread")

    assert (report["opened"], report["returned"]) == ("stroke 5", "storm 0")
    assert 0 < report["unread"] <= 25
    assert report["missed"] == 30, "Replies that arrived in a hidden tab are read."


@pytest.mark.browser
@pytest.mark.timeout(SCRIPT_TIMEOUT_S + 60)
def test_reply_is_also_sent_to_the_topic(product: DeployedProduct, tmp_path: Path) -> None:
    report = run_part(product, tmp_path, "topic")

    assert report["isReset"], "The choice is kept for the next reply."
    assert report["origin"] == "Replied in a thread: Who steers?"
    assert report["messages"] == ["Who steers?", "I steer"]
    assert (report["note"], report["isParent"]) == (1, True)


@pytest.mark.browser
@pytest.mark.timeout(SCRIPT_TIMEOUT_S + 60)
def test_thread_without_its_script_can_be_retried(product: DeployedProduct, tmp_path: Path) -> None:
    report = run_part(product, tmp_path, "script")

    assert (report["loading"], report["retrying"]) == ("Thread", "Thread"), "The thread does not have the focus."
    assert report["closed"] == report["parentId"]

"""Unread messages in a real Chromium: the line "New", what moves the read mark, and the counts of the navigation."""

from pathlib import Path

import pytest

from tests.e2e.browser_scripts import SCRIPT_TIMEOUT_S, foreign_requests, run_browser_script
from tests.e2e.conftest import DeployedProduct


@pytest.mark.browser
@pytest.mark.timeout(SCRIPT_TIMEOUT_S + 60)
def test_messages_stay_unread_until_they_are_seen(product: DeployedProduct, tmp_path: Path) -> None:
    people = ("ann", "ben", "cat")
    tokens = {name: product.token(name, org="web-unread", name=name.title(), handle=name) for name in people}

    report = run_browser_script("web/unread.mjs", product.url, tmp_path, tokens=tokens)

    first_unread = {
        "opened": "fire 20",
        "afterCache": "smoke 0",
        "whileHidden": "storm 0",
        "neverRead": "wave 0",
        "direct": "secret 15",
    }
    shown = {name: report[name]["text"] for name in first_unread}
    assert shown == first_unread
    assert report["linked"]["shown"]["text"] == "echo 1"
    for opened in (*(report[name] for name in first_unread), report["linked"]["shown"]):
        assert opened["isInView"], "The line is not in view."
        assert opened["unread"] > 0, "Messages that were not in view are read."
    assert 0 < report["scrolled"]["halfway"] < report["opened"]["unread"] < 40
    assert (report["scrolled"]["end"], report["afterCache"]["jumped"], report["whileHidden"]["hidden"]) == (0, 0, 45)
    assert report["neverRead"]["button"].split()[1:3] == ["new", "messages"]
    assert report["linked"]["unread"] == 74, "The link's message has marked earlier messages as read."
    assert report["counts"] == [f"({count}) Home · Noroshi" for count in (2, 1, 2)]
    assert (report["violations"], report["overflowingScreens"], report["pageErrors"]) == ([], [], [])
    assert foreign_requests(report["requests"], product.url) == []

"""An operator in the web client, in a real Chromium: posts are scheduled, moved, cancelled, published and resolved."""

from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from tests.e2e.browser_scripts import SCRIPT_TIMEOUT_S, foreign_requests, run_browser_script
from tests.e2e.conftest import DeployedProduct

NEW_YORK = ZoneInfo("America/New_York")


@pytest.mark.browser
@pytest.mark.timeout(SCRIPT_TIMEOUT_S + 60)
def test_post_is_scheduled_moved_cancelled_and_published(product: DeployedProduct, tmp_path: Path) -> None:
    token = product.token("ann", org="web-publishing", roles=["OPERATOR"], name="Ann", handle="ann")

    report = run_browser_script("web/publishing.mjs", product.url, tmp_path, token=token)

    scheduled, dragged, moved, published = (report[step] for step in ("scheduled", "dragged", "moved", "published"))
    assert new_york_time(scheduled["due"]) == f"{scheduled['day']} 19:30"
    assert (scheduled["timeZone"], scheduled["targets"]) == ("America/New_York", 2)
    assert new_york_time(dragged["due"]) == f"{dragged['day']} 19:30", (
        "A drag to another day must keep the time of day."
    )
    assert moved["offeredReadings"] == 2, "A time that the clocks skip must have two readings."
    assert moved["due"] == f"{moved['day']}T07:30:00.000Z"
    assert report["cancelled"] == "CANCELLED"
    assert (published["publishedBefore"], published["stateAfter"], published["messages"]) == (3, "PUBLISHED", 1)
    assert all(part in published["check"] for part in ("Forgetful (Sandbox)", "The beacon is lit")), published["check"]
    assert published["address"] == "https://forgetful.invalid/1"
    assert report["copied"] == {"files": ["map.txt"], "targets": 1}
    assert report["files"] == {"scheduled": ["torches.txt"], "edited": ["map.txt"], "published": ["map.txt"]}
    for post in (report["picture"], report["kept"]):
        assert post["attachments"] == [{"altText": "A fire on a hill", "contentType": "image/png"}]
        assert post["publications"] == [{"state": "PUBLISHED"}], "The only target is the account."
    assert report["media"] == [{"url": "https://pictures.invalid/fire.png", "altText": "A fire", "kind": "IMAGE"}], (
        "An edit in the client must keep media by address."
    )
    assert report["violations"] == []
    assert report["overflows_px"] == [0] * 8, "Something is wider than 360 or 2560 pixels."
    assert report["pageErrors"] == []
    assert foreign_requests(report["requests"], product.url) == []


def new_york_time(due: str) -> str:
    """Returns the instant as clocks in New York show it."""
    return f"{datetime.fromisoformat(due).astimezone(NEW_YORK):%Y-%m-%d %H:%M}"

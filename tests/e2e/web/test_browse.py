"""Many communities and topics in a real Chromium: paging reaches all of them, and events update the visible list."""

from pathlib import Path

import pytest

from tests.e2e.browser_scripts import SCRIPT_TIMEOUT_S, foreign_requests, run_browser_script
from tests.e2e.conftest import DeployedProduct


@pytest.mark.browser
@pytest.mark.timeout(SCRIPT_TIMEOUT_S + 60)
def test_browse_reaches_every_community_and_topic(product: DeployedProduct, tmp_path: Path) -> None:
    tokens = {name: product.token(name, org="web-browse") for name in ("ann", "ben")}

    report = run_browser_script("web/browse.mjs", product.url, tmp_path, tokens=tokens)

    assert report["firstPage"] == 50
    assert report["names"] == [f"Hill {n:02}" for n in range(60)], "A community is missing or duplicated."
    assert report["joined"] == report["names"], "A joined community is not in the list."
    assert report["topics"]["counts"] == [30, 60], "A page did not add thirty topics to the visible ones."
    quiet_topics = [f"Fire {n:02}" for n in reversed(range(75)) if n != 3]
    assert report["topics"]["titles"] == ["Fire 03", *quiet_topics], "A topic is missing or duplicated."
    active_topics = [{"isFirst": True, "count": count} for count in (30, 75)]
    assert report["activeTopics"] == active_topics, "A topic that became active did not move to the top."
    assert (report["violations"], report["overflowingScreens"], report["pageErrors"]) == ([], [], [])
    assert foreign_requests(report["requests"], product.url) == []

"""Desktop notifications in a real Chromium: shown by one hidden tab, if wanted, and replaced silently by the push."""

from pathlib import Path

import pytest

from tests.e2e.browser_scripts import SCRIPT_TIMEOUT_S, foreign_requests, run_browser_script
from tests.e2e.conftest import DeployedProduct


@pytest.mark.browser
@pytest.mark.timeout(SCRIPT_TIMEOUT_S + 60)
def test_hidden_tabs_show_each_notification_once(product: DeployedProduct, tmp_path: Path) -> None:
    tokens = {name: product.token(name, org="web-desktop", name=name.title(), handle=name) for name in ("ann", "ben")}

    report = run_browser_script("web/desktop.mjs", product.url, tmp_path, shows_notifications=True, tokens=tokens)

    mention, direct, later = report["mention"], report["direct"], report["later"]
    assert [(each["title"], each["body"], each["keys"]) for each in report["shown"]] == [
        ("Ben mentioned you", "look here, @ann", [mention]),
        ("Ben wrote to you", "Are you there?", [direct]),
    ]
    one, both, more = ([(each["title"], each["silent"]) for each in step] for step in report["pushed"])
    assert one == [("Ben mentioned you", False), ("pushed", True)]
    assert both == [("both", True)], "The push of both does not replace what the tabs have shown."
    assert more == [("both", True), ("more", False)], "A push of something new is silent."
    assert [each["keys"] for each in report["wanted"]] == [[mention, later]], "An unwanted notification is shown."
    assert sorted(report["calls"]) == [0, 3], "Two tabs show notifications."
    assert report["left"] == 0, "The notification stays although its topic is open."
    assert (report["violations"], report["overflowingScreens"], report["pageErrors"]) == ([], [], [])
    assert foreign_requests(report["requests"], product.url) == []

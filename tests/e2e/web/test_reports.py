"""Reports of messages, posts and people in a real Chromium against the real product."""

from pathlib import Path

import pytest

from tests.e2e.browser_scripts import SCRIPT_TIMEOUT_S, foreign_requests, run_browser_script
from tests.e2e.conftest import DeployedProduct


@pytest.mark.browser
@pytest.mark.timeout(SCRIPT_TIMEOUT_S + 60)
def test_reports_are_decided_and_people_are_notified(product: DeployedProduct, tmp_path: Path) -> None:
    roles = {"ann": ["ADMIN"], "ben": [], "max": [], "olga": []}
    tokens = {name: product.token(name, "web-reports", granted, name.title(), name) for name, granted in roles.items()}

    report = run_browser_script("web/reports.mjs", product.url, tmp_path, tokens=tokens)

    assert "The moderators of the community decide." in report["hint"]
    assert "messages before it" not in report["hint"]
    assert "buy shoes" in report["queue"]
    assert "Spam" in report["queue"]
    assert "嫌がらせ" in report["warned"]
    assert report["banned"] == {"user": "max", "hasEnd": True}
    assert "却下" in report["dismissed"]
    assert "Not advertising" in report["dismissed"]
    assert report["context"] == ["Olga 削除されたか、通報後に編集されました", "Olga Answer me"]
    assert report["notified"] == 5
    assert (report["violations"], report["overflowingScreens"], report["pageErrors"]) == ([], [], [])
    assert foreign_requests(report["requests"], product.url) == []

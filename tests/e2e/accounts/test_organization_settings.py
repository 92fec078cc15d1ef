"""The settings of an organization in a real Chromium: retention rules, call limits, connected lines and accounts."""

from pathlib import Path

import pytest

from tests.e2e.browser_scripts import SCRIPT_TIMEOUT_S, foreign_requests, run_browser_script
from tests.e2e.conftest import DeployedProduct


@pytest.mark.browser
@pytest.mark.timeout(SCRIPT_TIMEOUT_S + 60)
def test_administrator_changes_the_settings(product: DeployedProduct, tmp_path: Path) -> None:
    tokens = {"ann": product.token("ann", "web-settings", ["ADMIN"], "Ann", "ann")}

    report = run_browser_script("accounts/organization-settings.mjs", product.url, tmp_path, tokens=tokens)

    assert not report["shortened"]["canSaveInvalid"], "An invalid number of days can be saved."
    assert report["shortened"]["days"] == 30
    assert "kept for 30 days" in report["shortened"]["text"]
    assert "set by Ann" in report["shortened"]["text"]
    assert report["restored"]["days"] is None
    assert "kept for good" in report["restored"]["text"]
    assert "set by" not in report["restored"]["text"]
    assert report["callLimits"] == {"concurrentCalls": 7}
    assert "Simulator" in report["line"]
    assert report["accounts"].pop("refusal").endswith("the form handle:app-password")
    assert report["accounts"] == {"connected": ["Beacon"], "replacements": 1, "disconnected": []}
    assert (report["violations"], report["overflowingScreens"], report["pageErrors"]) == ([], [], [])
    assert foreign_requests(report["requests"], product.url) == []

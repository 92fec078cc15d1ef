"""Webhooks in a real Chromium against the real product, with a receiver: created, tested, failing, and deleted."""

import re
from pathlib import Path

import pytest

from tests.e2e.browser_scripts import SCRIPT_TIMEOUT_S, foreign_requests, run_browser_script
from tests.e2e.conftest import DeployedProduct

SECRET = re.compile(r"whsec_[A-Za-z0-9+/]{43}=")


@pytest.mark.browser
@pytest.mark.timeout(SCRIPT_TIMEOUT_S + 60)
def test_administrator_manages_a_webhook(product: DeployedProduct, tmp_path: Path) -> None:
    tokens = {"ann": product.token("ann", "web-webhooks", ["ADMIN"], "Ann", "ann")}

    report = run_browser_script("web/webhooks.mjs", product.url, tmp_path, tokens=tokens)

    assert report["refused"].startswith("Expected: an address to which this server may send requests")
    assert SECRET.fullmatch(report["secret"])
    test = report["test"]
    assert "Delivered" in test["summary"]
    assert "200" in test["summary"]
    assert (test["request"]["type"], test["request"]["organizationId"]) == ("WebhookTest", "web-webhooks")
    assert test["answer"] == "Thank you"
    assert test["isSigned"], "The secret that was shown has not signed the request."
    assert report["states"]["disabled"] == [True, False]
    assert "by an administrator" in report["states"]["notice"]
    assert "Requests have failed since" in report["trouble"]["notice"]
    assert report["trouble"]["error"] == "Last error: HTTP 500 Out of order"
    assert len(report["again"]) == 2, "The message was not sent again."
    assert len(set(report["again"])) == 1, "The message was sent again with another webhook-id."
    assert report["edited"]["refused"] == "Not found. It may have been deleted."
    assert report["edited"]["limits"] == "only of: 1 community"
    assert SECRET.fullmatch(report["rotated"])
    assert report["rotated"] != report["secret"]
    assert report["left"] == 0
    assert (report["violations"], report["overflowingScreens"], report["pageErrors"]) == ([], [], [])
    assert foreign_requests(report["requests"], product.url) == []

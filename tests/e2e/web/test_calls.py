"""The calls screens in a real Chromium against the real product and its telephony simulator."""

from pathlib import Path

import pytest

from tests.e2e.browser_scripts import SCRIPT_TIMEOUT_S, foreign_requests, run_browser_script
from tests.e2e.conftest import DeployedProduct


@pytest.mark.browser
@pytest.mark.timeout(SCRIPT_TIMEOUT_S + 60)
def test_call_list_is_checked_launched_paused_and_completed(product: DeployedProduct, tmp_path: Path) -> None:
    roles = {"ada": ["ADMIN"], "olga": ["OPERATOR"], "max": ["MEMBER"]}
    tokens = {name: product.token(name, org="web-calls", roles=granted) for name, granted in roles.items()}

    report = run_browser_script("web/calls.mjs", product.url, tmp_path, tokens=tokens)

    assert not {"Calls", "Mail"} & set(report["memberLinks"]), "A member sees links to screens of operators."
    assert [row[:3] for row in report["listErrors"]["rows"]] == [
        ["3", "phone_number", "090-1234-5678"],
        ["4", "phone_number", "+8190123"],
    ]
    assert "beginning with +" in report["listErrors"]["rows"][0][3]
    assert not report["listErrors"]["canLaunch"], "A list with errors can be launched."
    assert report["doneBeforeLimitIsRaised"].startswith("0"), "A number was called although the limit is 0."
    assert report["concurrentCalls"] == "5"
    assert report["job"]["done"] == "10 / 10 numbers"
    assert report["job"]["outcomes"] >= 9, "Fewer than 9 calls have an outcome: 10 numbers, of which one is not called."
    assert "+819010000003" in report["job"]["skipped"], "The number on the do-not-call list was not skipped."
    assert "limit 5" in report["job"]["curve"]
    assert "2 rows have errors" in report["rejectedList"]
    assert (report["violations"], report["overflowingScreens"], report["pageErrors"]) == ([], [], [])
    assert foreign_requests(report["requests"], product.url) == []

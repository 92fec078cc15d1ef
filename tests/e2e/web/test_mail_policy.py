"""Reports of addresses and mail policies in a real Chromium against the real product."""

from pathlib import Path

import pytest

from tests.e2e.browser_scripts import SCRIPT_TIMEOUT_S, foreign_requests, run_browser_script
from tests.e2e.conftest import DeployedProduct


@pytest.mark.browser
@pytest.mark.timeout(SCRIPT_TIMEOUT_S + 60)
def test_policy_is_tried_and_set_after_conflict(product: DeployedProduct, tmp_path: Path) -> None:
    roles = {"olga": ["OPERATOR"], "oscar": ["OPERATOR"], "post": ["SERVICE"]}
    tokens = {name: product.token(name, org="web-mail-policy", roles=granted) for name, granted in roles.items()}

    report = run_browser_script("web/mail-policy.mjs", product.url, tmp_path, tokens=tokens)

    assert "550 5.1.1" in report["why"], "The report does not show the answer of the mail server."
    assert "Blocked since" in report["why"]
    assert "Address blocked" in report["byHand"]
    assert "olga" in report["byHand"]
    assert report["invalid"] == "1 address is not valid, so nothing was changed: nobody"
    assert "1 would be freed" in report["dryRun"]
    assert "good.example" in report["dryRun"]
    assert report["conflict"]["kept"] == "IGNORED", "The conflict has discarded what the operator chose."
    assert not report["conflict"]["canSet"], "The policy can be set without another dry run."
    assert "Addresses come back" in report["set"]
    assert "olga" in report["set"]
    assert (report["violations"], report["overflowingScreens"], report["pageErrors"]) == ([], [], [])
    assert foreign_requests(report["requests"], product.url) == []

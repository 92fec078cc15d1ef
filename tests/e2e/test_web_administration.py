"""The administration in a real Chromium against the real product: users, access, keys, invitations and the log."""

from pathlib import Path

import pytest

from tests.e2e.browser_scripts import SCRIPT_TIMEOUT_S, foreign_requests, run_browser_script
from tests.e2e.conftest import DeployedProduct


@pytest.mark.browser
@pytest.mark.timeout(SCRIPT_TIMEOUT_S + 60)
def test_administrator_manages_users_and_reads_the_log(product: DeployedProduct, tmp_path: Path) -> None:
    roles = {"ann": ["ADMIN"], "ben": ["MEMBER"], "dora": ["ADMIN"], "max": ["MEMBER"]}
    tokens = {
        name: product.token(name, "web-administration", granted, name.title(), name) for name, granted in roles.items()
    }

    report = run_browser_script("web-administration.mjs", product.url, tmp_path, tokens=tokens)

    assert report["roles"]["ownButtons"] == 0, "Administrators can't change their own access."
    assert "Operator" in report["roles"]["text"]
    assert report["access"] == {"states": [True, False], "canSubmitWithoutReason": False}
    sentences = " | ".join(report["history"])
    assert "Ann changed the roles of Ben" in sentences
    assert "Member → Member, Operator" in sentences
    assert "Ann deactivated Ben" in sentences
    assert "Reason: Left the company" in sentences
    assert report["live"].startswith("Dora changed the roles of Ben")
    assert report["filtered"] == {"byDora": 1, "deactivated": 1, "long_ago": 0}
    assert report["key"]["shown"] == [True, True]
    assert "mail:ingest" in report["key"]["text"]
    assert report["invitation"]["isLink"]
    assert "used 0 of 5 times" in report["invitation"]["text"]
    assert any("Ann さんが Ben さんの利用を停止しました" in each for each in report["japanese"])
    assert report["refused"] == 0
    assert (report["violations"], report["overflowingScreens"], report["pageErrors"]) == ([], [], [])
    assert foreign_requests(report["requests"], product.url) == []

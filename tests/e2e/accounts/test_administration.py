"""The administration in a real Chromium against the real product: users, keys, held posts, erasures and the log."""

from pathlib import Path

import pytest

from storage.identity.roles import Role
from tests.browser_sessions import begin_session
from tests.e2e.browser_scripts import SCRIPT_TIMEOUT_S, foreign_requests, run_browser_script
from tests.e2e.conftest import DeployedProduct

pytestmark = pytest.mark.anyio


ORGANIZATION = "web-administration"
FIREFOX = "Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:140.0) Gecko/20100101 Firefox/140.0"
SAFARI = "Mozilla/5.0 (iPhone; CPU iPhone OS 18_5 like Mac OS X) Version/18.5 Mobile/15E148 Safari/604.1"


@pytest.mark.browser
@pytest.mark.timeout(SCRIPT_TIMEOUT_S + 60)
async def test_administrator_manages_users_and_reads_the_log(product: DeployedProduct, tmp_path: Path) -> None:
    roles = {"ann": ["ADMIN"], "ben": ["MEMBER"], "dora": ["ADMIN"], "eve": [], "max": ["MEMBER"]}
    tokens = {name: product.token(name, ORGANIZATION, granted, name.title(), name) for name, granted in roles.items()}
    for agent in (FIREFOX, SAFARI):
        await begin_session(product.mongodb_uri, "noroshi", "dora", ORGANIZATION, (Role.ADMIN,), agent)

    report = run_browser_script("accounts/administration.mjs", product.url, tmp_path, tokens=tokens)

    assert report["roles"]["ownButtons"] == 0, "Administrators can't change their own access."
    assert "Operator" in report["roles"]["text"]
    assert report["access"] == {"states": [True, False], "canSubmitWithoutReason": False}
    sentences = " | ".join(report["history"])
    assert "Ann changed the roles of Ben" in sentences
    assert "Member → Member, Operator" in sentences
    assert "Ann deactivated Ben" in sentences
    assert "Reason: Left the company" in sentences
    assert report["live"].startswith("Dora changed the roles of Ben")
    assert report["filtered"] == {"byDora": 1, "deactivated": 1, "longAgo": 0}
    assert report["key"]["shown"] == [True, True]
    assert "mail:ingest" in report["key"]["text"]
    assert "by Ann" in report["key"]["text"]
    assert report["invitation"]["isLink"]
    assert "used 0 of 5 times" in report["invitation"]["text"]
    assert report["signedOut"] == {
        "browsers": ["All browsers", "Firefox · Windows", "Safari · iOS"],
        "left": [1, 0],
    }
    assert "First fire" in report["held"]["text"]
    assert report["held"]["newDueAt"].startswith("2040-01-02"), "The held post keeps its time."
    assert report["erased"]["enabled"] == [False, True], "A person can be erased without the handle."
    assert "Requested" in report["erased"]["text"]
    assert report["exported"] == "my-data.zip"
    assert {"USER_ERASED", "SCHEDULED_POST_RELEASED", "SERVICE_KEY_CREATED"} <= set(report["log"]["actions"])
    assert any("Ann さんが Ben さんの利用を停止しました" in each for each in report["log"]["sentences"])
    assert report["refused"] == 0
    assert (report["violations"], report["overflowingScreens"], report["pageErrors"]) == ([], [], [])
    assert foreign_requests(report["requests"], product.url) == []

"""Drafts and unsent messages survive reloads, an expired token and a disconnect, and are shown to nobody else."""

from pathlib import Path

import pytest

from tests.e2e.browser_scripts import SCRIPT_TIMEOUT_S, foreign_requests, run_browser_script
from tests.e2e.conftest import DeployedProduct

MAX_DISTANCE_TO_END_PX = 1
MESSAGE_MAX = 4_000
DRAFTS = ["half a message", "half a post", "half a plan"]


@pytest.mark.browser
@pytest.mark.timeout(SCRIPT_TIMEOUT_S + 60)
def test_typed_text_is_kept_sent_once_and_private(product: DeployedProduct, tmp_path: Path) -> None:
    org = "web-typed-text"
    tokens = {name: product.token(name, org=org, name=name.title(), handle=name) for name in ("ann", "ben")}
    tokens["admin"] = product.token("ada", org=org, roles=["ADMIN"], name="Ada", handle="ada")

    report = run_browser_script("web/typed-text.mjs", product.url, tmp_path, tokens=tokens)

    for cause, distance_px in report["distancesToEnd_px"].items():
        assert distance_px <= MAX_DISTANCE_TO_END_PX, f"A {cause} hides the newest messages."
    long_text = report["longText"]
    assert (long_text["length"], long_text["sent"]) == (MESSAGE_MAX + 100, [MESSAGE_MAX]), "A long text was cut."
    assert long_text["isDisabled"]
    assert long_text["isExplained"]
    assert report["waiting"]["stored"] == ["written in the dark", "and before dawn"]
    assert report["waiting"]["shown"] == [2, 2]
    assert report["kept"] == {"afterReload": DRAFTS, "afterSignIn": DRAFTS}
    assert report["scheduled"]["minutes"] == {
        "note": "This time has passed. The post is published immediately.",
        "canSchedule": True,
    }
    assert "more than 1 h ago" in report["scheduled"]["hours"]["note"]
    assert not report["scheduled"]["hours"]["canSchedule"]
    assert report["scheduled"]["afterDiscard"] == ""
    assert report["nextUser"] == {
        "draftsOfBen": ["", "", ""],
        "isStoredBeforeSignOut": True,
        "isStoredAfterSignOut": False,
    }
    assert report["seesConnectedAccounts"]
    assert report["violations"] == []
    assert report["pageErrors"] == []
    assert foreign_requests(report["requests"], product.url, report["proxyUrl"]) == []

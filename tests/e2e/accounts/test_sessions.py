"""Sign-in links and sign-outs in tabs of one real Chromium window."""

from pathlib import Path

import pytest

from tests.e2e.browser_scripts import SCRIPT_TIMEOUT_S, foreign_requests, run_browser_script
from tests.e2e.conftest import DeployedProduct


@pytest.mark.browser
@pytest.mark.timeout(SCRIPT_TIMEOUT_S + 60)
def test_links_ask_first_and_sign_out_ends_every_tab(product: DeployedProduct, tmp_path: Path) -> None:
    tokens = {name: product.token(name, org="web-sessions", name=name.title(), handle=name) for name in ("ann", "ben")}
    tokens["annRenewed"] = product.token("ann", org="web-sessions", name="Ann", handle="ann", ttl_s=7200)

    report = run_browser_script("accounts/sessions.mjs", product.url, tmp_path, tokens=tokens)

    assert report["invalidLink"] == "ann"
    rejected = report["rejectedLink"]
    assert "Ann (@ann, web-sessions)" in rejected["text"]
    assert "Ben (@ben, web-sessions)" in rejected["text"]
    assert "token" not in rejected["address"]
    assert rejected["user"] == "ann"
    assert report["renewedBy"] == "ann"
    assert "Ben · web-sessions" in report["graphiqlQuestion"]["text"]
    assert not report["graphiqlQuestion"]["isStored"], "GraphiQL took the link's token without consent."
    assert report["acceptedLink"] == {"own": "ann", "linked": "ben"}
    assert report["signOut"].pop("closedSockets") > 0
    assert report["signOut"] == {"isFirstSignedOut": True, "isAwaySignedOut": True, "ben": "ben"}
    assert (report["violations"], report["overflowingScreens"]) == ([], [])
    assert report["pageErrors"] == []
    assert foreign_requests(report["requests"], product.url) == []

"""Local accounts of a product that starts with empty data, in a real Chromium."""

import re
from pathlib import Path

import pytest

from tests.e2e.browser_scripts import SCRIPT_TIMEOUT_S, foreign_requests, run_browser_script
from tests.product import eventually, running_product


@pytest.mark.browser
@pytest.mark.timeout(SCRIPT_TIMEOUT_S + 120)
def test_people_get_accounts_and_keep_them(tmp_path: Path) -> None:
    data_dir = tmp_path / "data"
    with running_product(data_dir) as product:
        assert product.url
        found = eventually(lambda: re.search(r"http\S+#first-admin=[\w-]{43}", product.output))
        assert found, product.output
        report = run_browser_script(
            "web-accounts.mjs", product.url, tmp_path, firstAdmin=found[0], mails=str(data_dir / "mail")
        )
        address = product.url

    first = report["firstAdmin"]
    assert "easy to guess" in first.pop("refusal")
    assert first == {"name": "Ada", "roles": ["ADMIN"], "hasScriptableToken": False, "isLinkHidden": True}
    assert "not valid" in report["usedLink"]
    assert report["invited"] == {"name": "Bea", "roles": ["OPERATOR"], "hasScriptableToken": False}
    assert report["signedIn"]["refusal"].startswith("メールアドレスまたはパスワードが違います")
    assert (report["signedIn"]["name"], report["signedIn"]["afterReload"]) == ("Bea", "Bea")
    assert report["reset"]["name"] == "Bea"
    assert report["violations"] == []
    assert report["overflows"] == []
    assert report["pageErrors"] == []
    assert foreign_requests(report["requests"], address) == []

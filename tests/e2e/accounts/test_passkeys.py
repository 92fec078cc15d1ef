"""Passkeys of a product that starts with empty data, in a real Chromium with its virtual authenticator."""

from pathlib import Path

import pytest

from tests.e2e.browser_scripts import SCRIPT_TIMEOUT_S, foreign_requests, run_browser_script
from tests.oidc_provider import free_port
from tests.product import first_admin_link, running_product


@pytest.mark.browser
@pytest.mark.timeout(SCRIPT_TIMEOUT_S + 120)
def test_account_needs_no_password(tmp_path: Path) -> None:
    port = free_port()
    address = f"http://localhost:{port}"
    with running_product(tmp_path / "data", "--port", str(port), NOROSHI_PUBLIC_URL=address) as product:
        link = first_admin_link(product)
        report = run_browser_script("accounts/passkeys.mjs", address, tmp_path, firstAdmin=link)

    assert report["methods"] == ["PASSKEY", "PASSKEY"]
    assert report["refusal"].startswith("The passkey dialog did not finish")
    assert report["list"]["removalRefusal"].startswith("This is your only way to sign in.")
    assert report["list"]["additionRefusal"].startswith("This passkey can’t be added")
    assert len(report["list"]["remaining"]) == 1
    assert report["list"]["remaining"][0].startswith("Key ring")
    assert report["violations"] == []
    assert report["overflowingScreens"] == []
    assert report["pageErrors"] == []
    assert foreign_requests(report["requests"], address) == []

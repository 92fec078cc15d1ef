"""The first day of an organization in a real Chromium: everybody signs in by a different method and posts."""

from pathlib import Path

import pytest

from tests.e2e.browser_scripts import SCRIPT_TIMEOUT_S, run_browser_script
from tests.oidc_provider import CLIENT_ID, CLIENT_SECRET, free_port, issuer_at, oidc_provider
from tests.product import first_admin_link, running_product


@pytest.mark.browser
@pytest.mark.timeout(SCRIPT_TIMEOUT_S + 120)
def test_everybody_posts_on_the_first_day(tmp_path: Path) -> None:
    provider_port, port = free_port(), free_port()
    address = f"http://localhost:{port}"
    variables = {
        "NOROSHI_PUBLIC_URL": address,
        "NOROSHI_LOCAL_ACCOUNTS": "true",
        "NOROSHI_OIDC_ISSUER": issuer_at(provider_port),
        "NOROSHI_OIDC_CLIENT_ID": CLIENT_ID,
        "NOROSHI_OIDC_CLIENT_SECRET": CLIENT_SECRET,
    }
    with (
        running_product(tmp_path / "data", "--port", str(port), **variables) as product,
        oidc_provider(provider_port, address),
    ):
        link = first_admin_link(product)
        report = run_browser_script("accounts/first-day.mjs", address, tmp_path, firstAdmin=link)

    assert report["methods"] == ["OIDC", "PASSWORD", "PASSKEY"]
    posts = {"Ann Lee": "Hello from Ann Lee", "Bea": "Hello from Bea", "Cyd": "Hello from Cyd"}
    posts["Weather station"] = "Wind from the west"
    assert len(report["posts"]) == len(posts)
    for shown, (name, text) in zip(report["posts"], posts.items(), strict=True):
        assert name in shown
        assert text in shown
    assert (report["violations"], report["overflowingScreens"], report["pageErrors"]) == ([], [], [])

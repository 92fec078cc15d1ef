"""Presence in a real Chromium: dots, the line that says who is typing, and the switches."""

from pathlib import Path

import pytest

from tests.e2e.browser_scripts import SCRIPT_TIMEOUT_S, foreign_requests, run_browser_script
from tests.e2e.conftest import DeployedProduct


@pytest.mark.browser
@pytest.mark.timeout(SCRIPT_TIMEOUT_S + 60)
def test_people_see_who_is_online_and_typing(product: DeployedProduct, tmp_path: Path) -> None:
    tokens = {name: product.token(name, "web-presence", roles) for name, roles in {"ann": ["ADMIN"], "bob": []}.items()}
    report = run_browser_script("web/presence.mjs", product.url, tmp_path, tokens=tokens)

    assert report["typing"] == ["bob is typing …", "bob is typing …"]
    assert (report["online"], report["typingAfterSending"], report["hidden"]) == (1, "", True)
    assert (report["profile"], report["signals"]) == (1, 0)
    assert report["organization"] == {"shown": False, "enabled": False}
    assert (report["violations"], report["overflowingScreens"], report["pageErrors"]) == ([], [], [])
    assert foreign_requests(report["requests"], product.url) == []

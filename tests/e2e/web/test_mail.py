"""The mail screens in a real Chromium against the real product: lookups and changes of the address book."""

from pathlib import Path

import pytest

from tests.e2e.browser_scripts import SCRIPT_TIMEOUT_S, foreign_requests, run_browser_script
from tests.e2e.conftest import DeployedProduct


@pytest.mark.browser
@pytest.mark.timeout(SCRIPT_TIMEOUT_S + 60)
def test_addresses_are_looked_up_and_unblocked(product: DeployedProduct, tmp_path: Path) -> None:
    roles = {"olga": ["OPERATOR"], "max": ["MEMBER"], "post": ["SERVICE"]}
    tokens = {name: product.token(name, org="web-mail", roles=granted) for name, granted in roles.items()}

    report = run_browser_script("web/mail.mjs", product.url, tmp_path, tokens=tokens)

    texts = {address: text for address, _, text in report["verdicts"]}
    assert [(address, blocked) for address, blocked, _ in report["verdicts"]] == [
        ("ann@good.example", "false"),
        ("gone@good.example", "true"),
        ("new@good.example", "false"),
        ("new@dead.example", "true"),
        ("nobody", "true"),
    ]
    assert "550 5.1.1" in texts["gone@good.example"], "The reason is not shown."
    assert "Dead domain" in texts["new@dead.example"]
    assert report["blocked"] == ["gone@good.example", "new@dead.example", "nobody"]
    assert report["copied"] == "ann@good.example\nnew@good.example"
    assert not report["unblocked"]["canSubmitWithoutReason"], "An address can be unblocked without a reason."
    assert "Unblocked by olga" in report["unblocked"]["text"]
    assert "The mailbox is back" in report["unblocked"]["text"]
    assert "4" in report["sendable"]
    assert "Dead domain" in report["domain"]
    # 2 of 42: above the 2 % at which the chart warns.
    assert report["rate"]["all"] == "4.76%"
    assert "1 day at or above 2 %" in report["rate"]["chart"]
    assert (report["violations"], report["overflowingScreens"], report["pageErrors"]) == ([], [], [])
    assert foreign_requests(report["requests"], product.url) == []

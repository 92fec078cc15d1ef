"""The mail screens in a real Chromium against the real product: lookups and changes of the address book."""

from pathlib import Path

import pytest

from tests.e2e.browsing import VISIT_S, elsewhere, visit
from tests.e2e.conftest import Product


@pytest.mark.browser
@pytest.mark.timeout(VISIT_S + 60)
def test_addresses_are_looked_up_and_unblocked(product: Product, tmp_path: Path) -> None:
    roles = {"olga": ["OPERATOR"], "max": ["MEMBER"], "post": ["SERVICE"]}
    tokens = {name: product.token(name, org="web-mail", roles=granted) for name, granted in roles.items()}

    seen = visit("web-mail.mjs", product.url, tmp_path, tokens=tokens)

    texts = {address: text for address, _, text in seen["verdicts"]}
    assert [(address, blocked) for address, blocked, _ in seen["verdicts"]] == [
        ("ann@good.example", "false"),
        ("gone@good.example", "true"),
        ("new@good.example", "false"),
        ("new@dead.example", "true"),
        ("nobody", "true"),
    ]
    assert "550 5.1.1" in texts["gone@good.example"], "The reason is not shown."
    assert "Dead domain" in texts["new@dead.example"]
    assert seen["blocked"] == ["gone@good.example", "new@dead.example", "nobody"]
    assert seen["copied"] == "ann@good.example\nnew@good.example"
    assert not seen["unblocked"]["withoutReason"], "An address can be unblocked without a reason."
    assert "Unblocked by olga" in seen["unblocked"]["text"]
    assert "The mailbox is back" in seen["unblocked"]["text"]
    assert "4" in seen["allowed"]
    assert "Dead domain" in seen["domain"]
    # 2 of 42: above the 2 % at which the chart warns.
    assert seen["rate"]["all"] == "4.76%"
    assert "1 day at or above 2 %" in seen["rate"]["chart"]
    assert (seen["violations"], seen["tooWide"], seen["complaints"]) == ([], [], [])
    assert elsewhere(seen["requests"], product.url) == []

"""The calls screens in a real Chromium against the real product and its telephony simulator."""

from pathlib import Path

import pytest

from tests.e2e.browsing import VISIT_S, elsewhere, visit
from tests.e2e.conftest import Product


@pytest.mark.browser
@pytest.mark.timeout(VISIT_S + 60)
def test_call_list_is_fixed_launched_paused_and_watched(product: Product, tmp_path: Path) -> None:
    roles = {"ada": ["ADMIN"], "olga": ["OPERATOR"], "max": ["MEMBER"]}
    tokens = {name: product.token(name, org="web-calls", roles=granted) for name, granted in roles.items()}

    seen = visit("web-calls.mjs", product.url, tmp_path, tokens=tokens)

    assert not {"Calls", "Mail"} & set(seen["member"]), "A member sees links to screens without permission."
    assert [row[:3] for row in seen["errors"]["rows"]] == [
        ["3", "phone_number", "090-1234-5678"],
        ["4", "phone_number", "+8190123"],
    ]
    assert "beginning with +" in seen["errors"]["rows"][0][3]
    assert not seen["errors"]["launchable"], "A list with errors can be launched."
    assert seen["paused"].startswith("0"), "A number was called although the limit is 0."
    assert seen["rules"] == "5"
    assert seen["job"]["done"] == "10 / 10 numbers"
    assert seen["job"]["outcomes"] >= 9, "Calls are missing among the outcomes."
    assert "+819010000003" in seen["job"]["skipped"], "The number on the do-not-call list was not skipped."
    assert "limit 5" in seen["job"]["curve"]
    assert "2 rows have errors" in seen["rejected"]
    assert (seen["violations"], seen["tooWide"], seen["complaints"]) == ([], [], [])
    assert elsewhere(seen["requests"], product.url) == []

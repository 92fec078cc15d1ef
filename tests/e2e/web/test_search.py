"""Search in a real Chromium, by keyboard alone: the palette, filters, highlighted results and refused queries."""

from pathlib import Path

import pytest

from tests.e2e.browser_scripts import SCRIPT_TIMEOUT_S, foreign_requests, run_browser_script
from tests.e2e.conftest import DeployedProduct


@pytest.mark.browser
@pytest.mark.timeout(SCRIPT_TIMEOUT_S + 60)
def test_search_finds_messages_and_people_by_keyboard(product: DeployedProduct, tmp_path: Path) -> None:
    tokens = {name: product.token(name, org="web-search") for name in ("ann", "ben")}
    tokens["hana"] = product.token("hana", org="web-search", name="佐藤花子")

    report = run_browser_script("web/search.mjs", product.url, tmp_path, tokens=tokens)

    assert report["found"] == ["fireworks", "firework"]
    assert report["texts"] == {
        "from": ["fireworks"],
        "japanese": ["花火大会"],
        "phrase": ["the river"],
        "topic": ["Festival"],
        "people": ["ann", "ann"],
        "japanesePeople": ["花子"],
    }
    assert "from:nobody" in report["refusal"]
    assert report["violations"] == []
    assert report["overflowingScreens"] == []
    assert report["pageErrors"] == []
    assert foreign_requests(report["requests"], product.url) == []

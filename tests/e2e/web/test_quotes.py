"""Quotes in a real Chromium, by keyboard alone: of a message in the same topic, of a hidden one, of a deleted one."""

from pathlib import Path

import pytest

from tests.e2e.browser_scripts import SCRIPT_TIMEOUT_S, foreign_requests, run_browser_script
from tests.e2e.conftest import DeployedProduct

HIDDEN = "The quoted message is not available to you"


@pytest.mark.browser
@pytest.mark.timeout(SCRIPT_TIMEOUT_S + 60)
def test_people_quote_messages_by_keyboard(product: DeployedProduct, tmp_path: Path) -> None:
    tokens = {name: product.token(name, org="web-quotes", name=name.title()) for name in ("ann", "ben")}

    report = run_browser_script("web/quotes.mjs", product.url, tmp_path, tokens=tokens)

    assert report["composed"].splitlines()[-2:] == ["Ann", "Who rows on Sunday?"]
    assert report["seen"][0] == HIDDEN
    assert report["seen"][1].splitlines()[-2:] == ["Ann", "Who rows on Sunday?"]
    assert report["opened"] == "Who rows on Sunday?"
    pasted = report["pasted"]
    assert (pasted["texts"], pasted["text"]) == ([True, True], "Read this")
    assert [quote.splitlines()[-2:] for quote in pasted["quotes"]] == [["Ann", "Meet here"]] * 2
    assert "This message was deleted." in report["afterDeletion"][1]
    assert (report["violations"], report["overflowingScreens"], report["pageErrors"]) == ([], [], [])
    assert foreign_requests(report["requests"], product.url) == []

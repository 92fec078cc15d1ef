"""Formatting in a real Chromium, by keyboard alone: keys that format, code blocks, the help, and hostile texts."""

from pathlib import Path

import pytest

from tests.e2e.browser_scripts import SCRIPT_TIMEOUT_S, foreign_requests, run_browser_script
from tests.e2e.conftest import DeployedProduct

REL = "noreferrer noopener"


@pytest.mark.browser
@pytest.mark.timeout(SCRIPT_TIMEOUT_S + 60)
def test_people_format_messages_by_keyboard(product: DeployedProduct, tmp_path: Path) -> None:
    tokens = {"ann": product.token("ann", org="web-formatting", name="Ann", handle="ann")}

    report = run_browser_script("web/formatting.mjs", product.url, tmp_path, tokens=tokens)

    bold = "**heavy *type***"
    assert report["typed"] == ["heavy *type*", bold, "heavy *type*", bold]
    assert report["codeBlock"] == "let a = *b*;\n\n  c();"
    assert report["shown"] == [
        ["STRONG", "重要", None, ""],
        ["S", "中止", None, ""],
        ["A", "地図", "https://example.org/map", REL],
        ["CODE", "@ann", None, ""],
        ["LI", "項目", None, ""],
        ["LI", "一つ", None, ""],
    ]
    assert report["hostile"] == [], "HTML or an unsafe link became an element."
    assert report["help"] == 10
    assert report["post"] == ["new"]
    assert (report["violations"], report["overflowingScreens"], report["pageErrors"]) == ([], [], [])
    assert foreign_requests(report["requests"], product.url) == []

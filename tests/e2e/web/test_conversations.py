"""Direct messages in a real Chromium against the real product."""

from pathlib import Path

import pytest

from tests.e2e.browser_scripts import SCRIPT_TIMEOUT_S, foreign_requests, run_browser_script
from tests.e2e.conftest import DeployedProduct


@pytest.mark.browser
@pytest.mark.timeout(SCRIPT_TIMEOUT_S + 60)
def test_people_write_to_each_other(product: DeployedProduct, tmp_path: Path) -> None:
    roles = {"ann": ["ADMIN"], "ben": [], "cat": []}
    tokens = {
        name: product.token(name, "web-conversations", granted, name.title(), name) for name, granted in roles.items()
    }

    report = run_browser_script("web/conversations.mjs", product.url, tmp_path, tokens=tokens)

    assert report["asked"] == "Ben has not accepted yet. Until then you can send one message."
    assert report["requested"].startswith("Ann wants to write to you")
    assert [text.split("\n")[0] for text in report["answered"]] == ["Ben"]
    hint = (
        "The administrators of your organization decide. They see the message and up to five messages before it. "
        "The person does not learn who reported."
    )
    assert report["reports"] == [{"hint": hint, "deletions": 0}] * 2
    assert [text.split("\n")[1] for text in report["group"]] == ["Ann", "Ben", "Cat"]
    assert "not joined" in report["group"][2]
    assert report["declined"] == 0
    assert report["left"] == 1
    assert report["profile"] == "Ben"
    assert {"Ben wrote to you", "Back at six"} <= set(report["notification"]["text"].splitlines())
    assert report["notification"]["isInConversation"]
    assert (report["violations"], report["overflowingScreens"], report["pageErrors"]) == ([], [], [])
    assert foreign_requests(report["requests"], product.url) == []

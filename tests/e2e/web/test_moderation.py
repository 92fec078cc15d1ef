"""Moderation of a community in a real Chromium against the real product."""

from pathlib import Path

import pytest

from tests.e2e.browser_scripts import SCRIPT_TIMEOUT_S, foreign_requests, run_browser_script
from tests.e2e.conftest import DeployedProduct


@pytest.mark.browser
@pytest.mark.timeout(SCRIPT_TIMEOUT_S + 60)
def test_moderators_act_and_people_see_the_effect(product: DeployedProduct, tmp_path: Path) -> None:
    tokens = {
        name: product.token(name, org="web-moderation", name=name.title(), handle=name)
        for name in ("olga", "mia", "ben")
    }

    report = run_browser_script("web/moderation.mjs", product.url, tmp_path, tokens=tokens)

    assert "Moderator" in report["appointed"]
    assert "You are muted until" in report["muted"]
    assert report["deleted"] == {"isRecorded": True}
    assert not report["banned"]["canSubmitWithoutReason"], "A person can be banned without a reason."
    assert "You are banned from Hilltops" in report["banned"]["text"]
    assert "Sells shoes in every topic" in report["bans"]["text"]
    assert "Banned by Mia" in report["bans"]["text"]
    assert report["bans"]["count"] == 0
    assert "No more shoes, promised" in report["joined"]
    assert report["returned"], "A person whose request to join is approved can't write in the topic."
    assert report["memberActions"] == {"actions": 0, "sections": ["Members", "Settings"]}
    assert "The north fire is lit" in report["pinned"]["text"]
    assert report["pinned"]["ownButtons"] == 0, "A member can remove a pin."
    assert report["acts"] == {"ben": ["Delete message", "Moderate Ben", "Pin message"], "olga": ["Pin message"]}
    assert report["topic"] == {"text": "This topic is archived. You can read, but not write.", "isStillOnPage": True}
    assert report["slowed"]["text"].startswith("Slow mode: you can send the next message in")
    assert not report["slowed"]["canSend"]
    assert report["archived"] == "This community is archived. You can read, but not write."
    assert report["handedOver"] == {"roles": [None, "MEMBER"], "visibility": "PRIVATE"}
    assert (report["violations"], report["overflowingScreens"], report["pageErrors"]) == ([], [], [])
    assert foreign_requests(report["requests"], product.url) == []

"""Offline notifications in a real Chromium: the settings, the devices, the service worker, and the end of digests."""

from pathlib import Path
from typing import Any

import pymongo
import pytest

from server.auth.tokens import mint
from storage.ids import UserKey
from storage.secrets.unsubscribe_links import UnsubscribeLinks, UnsubscribeTarget
from storage.secrets.vapid_keys import new_vapid_key
from tests.e2e.browser_scripts import SCRIPT_TIMEOUT_S, foreign_requests, run_browser_script
from tests.serving import WebProcess, web_process
from tests.twins.push_service import SubscribedBrowser


def unsubscribe_link(mongodb_uri: str, web: WebProcess) -> str:
    """Returns the link of a digest for Ann."""
    with pymongo.MongoClient[dict[str, Any]](mongodb_uri) as mongo:
        secret = mongo[web.database]["secrets"].find_one({"_id": "unsubscribe_links"})
    assert secret is not None
    target = UnsubscribeTarget(UserKey("acme", "ann"), "ann@example.org", "en")
    return UnsubscribeLinks(web.url, secret["value"]).link(target)


@pytest.mark.browser
@pytest.mark.timeout(SCRIPT_TIMEOUT_S + 60)
def test_service_worker_shows_pushes_and_opens_them(mongodb_uri: str, redis_url: str, tmp_path: Path) -> None:
    browser = SubscribedBrowser("https://push.example.org/ann")
    keys = {"p256dh": browser.input["publicKey"], "auth": browser.input["authSecret"]}
    subscription = {"endpoint": browser.url, "keys": keys}
    key = new_vapid_key().private_text
    with web_process(tmp_path, mongodb_uri, redis_url, NOROSHI_VAPID_KEY=key) as web:
        with_address = mint(web.secret, user_id="ann", organization_id="acme", email="ann@example.org")
        tokens = {"ann": web.token(), "annWithAddress": with_address}
        inputs = {"subscription": subscription, "unsubscribe": unsubscribe_link(mongodb_uri, web)}
        report = run_browser_script("web/push.mjs", web.url, tmp_path, tokens=tokens, **inputs)

    stored = report["stored"]
    settings = stored["notificationSettings"]
    assert report["permissionBefore"] is False
    assert len(stored["pushDevices"]) == 1
    assert {"category": "REACTION", "push": True} in settings["ways"]
    assert settings["quietHours"] == {"start": "22:00", "end": "07:00"}
    levels = {each["placeId"]: each["level"] for each in settings["levels"]}
    assert levels == {report["community"]: "MENTIONS", report["topic"]: "ALL"}
    assert report["shown"] == [["bob mentioned you", tag, "Look @ann"] for tag in ("a", "b")]
    assert (report["opened"], report["left"]) == ("#/notifications", 0)
    digest = report["digest"]
    assert (digest["digest"], digest["digestAddress"], digest["digestObstacle"]) == ("WEEKLY", "ann@example.org", None)
    assert {"category": "FOLLOW", "mail": True} in digest["ways"]
    assert (report["violations"], report["overflowingScreens"], report["pageErrors"]) == ([], [], [])
    assert foreign_requests(report["requests"], web.url) == []

"""Offline notifications in a real Chromium: the settings, the devices, the service worker, and the end of digests."""

from pathlib import Path
from typing import Any

import pymongo
import pytest

from storage.ids import UserKey
from storage.secrets.unsubscribe_links import UnsubscribeLinks, UnsubscribeTarget
from tests.e2e.browser_scripts import SCRIPT_TIMEOUT_S, foreign_requests, run_browser_script
from tests.e2e.conftest import DeployedProduct
from tests.twins.push_service import SubscribedBrowser

ORGANIZATION = "web-push"


def unsubscribe_link(product: DeployedProduct) -> str:
    """Returns the link of a digest for Ann."""
    with pymongo.MongoClient[dict[str, Any]](product.mongodb_uri) as mongo:
        secret = mongo["noroshi"]["secrets"].find_one({"_id": "unsubscribe_links"})
    assert secret is not None
    target = UnsubscribeTarget(UserKey(ORGANIZATION, "ann"), "ann@example.org", "en")
    return UnsubscribeLinks(product.url, secret["value"]).link(target)


@pytest.mark.browser
@pytest.mark.timeout(SCRIPT_TIMEOUT_S + 60)
def test_service_worker_shows_pushes_and_opens_them(product: DeployedProduct, tmp_path: Path) -> None:
    browser = SubscribedBrowser("https://push.example.org/ann")
    keys = {"p256dh": browser.input["publicKey"], "auth": browser.input["authSecret"]}
    subscription = {"endpoint": browser.url, "keys": keys}
    with_address = product.token("ann", ORGANIZATION, email="ann@example.org")
    tokens = {"ann": product.token("ann", ORGANIZATION), "annWithAddress": with_address}
    inputs = {"subscription": subscription, "unsubscribe": unsubscribe_link(product)}
    report = run_browser_script(
        "web/push.mjs", product.url, tmp_path, shows_notifications=True, tokens=tokens, **inputs
    )

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
    assert foreign_requests(report["requests"], product.url) == []

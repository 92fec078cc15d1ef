"""Two people in the web client, in a real Chromium against the real product: chat, a cut, a jump, a follow, a post."""

import json
import subprocess
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.e2e.conftest import Product
from tests.e2e.test_graphiql import BROWSERS, WEB_CLIENT, found

VISIT_S = 150


@pytest.mark.browser
@pytest.mark.timeout(VISIT_S + 60)
def test_two_people_chat_through_a_cut_jump_to_a_message_and_follow_each_other(
    product: Product, tmp_path: Path
) -> None:
    seen = visit(product, found("node"), found(*BROWSERS), tmp_path)

    assert seen["heard"] == 1, "The mention is no link."
    assert seen["missed"]["ann"] == seen["missed"]["ben"], "After the cut they do not see the same."
    assert len(set(seen["missed"]["ben"])) == 4
    assert seen["jump"]["inSight"], "The permalink's message is out of sight."
    for step in seen["jump"]["moved_px"]:
        assert step["added"], "No older page came."
        assert step["by"] <= 2, "What was being read moved."
    assert seen["jump"]["rows"] < 100, "Rows out of sight are in the DOM."
    assert seen["fromReactions"], "The message that was reacted to is not shown as found."
    assert seen["post"] == "Feeds reached: 1"
    assert seen["violations"] == []
    assert seen["narrow"] == [0, 0, 0, 0], "Something is wider than 360 pixels."
    assert seen["complaints"] == []
    assert elsewhere(seen["requests"], product.url, seen["wire"]) == []


def visit(product: Product, node: str, chromium: str, folder: Path) -> dict[str, Any]:
    """What web-client/e2e/web-client.mjs saw."""
    order = {
        "url": product.url,
        "chromium": chromium,
        "tokens": {name: product.token(name, org="web", name=name.title(), handle=name) for name in ("ann", "ben")},
        "screenshots": str(folder),
    }
    ended = subprocess.run(
        [node, "e2e/web-client.mjs"],
        cwd=WEB_CLIENT,
        input=json.dumps(order),
        capture_output=True,
        text=True,
        timeout=VISIT_S,
    )
    assert ended.returncode == 0, ended.stderr
    answer: dict[str, Any] = json.loads(ended.stdout)
    return answer


def elsewhere(requests: list[str], *urls: str) -> list[str]:
    """The requests to any other host and port."""
    own = {urlsplit(url).netloc for url in urls}
    assert requests, "No request was seen at all."
    return [address for address in requests if urlsplit(address).netloc not in own | {""}]

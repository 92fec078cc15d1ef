"""Two people in the web client, in a real Chromium against the real product: chat, disconnect, jump, follow, post."""

from pathlib import Path

import pytest

from tests.e2e.browsing import VISIT_S, elsewhere, visit
from tests.e2e.conftest import Product

FIRST_LOAD_MAX_BYTES = 200_000
LINE_MAX_PX = 800


@pytest.mark.browser
@pytest.mark.timeout(VISIT_S + 60)
def test_two_users_chat_through_disconnect(product: Product, tmp_path: Path) -> None:
    tokens = {name: product.token(name, org="web", name=name.title(), handle=name) for name in ("ann", "ben")}

    seen = visit("web-client.mjs", product.url, tmp_path, tokens=tokens)

    assert 0 < seen["scripts_bytes"] < FIRST_LOAD_MAX_BYTES, "The first load of a conversation is too large."
    assert seen["mentionLinks"] == 1, "The mention is not a link."
    assert seen["missed"]["ann"] == seen["missed"]["ben"], "The timelines differ after the disconnect."
    assert len(set(seen["missed"]["ben"])) == 4
    assert seen["jump"]["inSight"], "The permalink's message is not visible."
    for step in seen["jump"]["moved_px"]:
        assert step["added"], "No older page was loaded."
        assert step["by"] <= 2, "The visible rows moved."
    assert seen["jump"]["rows"] < 100, "Invisible rows are in the DOM."
    assert seen["fromReactions"], "The message with the reaction is not highlighted."
    assert seen["post"] == "Feeds reached: 1"
    for looked in (seen["screens"], seen["signIn"]):
        assert looked["violations"] == []
        assert looked["tooWide"] == []
        assert 300 < looked["line_px"] <= LINE_MAX_PX, "Lines are too long on a wide screen."
    assert seen["complaints"] == []
    assert elsewhere(seen["requests"], product.url, seen["wire"]) == []

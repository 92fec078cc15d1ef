"""Chat beyond plain messages in a real Chromium: stamps, edits, deletions, previews, tabs, hashtags, blocks."""

from pathlib import Path

import pytest

from tests.e2e.browsing import VISIT_S, elsewhere, visit
from tests.e2e.conftest import Product


@pytest.mark.browser
@pytest.mark.timeout(VISIT_S + 60)
def test_chat_actions_show_in_every_tab(product: Product, tmp_path: Path) -> None:
    tokens = {name: product.token(name, org="web-chat", name=name.title(), handle=name) for name in ("ann", "ben")}

    seen = visit("web-chat.mjs", product.url, tmp_path, tokens=tokens)

    assert seen["stamp"]["width"] > 0, f"The stamp {seen['stamp']['name']} is a broken picture."
    assert seen["edited"] == 1
    assert seen["preview"]["href"] == seen["preview"]["own"]
    assert seen["preview"]["loaded"] == 1, "The preview's picture did not load."
    assert seen["tabs"]["first"] == seen["tabs"]["second"] == seen["tabs"]["ben"]
    assert len(set(seen["tabs"]["ben"])) == 2
    assert seen["trending"]
    assert seen["blocked"] == 0, "Messages of a blocked user are shown."
    assert seen["complaints"] == []
    assert elsewhere(seen["requests"], product.url) == []

"""Edited and deleted messages disappear at once from every open screen; Enter of an input method sends nothing."""

from pathlib import Path

import pytest

from tests.e2e.browser_scripts import SCRIPT_TIMEOUT_S, foreign_requests, run_browser_script
from tests.e2e.conftest import DeployedProduct

PLACES = {"sidebar", "sidebarOfAuthor", "quote", "notification", "match"}


@pytest.mark.browser
@pytest.mark.timeout(SCRIPT_TIMEOUT_S + 60)
def test_changed_texts_disappear_from_all_screens(product: DeployedProduct, tmp_path: Path) -> None:
    tokens = {
        name: product.token(name, org="web-changed-texts", name=name.title(), handle=name) for name in ("ann", "ben")
    }

    report = run_browser_script("web/changed-texts.mjs", product.url, tmp_path, tokens=tokens)

    for state, old_words in {"before": ["public"], "edited": ["secret"], "deleted": ["secret", "public"]}.items():
        assert report[state].keys() == PLACES
        for place, text in report[state].items():
            assert not any(word in text for word in old_words), f"{place} shows an old text: {text}"
    assert report["typed"] == {"accepted": "花火", "sent": ""}
    assert report["pageErrors"] == []
    assert foreign_requests(report["requests"], product.url) == []

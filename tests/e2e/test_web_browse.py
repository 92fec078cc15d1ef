"""Finding a community in a real Chromium, where there are more than one page of them."""

from pathlib import Path

import pytest

from tests.e2e.browsing import VISIT_S, elsewhere, visit
from tests.e2e.conftest import Product


@pytest.mark.browser
@pytest.mark.timeout(VISIT_S + 60)
def test_every_community_is_found_a_page_at_a_time_and_joined(product: Product, tmp_path: Path) -> None:
    tokens = {name: product.token(name, org="web-browse") for name in ("ann", "ben")}

    seen = visit("web-browse.mjs", product.url, tmp_path, tokens=tokens)

    assert seen["first"] == 50
    assert seen["names"] == [f"Hill {n:02}" for n in range(60)], "One is missing, or there twice."
    assert seen["complaints"] == []
    assert elsewhere(seen["requests"], product.url) == []

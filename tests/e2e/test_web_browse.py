"""Many communities and topics in a real Chromium: paging reaches each, and visible ones update live."""

from pathlib import Path

import pytest

from tests.e2e.browsing import VISIT_S, elsewhere, visit
from tests.e2e.conftest import Product


@pytest.mark.browser
@pytest.mark.timeout(VISIT_S + 60)
def test_browse_reaches_every_community_and_topic(product: Product, tmp_path: Path) -> None:
    tokens = {name: product.token(name, org="web-browse") for name in ("ann", "ben")}

    seen = visit("web-browse.mjs", product.url, tmp_path, tokens=tokens)

    assert seen["first"] == 50
    assert seen["names"] == [f"Hill {n:02}" for n in range(60)], "A community is missing or duplicated."
    assert seen["joined"] == seen["names"], "A joined community is not in the list."
    assert seen["topics"]["counts"] == [30, 60], "Each page adds thirty topics to those shown."
    quiet = [f"Fire {n:02}" for n in reversed(range(75)) if n != 3]
    assert seen["topics"]["titles"] == ["Fire 03", *quiet], "A topic is missing or duplicated."
    risen = [{"first": True, "count": count} for count in (30, 75)]
    assert seen["risen"] == risen, "A topic that became active did not move to the top."
    assert seen["complaints"] == []
    assert elsewhere(seen["requests"], product.url) == []

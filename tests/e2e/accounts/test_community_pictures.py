"""The picture and the banner of a community in a real Chromium: choosing, what members see at once, and the removal."""

from pathlib import Path

import pytest

from tests.e2e.browser_scripts import SCRIPT_TIMEOUT_S, foreign_requests, run_browser_script
from tests.e2e.conftest import DeployedProduct
from tests.jobs.pictures.hostile_files import encoded, gradient


@pytest.mark.browser
@pytest.mark.timeout(SCRIPT_TIMEOUT_S + 60)
def test_owner_chooses_and_removes_pictures(product: DeployedProduct, tmp_path: Path) -> None:
    picture = tmp_path / "beacon.png"
    picture.write_bytes(encoded(gradient(1800, 900), "PNG"))
    tokens = {name: product.token(name, "web-pictures") for name in ("ann", "bob")}
    report = run_browser_script(
        "accounts/community-pictures.mjs", product.url, tmp_path, tokens=tokens, picture=str(picture)
    )

    assert (report["letters"], report["buttons"]) == (0, 0)
    assert report["refusal"] == "This file is not a picture, or it is damaged."
    assert report["size"] == [1500, 500]
    assert report["community"] == {"pictureUrl": None, "bannerUrl": None}
    assert (report["violations"], report["overflowingScreens"], report["pageErrors"]) == ([], [], [])
    assert foreign_requests(report["requests"], product.url) == []

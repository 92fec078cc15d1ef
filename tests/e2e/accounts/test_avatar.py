"""The viewer's pictures, name, handle and bio in a real Chromium: what is refused, what others see, and the removal."""

from pathlib import Path

import pytest

from tests.e2e.browser_scripts import SCRIPT_TIMEOUT_S, foreign_requests, run_browser_script
from tests.e2e.conftest import DeployedProduct
from tests.jobs.pictures.hostile_files import encoded, gradient


@pytest.mark.browser
@pytest.mark.timeout(SCRIPT_TIMEOUT_S + 60)
def test_viewer_chooses_and_removes_avatar_and_bio(product: DeployedProduct, tmp_path: Path) -> None:
    picture = tmp_path / "me.png"
    picture.write_bytes(encoded(gradient(900, 600), "PNG"))
    tokens = {name: product.token(name, "web-avatar") for name in ("ann", "bob")}
    report = run_browser_script("accounts/avatar.mjs", product.url, tmp_path, tokens=tokens, picture=str(picture))

    assert report["refusal"] == "This file is not a picture, or it is damaged."
    assert report["side"] == [192, 192]
    assert (report["buttons"], report["avatarUrl"]) == (0, None)
    assert report["banner"] == {"size": [900, 300], "left": None}
    assert report["bio"] == {
        "tooLong": "1 character too long. At most 300 can be sent.",
        "canSave": False,
        "shown": "Sets up beacons on the northern hills",
        "bold": "beacons",
        "edits": 0,
        "left": None,
    }
    names = report["names"]
    assert (names["name"], names["handle"]) == ("Hana", "hana_2")
    assert names["bad"].startswith("A handle has 1 to 30 of the characters")
    assert names["taken"] == "This handle is taken, or was until recently. Choose another one."
    assert names["later"].startswith("You can change your handle again from ")
    assert (report["violations"], report["overflowingScreens"], report["pageErrors"]) == ([], [], [])
    assert foreign_requests(report["requests"], product.url) == []

"""Stamps of an organization in a real Chromium: a pack that is used, earned, given and removed, by keyboard alone."""

from pathlib import Path

import pytest

from tests.e2e.browser_scripts import SCRIPT_TIMEOUT_S, foreign_requests, run_browser_script
from tests.e2e.conftest import DeployedProduct
from tests.jobs.pictures.hostile_files import encoded, gradient


@pytest.mark.browser
@pytest.mark.timeout(SCRIPT_TIMEOUT_S + 60)
def test_organization_uploads_and_uses_a_stamp(product: DeployedProduct, tmp_path: Path) -> None:
    picture = tmp_path / "lit.png"
    picture.write_bytes(encoded(gradient(400, 300), "PNG"))
    roles = {"ann": ["MEMBER", "ADMIN"], "bob": []}
    tokens = {name: product.token(name, "web-stamps", granted) for name, granted in roles.items()}
    report = run_browser_script("web/stamps.mjs", product.url, tmp_path, tokens=tokens, picture=str(picture))

    assert report["refusal"] == "This file is not a picture, or it is damaged."
    newest, first = report["items"]
    assert (newest["text"], newest["stamp"]) == ("", {"name": "lit"})
    assert first["reactions"] == [{"emoji": ":lit:"}]
    assert report["packs"] == [
        {"name": "Harbour", "availability": "EARNED", "owned": True, "progress": 2},
        {"name": "Feast", "availability": "GIVEN", "owned": False, "progress": None},
    ]
    assert (report["violations"], report["overflowingScreens"], report["pageErrors"]) == ([], [], [])
    assert foreign_requests(report["requests"], product.url) == []

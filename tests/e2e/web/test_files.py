"""Files of messages in a real Chromium: chosen, dropped, sent over a broken connection or later, described and seen."""

from pathlib import Path

import pytest

from tests.e2e.browser_scripts import SCRIPT_TIMEOUT_S, foreign_requests, run_browser_script
from tests.e2e.conftest import DeployedProduct
from tests.jobs.pictures.hostile_files import encoded, gradient

PICTURES = ["A tent", "A boat", "A fire"]
# The second picture is opened. Then keys and buttons go to others, and stop at the first and the last one.
LOOKED_AT = [2, 3, 3, 2, 1, 1, 3, 2, 3]


@pytest.mark.browser
@pytest.mark.timeout(SCRIPT_TIMEOUT_S + 60)
def test_files_are_sent_described_and_seen(product: DeployedProduct, tmp_path: Path) -> None:
    files = [tmp_path / "beacon.png", tmp_path / "notes.txt", tmp_path / "map.txt"]
    files[0].write_bytes(encoded(gradient(900, 600), "PNG"))
    files[1].write_text("Bring a torch")
    files[2].write_text("North of the pier")
    tokens = {name: product.token(name, org="web-files", name=name.title(), handle=name) for name in ("ann", "bob")}
    paths = [str(each) for each in files]
    report = run_browser_script("web/files.mjs", product.url, tmp_path, tokens=tokens, files=paths)

    assert report["isBlocked"], "A picture without a description can be sent."
    assert (report["hasCamera"], report["camera"]) == (False, ["image/*", "environment"])
    assert report["cuts"] == 2, "The broken upload was not continued."
    assert report["drops"] == {"onMessages": True, "onNavigation": True, "files": 3}
    assert report["reloaded"] == ["0", "6", "6"], "The upload did not continue after the reload."
    again = report["again"]
    assert again["notice"].startswith("46% sent before the page was closed.")
    assert (again["isBlocked"], again["alt"]) == (True, "A beacon on a hill")
    assert again["offsets"] == ["0", "6", "6"], "The upload was not continued where it was interrupted."
    assert report["keptFiles"] == 0, "The browser keeps files that the server has."
    assert report["looked"] == [f"Picture {number} of 3\n{PICTURES[number - 1]}" for number in LOOKED_AT]
    assert report["quoted"] == {"width_px": 96, "names": ["notes.txt"]}
    assert report["kept"] == {"others": ["/kept-files/recent"], "afterReload": ["waiting", "interrupted"]}
    assert (report["alt"], report["saved"]) == ("A beacon on a hill", "Bring a torch")
    assert (report["violations"], report["overflowingScreens"], report["pageErrors"]) == ([], [], [])
    assert foreign_requests(report["requests"], product.url) == []

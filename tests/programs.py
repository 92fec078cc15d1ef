"""Programs that some tests need. A test without its program is skipped with the command that installs it."""

import os
import shutil
from pathlib import Path

import pytest

WEB_CLIENT = Path(__file__).resolve().parents[1] / "web-client"
POSTFIX_DAEMONS = "/usr/lib/postfix/sbin"
CHROMIUM = ("chromium", "chromium-browser", "google-chrome")


def chromium() -> str:
    """Returns the path of Chromium; skips the test when it is not installed."""
    return _require(CHROMIUM, "Chromium is not installed: `apt-get install chromium`.")


def node() -> str:
    """Returns the path of Node.js; skips the test without it or without a built web client."""
    path = _require(("node",), "Node.js 20 or later is not installed: `apt-get install nodejs npm`.")
    if not (WEB_CLIENT / "node_modules").exists():
        pytest.skip("The packages of the web client are not installed: `make web`.")
    require_web_client()
    return path


def require_web_client() -> None:
    """Skips the test when the web client is not built."""
    if not (WEB_CLIENT / "dist" / "index.html").exists():
        pytest.skip("The web client is not built: `make web`.")


def require_postfix() -> None:
    """Skips the test when Postfix can't run."""
    if not Path(POSTFIX_DAEMONS).is_dir():
        pytest.skip("Postfix is not installed: `apt-get install postfix`.")
    if os.geteuid() != 0:
        pytest.skip("Postfix starts only as root: `sudo make test ARGS=tests/e2e/test_postfix.py`.")


def _require(names: tuple[str, ...], missing: str) -> str:
    for name in names:
        if path := shutil.which(name):
            return path
    pytest.skip(missing)

"""Programs that some tests need. When one is missing, its tests are skipped; the reason names the install command."""

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

WEB_CLIENT = Path(__file__).resolve().parents[1] / "web-client"
POSTFIX_DAEMONS = "/usr/lib/postfix/sbin"
CHROMIUM_NAMES = ("chromium", "chromium-browser", "google-chrome")
# Chromium without windows and notifications. It takes a quarter less processor time.
HEADLESS_SHELL = "chromium-headless-shell"
CLIENT_SCRIPT_TIMEOUT_S = 60


def require_chromium(*, shows_notifications: bool = False) -> str:
    """Returns the path of Chromium, or of its headless shell. Skips the test when Chromium is not installed."""
    names = CHROMIUM_NAMES if shows_notifications else (HEADLESS_SHELL, *CHROMIUM_NAMES)
    return _find_or_skip(names, "Chromium is not installed: `apt-get install chromium`.")


def require_node_and_web_client() -> str:
    """Returns the path of Node.js. Skips the test when Node.js or the built web client is missing."""
    path = _find_or_skip(("node",), "Node.js 20 or later is not installed: `apt-get install nodejs npm`.")
    if not (WEB_CLIENT / "node_modules").exists():
        pytest.skip("The packages of the web client are not installed: `make web`.")
    require_web_client()
    return path


def require_web_client() -> None:
    """Skips the test when the web client is not built."""
    if not (WEB_CLIENT / "dist" / "index.html").exists():
        pytest.skip("The web client is not built: `make web`.")


def run_client_script(script: str, **arguments: str | int) -> dict[str, Any]:
    """Runs a script of web-client/e2e/clients, and returns its report. Skips the test without Node.js."""
    completed = subprocess.run(
        [require_node_and_web_client(), f"e2e/clients/{script}.mjs"],
        cwd=WEB_CLIENT,
        input=json.dumps(arguments),
        capture_output=True,
        text=True,
        timeout=CLIENT_SCRIPT_TIMEOUT_S,
    )
    assert completed.returncode == 0, completed.stderr
    report: dict[str, Any] = json.loads(completed.stdout)
    return report


def require_postfix() -> None:
    """Skips the test when Postfix is not installed or the user is not root."""
    if not Path(POSTFIX_DAEMONS).is_dir():
        pytest.skip("Postfix is not installed: `apt-get install postfix`.")
    if os.geteuid() != 0:
        pytest.skip("Postfix starts only as root: `sudo make test ARGS=tests/e2e/test_postfix.py`.")


def require_nginx() -> str:
    """Returns the path of nginx. Skips the test when nginx is not installed."""
    return _find_or_skip(("nginx", "/usr/sbin/nginx"), "nginx is not installed: `apt-get install nginx`.")


def require_caddy() -> str:
    """Returns the path of Caddy. Skips the test when Caddy is not installed."""
    return _find_or_skip(("caddy",), "Caddy is not installed: `apt-get install caddy`.")


def _find_or_skip(names: tuple[str, ...], reason: str) -> str:
    for name in names:
        if path := shutil.which(name):
            return path
    pytest.skip(reason)

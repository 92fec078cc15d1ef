"""Runs scripts of web-client/e2e, which drive a real Chromium and print a report."""

import atexit
import json
import subprocess
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tests.programs import WEB_CLIENT, require_chromium, require_node_and_web_client

SCRIPT_TIMEOUT_S = 230


def run_browser_script(script: str, url: str, screenshots: Path, **arguments: object) -> dict[str, Any]:
    """Runs a script with these arguments, and returns its report. Raises: AssertionError with its error output."""
    chromium, node = require_chromium(), require_node_and_web_client()
    browser = _shared_browser(node, chromium)
    script_input = {"url": url, "chromium": chromium, "screenshots": str(screenshots), "sharedBrowser": browser}
    completed = subprocess.run(
        [node, f"e2e/{script}"],
        cwd=WEB_CLIENT,
        input=json.dumps(script_input | arguments),
        capture_output=True,
        text=True,
        timeout=SCRIPT_TIMEOUT_S,
    )
    assert completed.returncode == 0, completed.stderr
    report: dict[str, Any] = json.loads(completed.stdout)
    return report


@cache
def _shared_browser(node: str, chromium: str) -> str:
    """Starts a browser for all scripts of this process, and returns its address. It ends with this process."""
    browser = subprocess.Popen(
        [node, "e2e/shared-browser.mjs", chromium],
        cwd=WEB_CLIENT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert browser.stdout is not None
    atexit.register(browser.communicate)
    address = browser.stdout.readline().strip()
    assert address, "The shared browser did not start."
    return address


def foreign_requests(requested_urls: list[str], *product_urls: str) -> list[str]:
    """Returns the requested URLs of other hosts and ports. Data and blob URLs cause no request to a server."""
    own_hosts = {urlsplit(url).netloc for url in product_urls}
    urls = [url for url in requested_urls if not url.startswith(("data:", "blob:"))]
    assert urls, "No request was recorded."
    return [url for url in urls if urlsplit(url).netloc not in own_hosts]

"""Runs scripts of web-client/e2e, which drive a real Chromium and print a report."""

import json
import subprocess
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tests.programs import WEB_CLIENT, require_chromium, require_node_and_web_client

SCRIPT_TIMEOUT_S = 230


def run_browser_script(script: str, url: str, screenshots: Path, **arguments: object) -> dict[str, Any]:
    """Runs a script with these arguments, and returns its report. Raises: AssertionError with its error output."""
    script_input = {"url": url, "chromium": require_chromium(), "screenshots": str(screenshots), **arguments}
    completed = subprocess.run(
        [require_node_and_web_client(), f"e2e/{script}"],
        cwd=WEB_CLIENT,
        input=json.dumps(script_input),
        capture_output=True,
        text=True,
        timeout=SCRIPT_TIMEOUT_S,
    )
    assert completed.returncode == 0, completed.stderr
    report: dict[str, Any] = json.loads(completed.stdout)
    return report


def foreign_requests(requested_urls: list[str], *product_urls: str) -> list[str]:
    """Returns the requested URLs of other hosts and ports. Data and blob URLs cause no request to a server."""
    own_hosts = {urlsplit(url).netloc for url in product_urls}
    urls = [url for url in requested_urls if not url.startswith(("data:", "blob:"))]
    assert urls, "No request was recorded."
    return [url for url in urls if urlsplit(url).netloc not in own_hosts]

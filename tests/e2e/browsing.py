"""Runs a visit to the web client: a script of web-client/e2e that drives a real Chromium and tells what it saw."""

import json
import subprocess
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tests.programs import WEB_CLIENT, chromium, node

VISIT_S = 230


def visit(script: str, url: str, screenshots: Path, **more: object) -> dict[str, Any]:
    """What the script saw; `more` goes into its order. Raises: AssertionError with its last words."""
    order = {"url": url, "chromium": chromium(), "screenshots": str(screenshots), **more}
    ended = subprocess.run(
        [node(), f"e2e/{script}"],
        cwd=WEB_CLIENT,
        input=json.dumps(order),
        capture_output=True,
        text=True,
        timeout=VISIT_S,
    )
    assert ended.returncode == 0, ended.stderr
    answer: dict[str, Any] = json.loads(ended.stdout)
    return answer


def elsewhere(requests: list[str], *urls: str) -> list[str]:
    """The requests to any other host and port."""
    own = {urlsplit(url).netloc for url in urls}
    assert requests, "No request was seen at all."
    return [address for address in requests if urlsplit(address).netloc not in own | {""}]

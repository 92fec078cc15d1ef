"""Runs a script of web-client/e2e, which drives a real Chromium and reports what it observed."""

import json
import subprocess
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tests.programs import WEB_CLIENT, chromium, node

VISIT_S = 230


def visit(script: str, url: str, screenshots: Path, **more: object) -> dict[str, Any]:
    """Returns the script's report; `more` is added to its input. Raises: AssertionError with the end of its output."""
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
    """Returns the requests to any other host and port."""
    own = {urlsplit(url).netloc for url in urls}
    assert requests, "No request was seen at all."
    return [address for address in requests if urlsplit(address).netloc not in own | {""}]

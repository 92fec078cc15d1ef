"""Stories in a real Chromium against the real product, told by scripts of web-client/e2e."""

import json
import subprocess
from pathlib import Path
from typing import Any

from tests.e2e.conftest import Product
from tests.e2e.test_graphiql import BROWSERS, WEB_CLIENT, found

VISIT_S = 150


def story(product: Product, script: str, folder: Path, tokens: dict[str, str]) -> dict[str, Any]:
    """What the script saw, which every look, page and request of it must fit. Screenshots are in `folder`."""
    order = {"url": product.url, "chromium": found(*BROWSERS), "tokens": tokens, "screenshots": str(folder)}
    ended = subprocess.run(
        [found("node"), f"e2e/{script}"],
        cwd=WEB_CLIENT,
        input=json.dumps(order),
        capture_output=True,
        text=True,
        timeout=VISIT_S,
    )
    assert ended.returncode == 0, ended.stderr
    seen: dict[str, Any] = json.loads(ended.stdout)
    return seen

"""Runs scripts of web-client/e2e, which drive a real Chromium and print a report."""

import atexit
import json
import os
import select
import subprocess
import time
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tests.programs import WEB_CLIENT, require_chromium, require_node_and_web_client

SCRIPT_TIMEOUT_S = 230


def run_browser_script(
    script: str, url: str, screenshots: Path, *, shows_notifications: bool = False, **arguments: object
) -> dict[str, Any]:
    """Runs a script with these arguments, and returns its report. Raises: AssertionError with its error."""
    chromium = require_chromium(shows_notifications=shows_notifications)
    node = require_node_and_web_client()
    script_input = {"script": script, "url": url, "chromium": chromium, "screenshots": str(screenshots)}
    return _script_runner(node, chromium).run(script_input | arguments)


class ScriptRunner:
    """A process of Node.js with the browser of all scripts of this process. It ends with this process."""

    def __init__(self, node: str, chromium: str) -> None:
        self._process = subprocess.Popen(
            [node, "e2e/script-runner.mjs", chromium], cwd=WEB_CLIENT, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        atexit.register(self._process.communicate)
        assert self._read_line(SCRIPT_TIMEOUT_S) == b"ready\n", "The browser did not start."

    def run(self, script_input: dict[str, Any]) -> dict[str, Any]:
        """Runs a script. Raises: AssertionError with its error, or at the deadline."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(script_input).encode() + b"\n")
        self._process.stdin.flush()
        line = self._read_line(SCRIPT_TIMEOUT_S)
        if not line.endswith(b"\n"):
            _script_runner.cache_clear()
            self._process.kill()
            raise AssertionError(f"{script_input['script']} did not end, or ended the process: {line!r}")
        outcome = json.loads(line)
        assert "error" not in outcome, outcome["error"]
        report: dict[str, Any] = outcome["report"]
        return report

    def _read_line(self, timeout_s: float) -> bytes:
        """Returns the next line of the output, or only its beginning at the end of the output or at the deadline."""
        assert self._process.stdout is not None
        output, line, ends_at = self._process.stdout.fileno(), b"", time.monotonic() + timeout_s
        while not line.endswith(b"\n") and select.select([output], [], [], max(0.0, ends_at - time.monotonic()))[0]:
            received = os.read(output, 1 << 16)
            if not received:
                break
            line += received
        return line


@cache
def _script_runner(node: str, chromium: str) -> ScriptRunner:
    return ScriptRunner(node, chromium)


def foreign_requests(requested_urls: list[str], *product_urls: str) -> list[str]:
    """Returns the requested URLs of other hosts and ports. Data and blob URLs cause no request to a server."""
    own_hosts = {urlsplit(url).netloc for url in product_urls}
    urls = [url for url in requested_urls if not url.startswith(("data:", "blob:"))]
    assert urls, "No request was recorded."
    return [url for url in urls if urlsplit(url).netloc not in own_hosts]

"""A web process whose log is on a full disk starts and serves. `/dev/full` refuses writes as a full disk does.

No test may read this log: reading /dev/full never ends.
"""

import socket
from pathlib import Path

import httpx2
import pytest

from tests.product import eventually
from tests.serving import server_variables, serving_process

FULL = Path("/dev/full")

pytestmark = pytest.mark.skipif(not FULL.exists(), reason="Only Linux has /dev/full.")


def test_web_process_with_full_disk_serves(tmp_path: Path, mongodb_uri: str, redis_url: str, database: str) -> None:
    (tmp_path / "log").symlink_to(FULL)
    variables = server_variables(mongodb_uri, redis_url, database) | {
        "NOROSHI_AUTH_SECRET": "a secret of a process without a log",
        "NOROSHI_LOG_LEVEL": "debug",
    }
    with socket.create_server(("127.0.0.1", 0), backlog=1024) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/readyz"
        with serving_process(tmp_path, "web", variables, listener) as web:
            assert eventually(lambda: is_ready(url) or web.process.poll() is not None)
            assert web.process.poll() is None


def is_ready(url: str) -> bool:
    try:
        return httpx2.get(url, timeout=30).status_code == 200
    except httpx2.HTTPError:
        return False

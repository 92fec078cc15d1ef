"""Pages of other allowed origins in a real Chromium: the session's cookie serves those of the same site only."""

import json
import os
import queue
import signal
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import httpx2
import pytest

from storage.stores import Stores, open_stores
from tests.e2e.test_proxies import new_account
from tests.programs import require_chromium
from tests.serving import WebProcess, web_process
from tests.storage.identity.accounts.conftest import PASSWORD

pytestmark = pytest.mark.anyio

REPORT_TIMEOUT_S = 120
PAGE = """<!doctype html><title>An allowed page</title><script type="module">
const { api, account } = SETTINGS;
const headers = { "content-type": "application/json", "noroshi-client": "page" };
const send = async (path, body) => {
  const request = { method: "POST", credentials: "include", headers, body: JSON.stringify(body) };
  const response = await fetch(api + path, request);
  return [response.status, await response.json()];
};
const socketAnswer = () => new Promise((resolve) => {
  const socket = new WebSocket(api.replace("http", "ws") + "/graphql", "graphql-transport-ws");
  socket.onopen = () => socket.send(JSON.stringify({ type: "connection_init" }));
  socket.onmessage = (message) => resolve(JSON.parse(message.data).type);
  socket.onclose = (event) => resolve(event.code);
});
const report = {};
try {
  report.signIn = (await send("/sign-in/password", account))[0];
  report.viewer = (await send("/graphql", { query: "{ viewer { name } }" }))[1].data.viewer;
  report.socket = await socketAnswer();
} catch (error) {
  report.error = String(error);
}
await fetch("/report", { method: "POST", body: JSON.stringify(report) });
</script>"""


class PageServer(ThreadingHTTPServer):
    """Serves the page, and receives its reports."""

    page = b""

    def __init__(self) -> None:
        self.reports: queue.Queue[dict[str, Any]] = queue.Queue()
        super().__init__(("127.0.0.1", 0), PageHandler)


class PageHandler(BaseHTTPRequestHandler):
    """One request of a browser."""

    server: PageServer

    def do_GET(self) -> None:
        """Sends the page."""
        self._answer(self.server.page)

    def do_POST(self) -> None:
        """Receives a report."""
        self.server.reports.put(json.loads(self.rfile.read(int(self.headers["content-length"]))))
        self._answer(b"")

    def log_message(self, format: str, *args: object) -> None:
        """Logs nothing."""

    def _answer(self, body: bytes) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/html")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@pytest.fixture(scope="module")
def pages() -> Iterator[PageServer]:
    with PageServer() as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


@pytest.fixture(scope="module")
def web(
    tmp_path_factory: pytest.TempPathFactory, mongodb_uri: str, redis_url: str, shared_database: str, pages: PageServer
) -> Iterator[WebProcess]:
    """Yields a web process that allows the pages at `localhost` and at `127.0.0.1`, two sites."""
    origins = f"http://localhost:{pages.server_port},http://127.0.0.1:{pages.server_port}"
    settings: dict[str, Any] = {"database": shared_database, "NOROSHI_ALLOWED_ORIGINS": origins}
    with web_process(tmp_path_factory.mktemp("web"), mongodb_uri, redis_url, **settings) as web:
        yield web


@pytest.fixture
async def stores(web: WebProcess, mongodb_uri: str, redis_url: str) -> AsyncIterator[Stores]:
    async with open_stores(mongodb_uri, redis_url, web.database) as stores:
        yield stores


@contextmanager
def chromium(folder: Path, url: str) -> Iterator[None]:
    """Opens a page in a browser of its own."""
    flags = ["--headless=new", "--no-sandbox", "--no-first-run", "--disable-gpu", f"--user-data-dir={folder}"]
    with (folder / "log").open("wb") as log:
        browser = subprocess.Popen([require_chromium(), *flags, url], stdout=log, stderr=log, start_new_session=True)
    try:
        yield
    finally:
        os.killpg(browser.pid, signal.SIGKILL)
        browser.wait(60)


@pytest.mark.browser
@pytest.mark.parametrize(
    ("host", "report"),
    [
        ("localhost", {"signIn": 200, "viewer": {"name": "Ann"}, "socket": "connection_ack"}),
        ("127.0.0.1", {"signIn": 200, "viewer": None, "socket": 4401}),
    ],
)
async def test_cookie_serves_allowed_pages_of_the_same_site(
    web: WebProcess, stores: Stores, pages: PageServer, tmp_path: Path, host: str, report: dict[str, object]
) -> None:
    async with httpx2.AsyncClient(base_url=web.url, timeout=60) as http:
        account = {"address": await new_account(stores, http), "password": PASSWORD}
    settings = {"api": web.url.replace("127.0.0.1", "localhost"), "account": account}
    pages.page = PAGE.replace("SETTINGS", json.dumps(settings)).encode()
    with chromium(tmp_path, f"http://{host}:{pages.server_port}/"):
        assert pages.reports.get(timeout=REPORT_TIMEOUT_S) == report

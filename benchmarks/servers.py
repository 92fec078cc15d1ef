"""Runs the product in a temporary folder, and web processes without group commit on the same databases."""

import json
import re
import signal
import socket
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from server.auth.tokens import mint
from server.web import listen
from tests.product import RunningProduct, environment, eventually, running_product

ORGANIZATION = "benchmark"
STOP_DEADLINE_S = 20.0


@dataclass(frozen=True)
class WebProcesses:
    """Web processes that share a port."""

    port: int
    pids: list[int]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


@dataclass(frozen=True)
class RunningDeployment:
    """A running product with embedded servers."""

    product: RunningProduct
    driver: str

    @property
    def web_processes(self) -> WebProcesses:
        """The product's own web processes."""
        pids = [pid for pid, command in self.product.children().items() if "noroshi web" in command]
        return WebProcesses(int(self.product.url.rpartition(":")[2]), pids)

    @property
    def mongod_pid(self) -> int:
        return self._server("mongod")[0]

    def token(self, user: str, *roles: str) -> str:
        """Returns a token with the roles, or a member's token."""
        return mint(self._secret, user_id=user, organization_id=ORGANIZATION, roles=roles)

    def environment(self) -> dict[str, str]:
        """Returns the environment of another process on the same servers."""
        return environment(
            MONGODB_URI=f"mongodb://127.0.0.1:{self._server('mongod')[1]}/?directConnection=true",
            REDIS_URL=f"redis://127.0.0.1:{self._server('valkey-server')[1]}/0",
            NOROSHI_AUTH_SECRET=self._secret,
            NOROSHI_MONGO_DRIVER=self.driver,
            NOROSHI_LOG_LEVEL="error",
        )

    @property
    def _secret(self) -> str:
        secret: str = json.loads((self.product.data_dir / "secrets.json").read_text())["auth_secret"]
        return secret

    def _server(self, name: str) -> tuple[int, str]:
        """Returns the process id and the port of an embedded server. Raises: LookupError."""
        for pid, command in self.product.children().items():
            if name in command and (port := re.search(r"--port (\d+)", command)):
                return pid, port[1]
        raise LookupError(f"{name} is not running")


@contextmanager
def deployment(web: int, driver: str, **settings: str) -> Iterator[RunningDeployment]:
    """Runs `noroshi up` with embedded servers and `web` web processes. Deletes its data afterwards."""
    variables = {"NOROSHI_LOG_LEVEL": "warning", "NOROSHI_MONGO_DRIVER": driver, **settings}
    with (
        tempfile.TemporaryDirectory(prefix="noroshi-benchmark-") as folder,
        running_product(Path(folder) / "data", "--web", str(web), **variables) as product,
    ):
        yield RunningDeployment(product, driver)


@contextmanager
def ungrouped_web_processes(deployment: RunningDeployment, count: int) -> Iterator[WebProcesses]:
    """Runs web processes without group commit on the product's servers."""
    with listen("127.0.0.1", 0) as listener, ExitStack() as stack:
        pids = [stack.enter_context(_ungrouped_web_process(deployment, listener)).pid for _ in range(count)]
        processes = WebProcesses(listener.getsockname()[1], pids)
        assert eventually(lambda: _is_ready(processes.url)), "The web processes without group commit are not ready."
        yield processes


@contextmanager
def _ungrouped_web_process(deployment: RunningDeployment, listener: socket.socket) -> Iterator[subprocess.Popen[bytes]]:
    fd = listener.fileno()
    command = [sys.executable, "-m", "benchmarks.one_transaction_each", str(fd)]
    process = subprocess.Popen(command, pass_fds=[fd], env=deployment.environment(), cwd=Path(__file__).parents[1])
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            process.wait(STOP_DEADLINE_S)
        process.kill()
        process.wait()


def _is_ready(url: str) -> bool:
    with suppress(OSError), urllib.request.urlopen(f"{url}/readyz", timeout=5) as answer:
        return bool(answer.status == 200)
    return False

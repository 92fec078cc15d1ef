"""Servers of the posting benchmark: the product in a temporary folder, and web processes without group commit."""

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
from tests.product import Product, environment, eventually, running

ORGANIZATION = "benchmark"
STOP_DEADLINE_S = 20.0


@dataclass(frozen=True)
class Target:
    """Web processes that share a port."""

    port: int
    web_pids: list[int]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


@dataclass(frozen=True)
class Bench:
    """A running product, and how its servers are reached."""

    product: Product
    driver: str

    @property
    def target(self) -> Target:
        """The product's own web processes."""
        pids = [pid for pid, command in self.product.children().items() if "noroshi web" in command]
        return Target(int(self.product.url.rpartition(":")[2]), pids)

    @property
    def mongod_pid(self) -> int:
        return self._server("mongod")[0]

    def token(self, user: str) -> str:
        """A member's token."""
        return mint(self._secret, user_id=user, organization_id=ORGANIZATION)

    def environment(self) -> dict[str, str]:
        """The environment of another web process on the same servers."""
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
        """Process id and port of an embedded server."""
        for pid, command in self.product.children().items():
            if name in command and (port := re.search(r"--port (\d+)", command)):
                return pid, port[1]
        raise LookupError(f"{name} does not run")


@contextmanager
def bench(web: int, driver: str, **more: str) -> Iterator[Bench]:
    """`noroshi up` with embedded servers and that many web processes, ended and forgotten afterwards."""
    variables = {"NOROSHI_LOG_LEVEL": "warning", "NOROSHI_MONGO_DRIVER": driver, **more}
    with (
        tempfile.TemporaryDirectory(prefix="noroshi-benchmark-") as folder,
        running(Path(folder) / "data", "--web", str(web), **variables) as product,
    ):
        yield Bench(product, driver)


@contextmanager
def one_by_one(bench: Bench, web: int) -> Iterator[Target]:
    """Web processes of the ordinary way on the product's servers."""
    with listen("127.0.0.1", 0) as listener, ExitStack() as stack:
        pids = [stack.enter_context(_web(bench, listener)).pid for _ in range(web)]
        target = Target(listener.getsockname()[1], pids)
        assert eventually(lambda: _ready(target.url)), "the ordinary way's web processes are not ready"
        yield target


@contextmanager
def _web(bench: Bench, listener: socket.socket) -> Iterator[subprocess.Popen[bytes]]:
    fd = listener.fileno()
    command = [sys.executable, "-m", "benchmarks.one_by_one", str(fd)]
    process = subprocess.Popen(command, pass_fds=[fd], env=bench.environment(), cwd=Path(__file__).parents[1])
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            process.wait(STOP_DEADLINE_S)
        process.kill()
        process.wait()


def _ready(url: str) -> bool:
    with suppress(OSError), urllib.request.urlopen(f"{url}/readyz", timeout=5) as answer:
        return bool(answer.status == 200)
    return False

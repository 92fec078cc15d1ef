"""Runs `noroshi web` and `noroshi worker` for a test, on running database servers."""

import os
import secrets
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pymongo

from server.auth.tokens import mint
from tests.keys import ADDRESS_KEYS_SETTING
from tests.preloaded import PreloadedProcess, preloaded_command
from tests.product import NOROSHI, environment, eventually

ORIGIN = "https://app.example.org"
STOP_DEADLINE_S = 60


@dataclass(frozen=True)
class ServerProcess:
    """A process of the product, and the file with its output."""

    process: subprocess.Popen[bytes] | PreloadedProcess
    log_file: Path

    @property
    def log_text(self) -> str:
        """The output so far."""
        return self.log_file.read_text()

    def wait_for_log(self, text: str, deadline_s: float = 60) -> bool:
        """Waits until the log contains the text or the deadline passes. Returns whether the log contains the text."""
        return eventually(lambda: text in self.log_text, deadline_s)

    def terminate(self) -> int:
        """Sends SIGTERM, and returns the exit code."""
        self.process.terminate()
        return self.process.wait(STOP_DEADLINE_S)


@dataclass(frozen=True)
class WebProcess(ServerProcess):
    """A running web process. It accepts requests of browsers from ORIGIN."""

    url: str
    database: str
    secret: str

    def token(self, user: str = "ann", org: str = "acme", roles: tuple[str, ...] = (), ttl_s: float = 3600) -> str:
        """Returns a token that the web process accepts."""
        return mint(self.secret, user_id=user, organization_id=org, roles=roles, ttl_s=ttl_s)


@contextmanager
def web_process(
    folder: Path,
    mongodb_uri: str,
    redis_url: str,
    shared: WebProcess | None = None,
    port: int = 0,
    database: str | None = None,
    **variables: str,
) -> Iterator[WebProcess]:
    """Starts a web process on the database, by default on a new one, which is dropped afterwards.

    With `shared`, the process uses the database and the secret of that web process. `variables` are added to the
    environment.
    """
    secret = shared.secret if shared else secrets.token_hex(32)
    is_new = database is None and shared is None
    database = database or (shared.database if shared else f"t_{secrets.token_hex(6)}")
    own_variables = {"NOROSHI_AUTH_SECRET": secret, "NOROSHI_ALLOWED_ORIGINS": ORIGIN}
    all_variables = server_variables(mongodb_uri, redis_url, database) | own_variables | variables
    with socket.create_server(("127.0.0.1", port), backlog=1024) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        with serving_process(folder, "web", all_variables, listener) as web:
            assert eventually(lambda: is_ready(url) or web.process.poll() is not None), web.log_text
            # A request to the listener of a process that has ended would wait for ever.
            assert web.process.poll() is None, web.log_text
            yield WebProcess(web.process, web.log_file, url, database, secret)
    if shared is None:
        shutil.rmtree(files_folder(database), ignore_errors=True)
    if is_new:
        drop_database(mongodb_uri, database)


@contextmanager
def worker_process(
    folder: Path, mongodb_uri: str, redis_url: str, database: str, **variables: str
) -> Iterator[ServerProcess]:
    """Starts a worker process that may send requests to loopback addresses."""
    defaults = server_variables(mongodb_uri, redis_url, database) | {"NOROSHI_EGRESS_ALLOW": "127.0.0.0/8"}
    with serving_process(folder, "worker", defaults | variables) as worker:
        assert worker.wait_for_log("worker_ready"), worker.log_text
        yield worker


def files_folder(database: str) -> Path:
    """Returns the folder in which the processes of a database store files."""
    return Path(tempfile.gettempdir()) / f"noroshi-files-{database}"


def server_variables(mongodb_uri: str, redis_url: str, database: str) -> dict[str, str]:
    """Returns the environment variables that name the database servers, the address keys and the simulator of calls."""
    keys = {"NOROSHI_ADDRESS_KEYS": ADDRESS_KEYS_SETTING}
    return {
        "MONGODB_URI": mongodb_uri,
        "REDIS_URL": redis_url,
        "NOROSHI_DATABASE": database,
        "NOROSHI_TELEPHONY": "simulator",
        "NOROSHI_FILES": str(files_folder(database)),
        **keys,
    }


@contextmanager
def noroshi_process(
    folder: Path,
    command: Sequence[str],
    variables: dict[str, str],
    pass_fds: Sequence[int] = (),
    program: Sequence[str] = NOROSHI,
) -> Iterator[ServerProcess]:
    """Runs a `noroshi` command, and terminates it afterwards if it still runs."""
    log_file = _log_file(folder)
    with log_file.open("wb") as output:
        process = subprocess.Popen(
            [*program, *command],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            pass_fds=pass_fds,
            env=environment(**variables),
        )
    with _terminated(ServerProcess(process, log_file)) as running:
        yield running


@contextmanager
def serving_process(
    folder: Path,
    command: str,
    variables: dict[str, str],
    listener: socket.socket | None = None,
    program: Sequence[str] = NOROSHI,
) -> Iterator[ServerProcess]:
    """Runs `noroshi web` or `noroshi worker`. In tests it is forked from a process that has imported the product.

    Another `program`, such as that of another checkout, is never forked.
    """
    fds = [listener.fileno()] if listener else []
    if "PYTEST_VERSION" in os.environ and program == NOROSHI:
        log_file = _log_file(folder)
        process = preloaded_command([command], environment(**variables), log_file, listener=listener)
        running = _terminated(ServerProcess(process, log_file))
    else:
        running = noroshi_process(folder, [command, *(f"--fd={fd}" for fd in fds)], variables, fds, program)
    with running as serving:
        yield serving


def _log_file(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder / "log"


@contextmanager
def _terminated(running: ServerProcess) -> Iterator[ServerProcess]:
    """Terminates a process afterwards if it still runs."""
    try:
        yield running
    finally:
        running.process.terminate()
        running.process.wait(STOP_DEADLINE_S)


def is_ready(url: str) -> bool:
    """Returns whether the web process answers that it is ready."""
    try:
        return httpx2.get(f"{url}/readyz", timeout=30).status_code == 200
    except httpx2.HTTPError:
        return False


def drop_database(mongodb_uri: str, database: str) -> None:
    """Drops a database."""
    client: pymongo.MongoClient[dict[str, Any]] = pymongo.MongoClient(mongodb_uri, serverSelectionTimeoutMS=2000)
    with client:
        client.drop_database(database)

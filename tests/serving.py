"""One `noroshi web` or `noroshi worker` of a test's own, by the real command, on running databases."""

import secrets
import socket
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pymongo

from server.auth.tokens import mint
from tests.keys import ADDRESS_KEYS_SETTING
from tests.product import NOROSHI, environment, eventually

ORIGIN = "https://app.example.org"
STOP_DEADLINE_S = 60


@dataclass(frozen=True)
class Running:
    """A process and its log."""

    process: subprocess.Popen[bytes]
    log: Path

    @property
    def errors(self) -> str:
        """Returns the log so far."""
        return self.log.read_text()

    def says(self, words: str, deadline_s: float = 60) -> bool:
        """Waits for words in the log, and returns whether they appeared."""
        return eventually(lambda: words in self.errors, deadline_s)

    def terminate(self) -> int:
        """Sends SIGTERM, and returns the exit code."""
        self.process.terminate()
        return self.process.wait(STOP_DEADLINE_S)


@dataclass(frozen=True)
class Web(Running):
    """A running web process; browsers at ORIGIN may use it."""

    url: str
    database: str
    secret: str

    def token(self, user: str = "ann", org: str = "acme", roles: tuple[str, ...] = (), ttl_s: float = 3600) -> str:
        """Returns a token that the web process accepts."""
        return mint(self.secret, user_id=user, organization_id=org, roles=roles, ttl_s=ttl_s)


@contextmanager
def serving(folder: Path, mongodb_uri: str, redis_url: str, beside: Web | None = None, **more: str) -> Iterator[Web]:
    """Starts a web process, on a database of its own that is dropped afterwards, or on the given one.

    `more` are further environment variables.
    """
    secret = beside.secret if beside else secrets.token_hex(32)
    database = beside.database if beside else f"t_{secrets.token_hex(6)}"
    variables = servers(mongodb_uri, redis_url, database)
    variables |= {"NOROSHI_AUTH_SECRET": secret, "NOROSHI_ALLOWED_ORIGINS": ORIGIN, **more}
    with socket.create_server(("127.0.0.1", 0), backlog=1024) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        fd = listener.fileno()
        with running(folder, ["web", f"--fd={fd}"], variables, pass_fds=[fd]) as web:
            assert eventually(lambda: _serves(url) or web.process.poll() is not None), web.errors
            yield Web(web.process, web.log, url, database, secret)
    drop(mongodb_uri, database)


@contextmanager
def working(folder: Path, mongodb_uri: str, redis_url: str, database: str, **more: str) -> Iterator[Running]:
    """Starts a worker process; user-given URLs may reach loopback addresses."""
    variables = servers(mongodb_uri, redis_url, database) | {"NOROSHI_EGRESS_ALLOW": "127.0.0.0/8", **more}
    with running(folder, ["worker"], variables) as worker:
        assert worker.says("worker_ready"), worker.errors
        yield worker


def servers(mongodb_uri: str, redis_url: str, database: str) -> dict[str, str]:
    """Returns the environment that names the servers."""
    keys = {"NOROSHI_ADDRESS_KEYS": ADDRESS_KEYS_SETTING}
    return {"MONGODB_URI": mongodb_uri, "REDIS_URL": redis_url, "NOROSHI_DATABASE": database, **keys}


@contextmanager
def running(
    folder: Path, command: Sequence[str], variables: dict[str, str], pass_fds: Sequence[int] = ()
) -> Iterator[Running]:
    """Starts a command of the product, and ends it afterwards, if it still runs."""
    folder.mkdir(parents=True, exist_ok=True)
    log = folder / "log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*NOROSHI, *command],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            pass_fds=pass_fds,
            env=environment(**variables),
        )
    try:
        yield Running(process, log)
    finally:
        process.terminate()
        process.wait(STOP_DEADLINE_S)


def _serves(url: str) -> bool:
    try:
        return httpx2.get(f"{url}/readyz", timeout=30).status_code == 200
    except httpx2.HTTPError:
        return False


def drop(mongodb_uri: str, database: str) -> None:
    """Drops a database, if its server still answers."""
    client: pymongo.MongoClient[dict[str, Any]] = pymongo.MongoClient(mongodb_uri, serverSelectionTimeoutMS=2000)
    with client:
        client.drop_database(database)

"""One `noroshi web` process of a test's own, on databases that run already: the real command, quick to start."""

import secrets
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pymongo

from server.tokens import mint
from tests.product import NOROSHI, environment, eventually

ORIGIN = "https://app.example.org"
STOP_DEADLINE_S = 20


@dataclass(frozen=True)
class Web:
    """A process that serves; browsers at ORIGIN may use it."""

    url: str
    process: subprocess.Popen[bytes]
    database: str
    secret: str
    log: Path

    def token(self, user: str = "ann", org: str = "acme", roles: tuple[str, ...] = (), ttl_s: float = 3600) -> str:
        """A token that it accepts."""
        return mint(self.secret, user_id=user, organization_id=org, roles=roles, ttl_s=ttl_s)

    @property
    def errors(self) -> str:
        """What it logged so far."""
        return self.log.read_text()


@contextmanager
def serving(folder: Path, mongodb_uri: str, redis_url: str) -> Iterator[Web]:
    """A process that serves on a database of its own, which is dropped afterwards."""
    folder.mkdir(parents=True, exist_ok=True)
    secret, database = secrets.token_hex(32), f"t_{secrets.token_hex(6)}"
    with socket.create_server(("127.0.0.1", 0), backlog=1024) as listener, (folder / "log").open("wb") as log:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        process = subprocess.Popen(
            [*NOROSHI, "web", f"--fd={listener.fileno()}"],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            pass_fds=[listener.fileno()],
            env=environment(
                MONGODB_URI=mongodb_uri,
                REDIS_URL=redis_url,
                NOROSHI_DATABASE=database,
                NOROSHI_AUTH_SECRET=secret,
                NOROSHI_ALLOWED_ORIGINS=ORIGIN,
            ),
        )
        web = Web(url, process, database, secret, folder / "log")
        try:
            assert eventually(lambda: _serves(url) or process.poll() is not None), web.errors
            yield web
        finally:
            process.terminate()
            process.wait(STOP_DEADLINE_S)
            _drop(mongodb_uri, database)


def _serves(url: str) -> bool:
    try:
        return httpx2.get(f"{url}/readyz", timeout=5).status_code == 200
    except httpx2.HTTPError:
        return False


def _drop(mongodb_uri: str, database: str) -> None:
    client: pymongo.MongoClient[dict[str, Any]] = pymongo.MongoClient(mongodb_uri, serverSelectionTimeoutMS=2000)
    with client:
        client.drop_database(database)

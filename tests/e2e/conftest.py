"""The `noroshi up` that all end-to-end tests share, also those that kill its processes."""

import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import httpx2
import pytest

from server.auth.tokens import mint
from storage.secrets.vapid_keys import new_vapid_key
from tests.product import RunningProduct, eventually, running_product

WEB_PROCESSES, WORKERS = 2, 1


@dataclass(frozen=True)
class DeployedProduct:
    """A running product, and tokens for its users, who belong to `organization` unless a test names another one."""

    url: str
    data_dir: Path
    processes: RunningProduct
    organization: str = "acme"

    @property
    def mongodb_uri(self) -> str:
        """The address of the product's MongoDB, whose database has the name "noroshi"."""
        return f"mongodb://127.0.0.1:{self._port('mongodb')}/?directConnection=true"

    @property
    def redis_url(self) -> str:
        return f"redis://127.0.0.1:{self._port('redis')}/0"

    def _port(self, server: str) -> str:
        return (self.data_dir / server / "port").read_text()

    def in_organization(self, organization: str) -> "DeployedProduct":
        """Returns the same product with users of another organization."""
        return replace(self, organization=organization)

    def is_whole(self) -> bool:
        """Returns whether all web processes and workers run, and reach the database servers."""
        commands = list(self.processes.children().values())
        running = [sum(name in command for command in commands) for name in ("noroshi web", "noroshi worker")]
        if running != [WEB_PROCESSES, WORKERS]:
            return False
        with suppress(httpx2.HTTPError):
            state = httpx2.get(f"{self.url}/readyz", timeout=30).json()
            return bool(state == {"status": "ready", "mongodb": "ok", "redis": "ok"})
        return False

    def token(
        self,
        user: str,
        org: str | None = None,
        roles: list[str] | None = None,
        name: str | None = None,
        handle: str | None = None,
        email: str | None = None,
        ttl_s: float = 3600,
    ) -> str:
        """Returns a token that the product accepts."""
        secret = json.loads((self.data_dir / "secrets.json").read_text())["auth_secret"]
        return mint(
            secret,
            user_id=user,
            organization_id=org or self.organization,
            roles=roles or (),
            name=name,
            handle=handle,
            email=email,
            ttl_s=ttl_s,
        )


@pytest.fixture(scope="package")
def product(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DeployedProduct]:
    """Two web processes and one worker. They may send requests to loopback addresses; calls run 60 times as fast."""
    data_dir = tmp_path_factory.mktemp("product") / "data"
    settings = {
        "NOROSHI_EGRESS_ALLOW": "127.0.0.0/8",
        "NOROSHI_TELEPHONY": "simulator",
        "NOROSHI_SIMULATOR_SPEED": "60",
        "NOROSHI_VAPID_KEY": new_vapid_key().private_text,
    }
    with running_product(data_dir, "--web", str(WEB_PROCESSES), **settings) as processes:
        yield DeployedProduct(processes.url, data_dir, processes)


@pytest.fixture
def killable_product(product: DeployedProduct, request: pytest.FixtureRequest) -> Iterator[DeployedProduct]:
    """The shared product, for a test that kills or stops its processes. The next test begins when all run again.

    The users belong to an organization of the test's module, so that no other test sees what they do.
    """
    yield product.in_organization(request.module.__name__.rpartition(".")[2].replace("_", "-"))
    assert eventually(product.is_whole, 120), product.processes.errors[-5000:]

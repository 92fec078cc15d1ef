"""The `noroshi up` that end-to-end tests share."""

import json
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import httpx2
import pytest

from server.auth.tokens import mint
from storage.secrets.vapid_keys import new_vapid_key
from tests.e2e.shared_product import shared_product
from tests.product import ObservedProduct, RunningProduct

WEB_PROCESSES, WORKERS = 2, 1


@dataclass(frozen=True)
class DeployedProduct:
    """A running product, and tokens for its users, who belong to `organization` unless a test names another one."""

    url: str
    data_dir: Path
    processes: ObservedProduct
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


def start_product(data_dir: Path) -> RunningProduct:
    """Starts two web processes and one worker. They may send requests to loopback; calls run 60 times as fast."""
    settings = {
        "NOROSHI_EGRESS_ALLOW": "127.0.0.0/8",
        "NOROSHI_TELEPHONY": "simulator",
        "NOROSHI_SIMULATOR_SPEED": "60",
        "NOROSHI_VAPID_KEY": new_vapid_key().private_text,
    }
    return RunningProduct(data_dir, "--web", str(WEB_PROCESSES), **settings)


@pytest.fixture(scope="package")
def product_of_test_run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DeployedProduct]:
    """The product that all processes of the test run use at the same time."""
    folder = tmp_path_factory.getbasetemp()
    is_worker = "PYTEST_XDIST_WORKER" in os.environ
    with shared_product((folder.parent if is_worker else folder) / "product", start_product) as processes:
        yield DeployedProduct(processes.url, processes.data_dir, processes)


@pytest.fixture(scope="module")
def product(product_of_test_run: DeployedProduct, request: pytest.FixtureRequest) -> DeployedProduct:
    """The shared product. The users belong to an organization of the module, so that no other module sees them."""
    return product_of_test_run.in_organization(organization_of(request))


def organization_of(request: pytest.FixtureRequest) -> str:
    """Returns the name of the organization of a test module, such as "test-chat"."""
    return request.module.__name__.rpartition(".")[2].replace("_", "-")

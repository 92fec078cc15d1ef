"""The `noroshi up` that all end-to-end tests share."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from server.auth.tokens import mint
from tests.product import RunningProduct, running_product


@dataclass(frozen=True)
class DeployedProduct:
    """A running product, and tokens for its users."""

    url: str
    data_dir: Path
    processes: RunningProduct

    def token(
        self,
        user: str,
        org: str = "acme",
        roles: list[str] | None = None,
        name: str | None = None,
        handle: str | None = None,
        ttl_s: float = 3600,
    ) -> str:
        """Returns a token that the product accepts."""
        secret = json.loads((self.data_dir / "secrets.json").read_text())["auth_secret"]
        return mint(secret, user_id=user, organization_id=org, roles=roles or (), name=name, handle=handle, ttl_s=ttl_s)


@pytest.fixture(scope="package")
def product(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DeployedProduct]:
    """Two web processes and one worker. They may send requests to loopback addresses; calls run 60 times as fast."""
    data_dir = tmp_path_factory.mktemp("product") / "data"
    settings = {
        "NOROSHI_EGRESS_ALLOW": "127.0.0.0/8",
        "NOROSHI_TELEPHONY": "simulator",
        "NOROSHI_SIMULATOR_SPEED": "60",
    }
    with running_product(data_dir, "--web", "2", **settings) as processes:
        yield DeployedProduct(processes.url, data_dir, processes)

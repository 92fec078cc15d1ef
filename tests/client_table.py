"""Runs the example of every client against the built wheel, and prints a table: `make clients`."""

import asyncio
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.e2e.client_checks import CHECKS, ClientCheck, organization_of, pinned_versions
from tests.e2e.conftest import DeployedProduct
from tests.e2e.wheel import install_wheel, product_of_wheel

WORKS = "works"


def main() -> int:
    """Returns 0 if each client works."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        print("Building and installing the wheel.", flush=True)
        environment = install_wheel(folder)
        with product_of_wheel(environment, folder) as running:
            product = DeployedProduct(running.url, running.data_dir, running)
            results = {client: run_check(product, client, check) for client, check in CHECKS.items()}
    for row in table(pinned_versions(), results):
        print(row)
    return 0 if set(results.values()) == {WORKS} else 1


def run_check(product: DeployedProduct, client: str, check: ClientCheck) -> str:
    """Runs the check of a client as an ADMIN. Returns its result in one line."""
    print(client, flush=True)
    try:
        asyncio.run(check_with_token(product, client, check))
    except (Exception, pytest.skip.Exception) as error:
        return " ".join(f"{type(error).__name__}: {error}".split())
    return WORKS


async def check_with_token(product: DeployedProduct, client: str, check: ClientCheck) -> None:
    """Runs the check of a client. Raises the errors of the check."""
    await check(product.url, product.token("ann", org=organization_of(client), roles=["ADMIN"]))


def table(versions: dict[str, str], results: dict[str, str]) -> list[str]:
    """Returns the rows of a table in Markdown."""
    rows = [f"| {client} | {versions[client]} | {result} |" for client, result in results.items()]
    return ["", "| client | version | result |", "| --- | --- | --- |", *rows]


if __name__ == "__main__":
    sys.exit(main())

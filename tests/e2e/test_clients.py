"""The examples of `examples/clients` use the running product: query, mutation, live events, errors, and resuming."""

import pytest

from tests.e2e.client_checks import CHECKS
from tests.e2e.conftest import DeployedProduct
from tests.e2e.live_examples import LIVE_CLIENTS, errors_of_live_example
from tests.programs import run_client_script

IN_OWN_ENVIRONMENT = {"ariadne-codegen"}
"""Clients that only `make clients` installs and runs."""

# The product executes no operation by GET. The audits only recommend GET.
GET_AUDITS = {"5A70", "D6D5", "6A70"}


@pytest.mark.anyio
@pytest.mark.parametrize("name", [name for name in CHECKS if name not in IN_OWN_ENVIRONMENT])
async def test_example_of_client_works(product: DeployedProduct, name: str) -> None:
    """Live examples print each message once and in order, also after an outage."""
    await CHECKS[name](product.url, product.token("ann", org=f"clients-{name}"))


@pytest.mark.anyio
@pytest.mark.parametrize("name", LIVE_CLIENTS)
async def test_live_example_prints_code_of_error(product: DeployedProduct, name: str) -> None:
    token = product.token("ann", org=f"clients-{name}")
    assert (await errors_of_live_example(name, product.url, token, topic="nowhere")).startswith("NOT_FOUND: ")


@pytest.mark.anyio
@pytest.mark.parametrize("name", LIVE_CLIENTS)
async def test_live_example_prints_refused_token(product: DeployedProduct, name: str) -> None:
    errors = await errors_of_live_example(name, product.url, "malformed", topic="nowhere")
    assert errors.startswith("4401: " if name == "graphql-ws" else "UNAUTHENTICATED: ")


def test_graphql_http_audits_pass_except_get(product: DeployedProduct) -> None:
    report = run_client_script("audits", url=product.url)
    assert report["total"] == 61
    assert {audit["id"] for audit in report["failed"]} == GET_AUDITS
    assert all(audit["name"].startswith("MAY ") and "GET" in audit["name"] for audit in report["failed"])

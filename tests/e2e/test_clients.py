"""The examples of `examples/clients` use the running product: query, mutation, live events, errors, and resuming."""

import subprocess

import pytest

from tests.client import client
from tests.e2e.chat_topic import create_chat_topic
from tests.e2e.conftest import DeployedProduct
from tests.e2e.live_examples import (
    CLIENTS,
    LIVE_CLIENTS,
    check_live_example,
    errors_of_live_example,
    require_client_packages,
    running_program,
)
from tests.programs import run_client_script

# The product executes no operation by GET. The audits only recommend GET.
GET_AUDITS = {"5A70", "D6D5", "6A70"}


@pytest.mark.anyio
@pytest.mark.parametrize("name", LIVE_CLIENTS)
async def test_live_example_receives_each_message_once(product: DeployedProduct, name: str) -> None:
    await check_live_example(name, product.url, product.token("ann", org=f"clients-{name}"))


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


@pytest.mark.anyio
async def test_graphql_request_example_posts_and_prints_errors(product: DeployedProduct) -> None:
    token = product.token("ann", org="clients-graphql-request")
    program = [require_client_packages(), str(CLIENTS / "graphql-request/post.mjs"), "one"]
    settings = {"NOROSHI_URL": product.url, "NOROSHI_TOKEN": token}
    async with client(product.url, token) as ann:
        chat = await create_chat_topic(ann)
        async with running_program(*program, NOROSHI_TOPIC=chat.topic, **settings) as posting:
            assert await posting.line() == "ann: one"
        async with running_program(*program, NOROSHI_TOPIC="nowhere", **settings) as posting:
            assert (await posting.errors()).startswith("NOT_FOUND: ")


def test_codegen_types_every_scalar_and_checks_example() -> None:
    require_client_packages()
    folder, programs = CLIENTS / "graphql-codegen", CLIENTS / "node_modules/.bin"
    subprocess.run([programs / "graphql-codegen"], cwd=folder, check=True, capture_output=True)
    checked = subprocess.run([programs / "tsc", "--noEmit"], cwd=CLIENTS, capture_output=True, text=True)
    assert checked.returncode == 0, checked.stdout


def test_graphql_http_audits_pass_except_get(product: DeployedProduct) -> None:
    report = run_client_script("audits", url=product.url)
    assert report["total"] == 61
    assert {audit["id"] for audit in report["failed"]} == GET_AUDITS
    assert all(audit["name"].startswith("MAY ") and "GET" in audit["name"] for audit in report["failed"])

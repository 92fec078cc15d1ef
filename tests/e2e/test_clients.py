"""The examples of `examples/clients` on the running product: errors and silent connections.

`make clients`, which CI runs, proves that each example works on the built wheel: tests/client_table.py.
"""

import pytest

from tests.client import client
from tests.e2e.chat_topic import create_chat_topic
from tests.e2e.conftest import DeployedProduct
from tests.e2e.live_examples import (
    CLIENTS,
    LIVE_CLIENTS,
    errors_of_live_example,
    require_client_packages,
    running_program,
)
from tests.programs import run_client_script
from tests.storage.faulty_proxy import faulty_proxy

PRINT_STATES = """
import { WebSocket } from "ws";
import { createResumingClient } from "./graphql-ws/resume.mjs";
const { NOROSHI_URL, NOROSHI_TOKEN, NOROSHI_TOPIC } = process.env;
const client = createResumingClient({
  url: `${NOROSHI_URL.replace("http", "ws")}/graphql`,
  webSocketImpl: WebSocket,
  connectionParams: { authorization: `Bearer ${NOROSHI_TOKEN}` },
  keepAlive: 200,
});
const query = `subscription ($id: ID!, $since: Cursor) {
  topicEvents(topicId: $id, since: $since) { ... on StreamReady { cursor resumed } }
}`;
const next = ({ data }) => console.log(data.topicEvents.resumed);
client.subscribe({ query, variables: { id: NOROSHI_TOPIC } }, { next, error: console.error, complete() {} });
"""
"""Prints `resumed` of each StreamReady event."""


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
async def test_resuming_client_notices_a_silent_connection(product: DeployedProduct) -> None:
    token = product.token("ann", org="clients-silent")
    async with client(product.url, token) as ann, faulty_proxy(product.url) as proxy:
        chat = await create_chat_topic(ann)
        settings = {"NOROSHI_URL": f"http://127.0.0.1:{proxy.port}", "NOROSHI_TOKEN": token}
        program = [require_client_packages(), "--input-type=module", "--eval", PRINT_STATES]
        async with running_program(*program, cwd=CLIENTS, NOROSHI_TOPIC=chat.topic, **settings) as watching:
            assert await watching.line() == "false"
            proxy.drop_traffic_of_open_connections()
            assert await watching.line() == "true"


def test_graphql_http_audits_pass(product: DeployedProduct) -> None:
    report = run_client_script("audits", url=product.url)
    assert report["total"] == 61
    assert report["failed"] == []

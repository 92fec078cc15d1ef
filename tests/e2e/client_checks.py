"""Checks the example of each client in docs/clients/README.md against a running product."""

import json
import re
from collections.abc import Awaitable, Callable
from functools import partial

from tests.client import client
from tests.e2e.chat_topic import create_chat_topic, post
from tests.e2e.http_clients import COMMANDS, ORGANIZATION, check_http_client
from tests.e2e.live_examples import (
    CLIENTS,
    EXAMPLES,
    check_live_example,
    require_client_packages,
    run_generator,
    running_program,
)

LOCKS = ("requirements.lock", "requirements.clients.lock")
ClientCheck = Callable[[str, str], Awaitable[None]]
"""Takes the address of a product and the token of an ADMIN with the handle "ann". Raises: AssertionError."""


async def check_graphql_request(url: str, token: str) -> None:
    """Posts a message, and expects the code of an error."""
    program = [require_client_packages(), str(CLIENTS / "graphql-request/post.mjs"), "one"]
    settings = {"NOROSHI_URL": url, "NOROSHI_TOKEN": token}
    async with client(url, token) as ann:
        chat = await create_chat_topic(ann)
    async with running_program(*program, NOROSHI_TOPIC=chat.topic, **settings) as posting:
        assert await posting.line() == "ann: one"
    async with running_program(*program, NOROSHI_TOPIC="nowhere", **settings) as posting:
        assert (await posting.errors()).startswith("NOT_FOUND: ")


async def check_graphql_codegen(_: str, __: str) -> None:
    """Generates types, and checks the example with them."""
    require_client_packages()
    programs = CLIENTS / "node_modules/.bin"
    run_generator(programs / "graphql-codegen", CLIENTS / "graphql-codegen")
    run_generator(programs / "tsc", CLIENTS, "--noEmit")


async def check_relay(url: str, token: str) -> None:
    """Runs the live example, and reads the history of a topic page by page."""
    await check_live_example("relay", url, token)
    texts = [f"message {number}" for number in range(5)]
    async with client(url, token) as ann:
        chat = await create_chat_topic(ann)
        for text in texts:
            await post(chat, ann, text)
    program = [require_client_packages(), str(CLIENTS / "relay/history.mjs"), "2"]
    settings = {"NOROSHI_URL": url, "NOROSHI_TOKEN": token, "NOROSHI_TOPIC": chat.topic}
    async with running_program(*program, **settings) as history:
        assert [await history.line() for _ in texts] == [f"ann: {text}" for text in reversed(texts)]
        assert await history.errors() == ""


CHECKS: dict[str, ClientCheck] = {
    "graphql-ws": partial(check_live_example, "graphql-ws"),
    "@urql/core": partial(check_live_example, "urql"),
    "@apollo/client": partial(check_live_example, "apollo"),
    "relay-runtime": check_relay,
    "gql": partial(check_live_example, "gql"),
    "graphql-request": check_graphql_request,
    "ariadne-codegen": partial(check_live_example, "ariadne-codegen"),
    "@graphql-codegen/client-preset": check_graphql_codegen,
    **{name: partial(check_http_client, name) for name in COMMANDS},
}
"""The check of each client, by the name of its package, in the order of the table."""


def organization_of(name: str) -> str:
    """Returns the organization in which a client is checked: its own one, or that of local accounts."""
    return ORGANIZATION if name in COMMANDS else f"clients-{name}"


def pinned_versions() -> dict[str, str]:
    """Returns the version of each client, as the lock files and package.json pin it."""
    package = json.loads((CLIENTS / "package.json").read_text(encoding="utf-8"))
    pinned: dict[str, str] = package["dependencies"] | package["devDependencies"]
    for lock in LOCKS:
        text = (EXAMPLES.parent / lock).read_text(encoding="utf-8")
        pinned |= dict(re.findall(r"^([a-z0-9-]+)==([\w.]+)", text, re.MULTILINE))
    return {name: pinned[name] for name in CHECKS}

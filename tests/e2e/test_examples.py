"""The programs of `examples/` work as they are, with service keys, against the running product."""

import asyncio
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiosmtpd.smtp import SMTP, Envelope, Session

from tests.client import Client, client
from tests.e2e.chat_topic import create_chat_topic, post
from tests.e2e.conftest import DeployedProduct
from tests.e2e.live_examples import EXAMPLES, running_program
from tests.waiting import until

pytestmark = pytest.mark.anyio

CREATE_KEY = "mutation ($input: CreateServiceKeyInput!) { createServiceKey(input: $input) { secret } }"
ADDRESS = "query ($a: [String!]!) { addressBook(addresses: $a) { blocked } }"


@pytest.fixture
async def ada(product: DeployedProduct) -> AsyncIterator[Client]:
    """An administrator of the organization."""
    async with client(product.url, product.token("ada", roles=["ADMIN"])) as person:
        yield person


async def create_key(ada: Client, *scopes: str) -> str:
    """Returns the secret of a new service key."""
    created = await ada.run(CREATE_KEY, input={"name": "Bot", "scopes": list(scopes)})
    return str(created["createServiceKey"]["secret"])


async def replies(person: Client, message_id: str) -> list[str]:
    """Returns the texts in the thread of a message."""
    found = await person.run("query ($id: ID!) { message(id: $id) { thread { id } } }", id=message_id)
    if not found["message"]["thread"]:
        return []
    read = 'query ($id: ID!) { messages(topicId: $id, latest: "now") { items { text } } }'
    page = await person.run(read, id=found["message"]["thread"]["id"])
    return [item["text"] for item in page["messages"]["items"]]


def command(name: str, *arguments: str) -> list[str]:
    return [sys.executable, str(EXAMPLES / f"{name}.py"), *arguments]


async def test_bot_answers_each_mention_once(product: DeployedProduct, ada: Client, tmp_path: Path) -> None:
    key = await create_key(ada, "chat:read", "chat:write")
    chat = await create_chat_topic(ada)
    settings = {"NOROSHI_URL": product.url, "NOROSHI_KEY": key, "NOROSHI_TOPIC": chat.topic}

    async with running_program(*command("bot"), cwd=tmp_path, **settings) as bot:
        handle = (await bot.line()).split()[0]
        first = await post(chat, ada, f"Good morning, {handle}")
        await until(lambda: replies(ada, first["id"]), 30)
    missed = await post(chat, ada, f"Are you there, {handle}?")
    async with running_program(*command("bot"), cwd=tmp_path, **settings) as bot:
        await bot.line()
        await until(lambda: replies(ada, missed["id"]), 30)
        last = await post(chat, ada, f"Good night, {handle}")
        await until(lambda: replies(ada, last["id"]), 30)

    for message in (first, missed, last):
        assert await replies(ada, message["id"]) == ["Hello @ada!"]


async def test_scheduler_follows_post_until_published(product: DeployedProduct, ada: Client) -> None:
    key = await create_key(ada, "publishing:write", "jobs:read")
    settings = {"NOROSHI_URL": product.url, "NOROSHI_KEY": key}
    async with running_program(*command("scheduler", "The beacon is lit", "0.5"), **settings) as program:
        while (state := (await program.line()).strip()) != "PUBLISHED":
            assert state in ("SCHEDULED", "PUBLISHING")
        assert await program.errors() == ""
    posts = await ada.run('{ searchPosts: localFeed(latest: "now") { items { text } } }')
    assert posts["searchPosts"]["items"] == [{"text": "The beacon is lit"}]


async def test_call_launcher_prints_each_outcome(product: DeployedProduct, ada: Client, tmp_path: Path) -> None:
    key = await create_key(ada, "calls:write", "jobs:read")
    numbers = ["+819012345670", "+819012345671"]
    call_list = tmp_path / "list.csv"
    call_list.write_text("phone_number,greeting\n" + "".join(f"{number},Hello\n" for number in numbers))
    settings = {"NOROSHI_URL": product.url, "NOROSHI_KEY": key}
    arguments = command("call_launcher", str(call_list), "Say {greeting}.")
    async with running_program(*arguments, **settings) as program:
        lines = [await program.line() for _ in range(3)]
        assert await program.errors() == ""
    assert sorted(line.split()[0] for line in lines[:2]) == numbers
    assert lines[2].startswith("COMPLETED [{'outcome': ")


async def test_call_launcher_prints_errors_of_rows(product: DeployedProduct, ada: Client, tmp_path: Path) -> None:
    key = await create_key(ada, "calls:write", "jobs:read")
    (tmp_path / "list.csv").write_text("phone_number\n12\n")
    settings = {"NOROSHI_URL": product.url, "NOROSHI_KEY": key}
    async with running_program(*command("call_launcher", "list.csv", "Hello"), cwd=tmp_path, **settings) as program:
        assert (await program.line()).startswith("REJECTED [{'row': 2, 'message': ")


class MailServer:
    """An SMTP handler that refuses the addresses of people who are gone."""

    def __init__(self) -> None:
        self.accepted: list[str] = []

    async def handle_RCPT(self, _: SMTP, __: Session, envelope: Envelope, address: str, ___: list[str]) -> str:
        if address.startswith("gone"):
            return "550 5.1.1 No such user"
        envelope.rcpt_tos.append(address)
        self.accepted.append(address)
        return "250 OK"


@pytest.fixture
async def mail_server() -> AsyncIterator[tuple[MailServer, int]]:
    """A running SMTP server and its port."""
    handler = MailServer()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: SMTP(handler, loop=loop), "127.0.0.1", 0)
    yield handler, server.sockets[0].getsockname()[1]
    server.close()


async def test_mail_sender_skips_address_that_bounced(
    product: DeployedProduct, ada: Client, mail_server: tuple[MailServer, int]
) -> None:
    handler, port = mail_server
    key = await create_key(ada, "mail:read", "mail:ingest")
    settings = {"NOROSHI_URL": product.url, "NOROSHI_KEY": key, "SMTP": f"127.0.0.1:{port}"}
    addresses = ["gone@example.org", "ann@example.org"]

    async with running_program(*command("mail_sender", *addresses), **settings) as program:
        lines = [await program.line() for _ in range(3)]
    assert lines[:2] == ["gone@example.org: 550 5.1.1 No such user", "ann@example.org: 250 accepted"]
    assert lines[2] == "{'accepted': 2, 'rejected': []}"

    async def is_blocked() -> bool:
        found = await ada.run("query ($a: [String!]!) { addressBook(addresses: $a) { blocked } }", a=addresses[:1])
        return bool(found["addressBook"][0]["blocked"])

    await until(is_blocked)
    async with running_program(*command("mail_sender", *addresses), **settings) as program:
        assert (await program.line()).startswith("gone@example.org: not sent. ")
        assert await program.line() == "ann@example.org: 250 accepted"
    assert handler.accepted == ["ann@example.org", "ann@example.org"]

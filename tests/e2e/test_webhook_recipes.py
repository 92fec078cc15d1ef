"""The programs of docs/webhooks.md work as they are: they receive events of a running web process and a worker."""

import json
import os
import re
import shutil
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from jobs.providers.signed_webhooks import sign
from tests.client import Client, client
from tests.e2e.chat_topic import create_chat_topic
from tests.serving import WebProcess, web_process, worker_process
from tests.twins.discord import DiscordChannel
from tests.twins.slack import SlackChannel
from tests.twins.twin import running_twin
from tests.waiting import until

pytestmark = pytest.mark.anyio

PAGE = (Path(__file__).parents[2] / "docs/webhooks.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SECRET = "whsec_c2VjcmV0LW9mLXRoZS13ZWJob29r"
KEYS = "1:a2tra2tra2tra2tra2tra2tra2tra2tra2tra2tra2s="
SCOPES = ["chat:read", "feed:read", "jobs:read", "webhooks:read", "webhooks:write"]
CREATE_KEY = "mutation ($input: CreateServiceKeyInput!) { done: createServiceKey(input: $input) { secret key { id } } }"
CREATE = "mutation ($input: CreateWebhookInput!) { done: createWebhook(input: $input) { secret webhook { id } } }"
POST = "mutation ($input: PostMessageInput!) { done: postMessage(input: $input) { timestamp } }"
LAUNCH = "mutation ($input: LaunchCallJobInput!) { done: launchCallJob(input: $input) { id } }"
CONNECT = "mutation ($input: ConnectAccountInput!) { done: connectAccount(input: $input) { id } }"
SCHEDULE = "mutation ($input: SchedulePostInput!) { done: schedulePost(input: $input) { id } }"
CREATE_POST = "mutation ($input: CreatePostInput!) { createPost(input: $input) { id } }"
ALL_TYPES = ["MessagePosted", "TopicCreated", "PostArrived", "CallTaskChanged"]


def blocks(language: str) -> list[str]:
    """Returns the code blocks of the page in a language."""
    return [text for name, text in BLOCK.findall(PAGE) if name == language]


def block(language: str, beginning: str) -> str:
    """Returns the only code block with this beginning."""
    (found,) = [text for text in blocks(language) if text.startswith(beginning)]
    return found


@dataclass
class Recipes:
    """A product, an administrator, the service key of the webhooks, and a folder for the programs of the page."""

    web: WebProcess
    ada: Client
    key_id: str
    key: str
    folder: Path

    async def create(self, url: str, types: list[str], **more: Any) -> tuple[str, str]:
        """Creates a webhook. Returns its id and its secret."""
        given = {"name": "Recipe", "url": url, "serviceKeyId": self.key_id, "eventTypes": types, **more}
        created = (await self.ada.run(CREATE, input=given))["done"]
        return created["webhook"]["id"], created["secret"]

    @property
    def database(self) -> Path:
        """The SQLite file of the programs."""
        return self.folder / "rows.db"

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """Returns the rows of a query; none while the table does not exist."""
        try:
            with sqlite3.connect(self.database) as connection:
                return list(connection.execute(query))
        except sqlite3.OperationalError:
            return []

    def program(self, name: str) -> Path:
        """Writes a program of the page into the folder."""
        path = self.folder / name
        path.write_text(block("python", f"# {name}\n"))
        (self.folder / "signatures.py").write_text(block("python", "import base64"))
        return path

    @contextmanager
    def receiver(self, name: str, port: int, secret: str) -> Iterator[None]:
        """Runs a receiver of the page."""
        variables = {"DATABASE": str(self.database), "PORT": str(port), "SECRET": secret}
        with (self.folder / f"{name}.log").open("wb") as log:
            command = [sys.executable, str(self.program(name))]
            process = subprocess.Popen(command, env={**os.environ, **variables}, stdout=log, stderr=log)
        try:
            yield
        finally:
            process.terminate()
            process.wait(30)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


@pytest.fixture
async def recipes(tmp_path: Path, mongodb_uri: str, redis_url: str) -> AsyncIterator[Recipes]:
    variables = {
        "NOROSHI_CREDENTIAL_KEYS": KEYS,
        "NOROSHI_EGRESS_ALLOW": "127.0.0.0/8",
        "NOROSHI_SIMULATOR_SPEED": "1000",
        "NOROSHI_WEBHOOK_RETRY_S": "60",
    }
    async with AsyncExitStack() as stack:
        web = stack.enter_context(web_process(tmp_path / "web", mongodb_uri, redis_url, **variables))
        # Links lead to the address that the worker knows, as in an installation.
        variables["NOROSHI_PUBLIC_URL"] = web.url
        stack.enter_context(worker_process(tmp_path / "worker", mongodb_uri, redis_url, web.database, **variables))
        ada = await stack.enter_async_context(client(web.url, web.token("ada", roles=("ADMIN", "OPERATOR"))))
        created = (await ada.run(CREATE_KEY, input={"name": "Events", "scopes": SCOPES}))["done"]
        yield Recipes(web, ada, created["key"]["id"], created["secret"], tmp_path)


@asynccontextmanager
async def slack_channel() -> AsyncIterator[SlackChannel]:
    channel = SlackChannel()
    async with running_twin(channel):
        yield channel


async def test_slack_channel_follows_a_community(recipes: Recipes) -> None:
    followed, other = await create_chat_topic(recipes.ada), await create_chat_topic(recipes.ada)
    async with slack_channel() as channel:
        query = block("graphql", "mutation SlackChannel")
        variables = {"key": recipes.key_id, "community": followed.community, "address": channel.address}
        assert (await recipes.ada.run(query, **variables))["createWebhook"]["webhook"]["format"] == "SLACK"
        links = []
        for topic, text in ((other.topic, "hidden"), (followed.topic, "one"), (followed.topic, "two & three")):
            posted = (await recipes.ada.run(POST, input={"topicId": topic, "text": text}))["done"]
            links.append(f"<{recipes.web.url}/#/topic/{topic}/{posted['timestamp']}|Watch>")
        await until(lambda: len(channel.texts) >= 2)
        assert channel.texts == [f"*ada* in {links[1]}: one", f"*ada* in {links[2]}: two &amp; three"]


async def test_discord_channel_learns_of_failed_publications(recipes: Recipes) -> None:
    channel, ada = DiscordChannel(), recipes.ada
    async with running_twin(channel):
        variables = {"key": recipes.key_id, "address": channel.address}
        assert (await ada.run(block("graphql", "mutation DiscordChannel"), **variables))["createWebhook"] is not None
        post = await schedule_failing_post(ada)
        await until(lambda: len(channel.texts) >= 1)
        link = f"[“We open at 9”](<{recipes.web.url}/#/publishing/calendar/today/{post}>)"
        (text,) = channel.texts
        assert text.startswith(f"{link} of **ada** was not published to Shop (sandbox). ")


async def test_warehouse_stores_each_event_once_and_asks_for_lost_ones(recipes: Recipes) -> None:
    place, port = await create_chat_topic(recipes.ada), free_port()
    webhook_id, secret = await recipes.create(f"http://127.0.0.1:{port}/", ALL_TYPES)
    with recipes.receiver("warehouse.py", port, secret):
        for number in range(5):
            await recipes.ada.run(POST, input={"topicId": place.topic, "text": f"message {number}"})
        await recipes.ada.run(CREATE_POST, input={"text": "a post"})
        await until(lambda: len(recipes.rows("SELECT * FROM events")) == 6)
        stored = recipes.rows("SELECT id, type FROM events ORDER BY id")
        cursors = recipes.rows("SELECT stream, cursor FROM cursors")
        lose_messages(recipes)
        replay(recipes, webhook_id)
        await until(lambda: len(recipes.rows("SELECT * FROM events")) == 6)
    assert recipes.rows("SELECT id, type FROM events ORDER BY id") == stored
    assert sorted(recipes.rows("SELECT stream, cursor FROM cursors")) == sorted(cursors)


def lose_messages(recipes: Recipes) -> None:
    """Removes the last three messages, as a restored backup does, and moves the cursor of their stream back."""
    with sqlite3.connect(recipes.database) as connection:
        query = "SELECT id, json_extract(body, '$.stream') FROM events WHERE type = 'MessagePosted' ORDER BY at"
        rows = list(connection.execute(query))
        connection.executemany("DELETE FROM events WHERE id = ?", [(id_,) for id_, _ in rows[2:]])
        connection.execute("UPDATE cursors SET cursor = ? WHERE stream = ?", rows[1])


def replay(recipes: Recipes, webhook_id: str) -> None:
    """Runs the program of the page that asks for lost events."""
    variables = {
        "DATABASE": str(recipes.database),
        "KEY": recipes.key,
        "WEBHOOK": webhook_id,
        "URL": recipes.web.url,
    }
    command = [sys.executable, str(recipes.program("replay.py"))]
    subprocess.run(command, env={**os.environ, **variables}, check=True, timeout=60)


async def test_crm_learns_outcomes_of_calls(recipes: Recipes) -> None:
    port = free_port()
    with sqlite3.connect(recipes.database) as connection:
        connection.execute("CREATE TABLE contacts (phone_number TEXT, outcome TEXT, called_at TEXT, event_at TEXT)")
        numbers = [("+819012345678",), ("+819012345679",), ("+819012345680",)]
        connection.executemany("INSERT INTO contacts (phone_number) VALUES (?)", numbers)
    _, secret = await recipes.create(f"http://127.0.0.1:{port}/", ["CallTaskChanged"])
    with recipes.receiver("crm.py", port, secret):
        csv = "phone_number\n+819012345678\n+819012345679\n"
        await recipes.ada.run(LAUNCH, input={"name": "Reminders", "scenario": "Hello", "csv": csv})
        await until(lambda: len(recipes.rows("SELECT * FROM contacts WHERE outcome IS NOT NULL")) == 2)
    assert recipes.rows("SELECT outcome FROM contacts WHERE phone_number = '+819012345680'") == [(None,)]


def test_crm_ignores_older_messages_and_calls_without_outcome(tmp_path: Path) -> None:
    (tmp_path / "signatures.py").write_text(block("python", "import base64"))
    program = block("python", "# crm.py\n").replace("ThreadingHTTPServer((", "pass  # ((")
    task = {"phoneNumber": "+81", "outcome": "BUSY", "endedAt": "e1"}
    messages = [("2", "ANSWERED"), ("1", "BUSY"), ("3", None)]
    steps = [{"data": {"at": at, "task": task | {"outcome": outcome}}} for at, outcome in messages]
    database = tmp_path / "rows.db"
    with sqlite3.connect(database) as connection:
        connection.execute("CREATE TABLE contacts (phone_number TEXT, outcome TEXT, called_at TEXT, event_at TEXT)")
        connection.execute("INSERT INTO contacts VALUES ('+81', NULL, NULL, NULL)")
    (tmp_path / "crm.py").write_text(f"{program}\nfor each in {steps!r}:\n    update_contact(each)\n")
    variables = {**os.environ, "DATABASE": str(database), "PORT": "0", "SECRET": SECRET}
    subprocess.run([sys.executable, str(tmp_path / "crm.py")], env=variables, check=True, timeout=60)
    with sqlite3.connect(database) as connection:
        assert list(connection.execute("SELECT outcome, event_at FROM contacts")) == [("ANSWERED", "2")]


def signed(body: bytes, age_s: float = 0.0) -> dict[str, str]:
    headers = sign(SECRET, "msg_1", int(time.time() - age_s), body)
    return headers | {"webhook-signature": f"v1,other {headers['webhook-signature']}"}


def cases() -> list[tuple[dict[str, str], str, bool]]:
    """Returns headers, a body, and whether the message is genuine. Signatures are valid for five minutes."""
    return [
        (signed(b"{}"), "{}", True),
        (signed(b"{}"), "{ }", False),
        (signed(b"{}", age_s=400), "{}", False),
        (signed(b"{}") | {"webhook-id": "msg_2"}, "{}", False),
        ({}, "{}", False),
    ]


def test_python_example_verifies_signatures(tmp_path: Path) -> None:
    (tmp_path / "signatures.py").write_text(block("python", "import base64"))
    (tmp_path / "warehouse_signatures.py").write_text(verifier_of_warehouse())
    for module in ("signatures", "warehouse_signatures"):
        program = (
            f"import json, sys\nfrom {module} import is_genuine\n"
            "secret, cases = json.load(sys.stdin)\n"
            "print(json.dumps([is_genuine(secret, headers, body.encode()) for headers, body, _ in cases]))\n"
        )
        assert_cases_are_told_apart([sys.executable, "-c", program], tmp_path)


def verifier_of_warehouse() -> str:
    """Returns the beginning of the receiver of the warehouse, up to its function `connect`."""
    return block("python", "# warehouse.py\n").partition("def connect")[0]


def test_node_example_verifies_signatures(tmp_path: Path) -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("Node.js 20 or later is not installed: `apt-get install nodejs npm`.")
    (tmp_path / "signatures.mjs").write_text(blocks("js")[0])
    (tmp_path / "check.mjs").write_text(
        'import { readFileSync } from "node:fs";\nimport { isGenuine } from "./signatures.mjs";\n'
        "const [secret, cases] = JSON.parse(readFileSync(0));\n"
        "console.log(JSON.stringify(cases.map(([headers, body]) => isGenuine(secret, headers, Buffer.from(body)))));\n"
    )
    assert_cases_are_told_apart([node, "check.mjs"], tmp_path)


def assert_cases_are_told_apart(command: list[str], folder: Path) -> None:
    """Runs a program that reads the secret and the cases, and prints which of the messages are genuine."""
    given = cases()
    text = json.dumps([SECRET, given])
    completed = subprocess.run(command, cwd=folder, input=text, capture_output=True, text=True, timeout=60)
    assert completed.returncode == 0, completed.stderr
    assert json.loads(completed.stdout) == [is_genuine for _, _, is_genuine in given]


async def schedule_failing_post(ada: Client) -> str:
    """Schedules a post, due in a second, whose publication to an account fails. Returns its id."""
    shop = {"network": "SANDBOX", "name": "Shop", "credentials": "fail"}
    account = (await ada.run(CONNECT, input=shop))["done"]["id"]
    due = (datetime.now(UTC) + timedelta(seconds=1)).isoformat()
    new = {"text": "We open at 9", "toHomeFeed": False, "toAccountIds": [account], "dueAt": due}
    return str((await ada.run(SCHEDULE, input=new))["done"]["id"])


async def test_examples_of_bodies_have_the_fields_of_messages(recipes: Recipes) -> None:
    """Compares the JSON of the page with messages that a webhook sends."""
    place, port = await create_chat_topic(recipes.ada), free_port()
    _, secret = await recipes.create(f"http://127.0.0.1:{port}/", [*ALL_TYPES, "PublicationReported"])
    with recipes.receiver("warehouse.py", port, secret):
        await recipes.ada.run(POST, input={"topicId": place.topic, "text": "High water"})
        await recipes.ada.run(CREATE_POST, input={"text": "Low tide"})
        csv = "phone_number,name\n+819012345678,Aya\n"
        await recipes.ada.run(LAUNCH, input={"name": "Reminders", "scenario": "Hello", "csv": csv})
        await schedule_failing_post(recipes.ada)
        types = {"MessagePosted", "PostArrived", "CallTaskChanged", "PublicationReported"}
        await until(lambda: types <= {name for (name,) in recipes.rows("SELECT type FROM events")})
    sent = {name: json.loads(body) for name, body in recipes.rows("SELECT type, body FROM events")}
    examples = [json.loads(text) for text in blocks("json")]
    assert {each["type"]: shape(each) for each in examples} == {name: shape(sent[name]) for name in types}


def shape(value: Any) -> Any:
    """Returns a JSON object with its fields only. Lists and nulls have no shape, since examples may be empty."""
    return {name: shape(each) for name, each in value.items()} if isinstance(value, dict) else None

"""Runs webhooks with real processes: three mongods, a Redis, a web process, and workers that may be killed.

The test of faults and the benchmark of webhooks use it.
"""

import asyncio
import itertools
import socket
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2

from server.auth.tokens import mint
from server.embedded import Valkey, find_valkey
from storage.mongo import Mongo, connect
from tests.client import Client, GraphQLFailed
from tests.e2e.chat_topic import POSTED_EVENTS, ChatTopic, join, post, subscribed
from tests.e2e.publishing_load import ENCODED_CREDENTIAL_KEYS, worker_variables
from tests.e2e.webhook_worker import run_worker
from tests.preloaded import PreloadedProcess
from tests.product import environment
from tests.replica_set import TEST_COMMANDS, ReplicaSet, replica_set
from tests.serving import ServerProcess, WebProcess, serving_process, web_process
from tests.twins.event_receiver import EventReceiver
from tests.waiting import poll_until_true

ORG = "acme"
ADMIN_EMAIL = "ada@example.org"
LOCK = {"_id": "webhook_discovery", "unlock_key": {"$ne": None}}
CREATE_KEY = 'mutation { createServiceKey(input: { name: "Events", scopes: ["chat:read"] }) { key { id } } }'
CREATE_COMMUNITY = 'mutation { createCommunity(input: { name: "Hills" }) { id } }'
CREATE_TOPIC = 'mutation ($id: ID!) { createTopic(input: { communityId: $id, title: "Watch" }) { id } }'
CREATE_WEBHOOK = """
mutation ($input: CreateWebhookInput!) { createWebhook(input: $input) { secret webhook { id } } }
"""
DELETE_WEBHOOK = "mutation ($id: ID!) { deleteWebhook(webhookId: $id) }"
LIST_WEBHOOKS = "{ webhooks { id url disabledAt disabledReason failingSince lastError } }"
POST_AGAIN_AFTER_S = 0.05

StartWorker = Callable[[Path, dict[str, str]], AbstractContextManager[ServerProcess]]


@contextmanager
def ordinary_worker(folder: Path, variables: dict[str, str]) -> Iterator[ServerProcess]:
    """Runs a worker process as operators do. A claim of a killed worker lasts up to a minute."""
    with serving_process(folder, "worker", variables) as worker:
        assert worker.wait_for_log("worker_ready"), worker.log_text
        yield worker


@contextmanager
def short_lease_worker(folder: Path, variables: dict[str, str]) -> Iterator[ServerProcess]:
    """Runs a worker process whose leases last three seconds."""
    folder.mkdir(parents=True)
    log_file = folder / "log"
    log_file.touch()
    worker = ServerProcess(PreloadedProcess(run_worker, environment(**variables), log_file), log_file)
    try:
        assert worker.wait_for_log("worker_ready"), worker.log_text
        yield worker
    finally:
        worker.terminate()


@dataclass
class WebhookDeployment:
    """The running processes, and API clients of an ADMIN and of the founder of the topics."""

    members: ReplicaSet
    web: WebProcess
    mongo: Mongo
    folder: Path
    http: httpx2.AsyncClient
    start: StartWorker
    variables: dict[str, str]
    stack: ExitStack
    workers: list[ServerProcess] = field(default_factory=list)
    key: str = ""
    community: str = ""
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    @property
    def ada(self) -> Client:
        """An ADMIN with a mail address."""
        token = mint(self.web.secret, user_id="ada", organization_id=ORG, roles=["ADMIN"], email=ADMIN_EMAIL)
        return Client(self.web.url, token, self.http)

    def person(self, name: str) -> Client:
        """Returns a client of a member."""
        return Client(self.web.url, self.web.token(name, ORG), self.http)

    async def prepare(self) -> None:
        """Creates the service key as which webhooks read, and the community of the topics."""
        self.key = (await self.ada.run(CREATE_KEY))["createServiceKey"]["key"]["id"]
        self.community = (await self.person("ann").run(CREATE_COMMUNITY))["createCommunity"]["id"]

    async def create_topic(self) -> ChatTopic:
        """Creates a topic of the community."""
        created = await self.person("ann").run(CREATE_TOPIC, id=self.community)
        return ChatTopic(self.community, created["createTopic"]["id"])

    async def create_webhook(self, receiver: EventReceiver, **more: Any) -> str:
        """Creates a webhook of new messages, and returns its id. The receiver verifies its signatures."""
        given = {"name": "Warehouse", "url": receiver.address, "eventTypes": ["MessagePosted"], **more}
        created = (await self.ada.run(CREATE_WEBHOOK, input={"serviceKeyId": self.key, **given}))["createWebhook"]
        receiver.secret = created["secret"]
        return str(created["webhook"]["id"])

    async def delete_webhook(self, id_: str) -> None:
        """Deletes a webhook."""
        await self.ada.run(DELETE_WEBHOOK, id=id_)

    async def webhooks(self) -> list[dict[str, Any]]:
        """Returns the webhooks as administrators see them."""
        webhooks: list[dict[str, Any]] = (await self.ada.run(LIST_WEBHOOKS))["webhooks"]
        return webhooks

    async def webhook(self, id_: str) -> dict[str, Any]:
        """Returns one of the webhooks."""
        return next(each for each in await self.webhooks() if each["id"] == id_)

    async def start_worker(self) -> None:
        """Starts one more worker without blocking receivers, which run in this process."""
        folder = self.folder / f"worker-{next(self._numbers)}"
        self.workers.append(await asyncio.to_thread(self.stack.enter_context, self.start(folder, self.variables)))

    async def kill_worker(self, worker: ServerProcess) -> None:
        """Kills a worker with SIGKILL, and starts another one."""
        self.workers.remove(worker)
        worker.process.kill()
        await asyncio.to_thread(worker.process.wait)
        await self.start_worker()

    async def searching_worker(self) -> ServerProcess:
        """Waits until one of the workers searches the log, and returns it."""
        return await poll_until_true(self._searching_worker) or self.workers[0]

    async def _searching_worker(self) -> ServerProcess | None:
        lock = await self.mongo["process_locks"].find_one(LOCK)
        return next((each for each in self.workers if lock and lock["holder"].endswith(f"/{each.process.pid}")), None)


@asynccontextmanager
async def webhook_deployment(folder: Path, start: StartWorker, retry_s: float) -> AsyncIterator[WebhookDeployment]:
    """Starts all processes except workers."""
    valkey = Valkey(folder / "redis", find_valkey())
    await valkey.start()
    limits = httpx2.Limits(max_connections=None)
    try:
        async with replica_set(folder / "members", TEST_COMMANDS) as members, httpx2.AsyncClient(
            timeout=60, limits=limits
        ) as http:  # fmt: skip
            with ExitStack() as stack:
                keys: dict[str, Any] = {
                    "NOROSHI_CREDENTIAL_KEYS": ENCODED_CREDENTIAL_KEYS,
                    "NOROSHI_EGRESS_ALLOW": "127.0.0.0/8",
                }
                starting = web_process(folder / "web", members.uri, valkey.url, **keys)
                web = await asyncio.to_thread(stack.enter_context, starting)
                variables = worker_variables(members.uri, valkey.url, web.database)
                variables |= {"NOROSHI_WEBHOOK_RETRY_S": str(retry_s), "NOROSHI_DATA_DIR": str(folder / "data")}
                mongo = connect(members.uri, web.database)
                deployment = WebhookDeployment(members, web, mongo, folder, http, start, variables, stack)
                try:
                    await deployment.prepare()
                    yield deployment
                finally:
                    await mongo.close()
                    await asyncio.to_thread(stack.pop_all().close)
    finally:
        await valkey.stop(0)


@contextmanager
def closed_port() -> Iterator[str]:
    """Yields an address at which nobody listens, and which no other process can take."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{unused.getsockname()[1]}"


@dataclass
class TopicWriter:
    """A member who posts one message after another to a topic. Texts are those of `benchmarks.fanout_posting`."""

    chat: ChatTopic
    author: Client
    timestamps: list[int] = field(default_factory=list)
    """Timestamps of the acknowledged messages."""

    async def post(self) -> None:
        """Posts the next message, and repeats it until it is acknowledged."""
        number = len(self.timestamps) + 1
        text = f"{number} {time.monotonic():.6f} .."
        while True:
            try:
                posted = await post(self.chat, self.author, text, f"{self.chat.topic}-{number}")
            except GraphQLFailed as failed:
                if set(failed.codes) != {"UNAVAILABLE"}:
                    raise
                await asyncio.sleep(POST_AGAIN_AFTER_S)
            else:
                self.timestamps.append(numeric(posted["timestamp"]))
                return


async def create_writers(deployment: WebhookDeployment, count: int) -> list[TopicWriter]:
    """Creates topics with a writer each."""
    writers = [TopicWriter(await deployment.create_topic(), deployment.person(f"user{n}")) for n in range(count)]
    for writer in writers:
        await join(writer.chat, writer.author)
    return writers


@asynccontextmanager
async def reading(chat: ChatTopic, person: Client) -> AsyncIterator[list[int]]:
    """Subscribes to a topic during the block. Yields the timestamps of the messages that have arrived so far."""
    received: list[int] = []
    async with subscribed(chat, person, document=POSTED_EVENTS) as (subscription, _):

        async def read() -> None:
            while True:
                received.append(numeric((await subscription.next_event())["message"]["timestamp"]))

        task = asyncio.create_task(read())
        try:
            yield received
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task


def numeric(timestamp: str) -> int:
    """Returns a timestamp as a number, so that later ones are greater."""
    return int(timestamp.replace(".", ""))


def arrivals(receiver: EventReceiver) -> Mapping[str, list[int]]:
    """Returns the timestamps of the messages that a receiver accepted, by topic, in the order of first arrival."""
    found: defaultdict[str, list[int]] = defaultdict(list)
    for body in receiver.events("MessagePosted"):
        found[body["topic"]["id"]].append(numeric(body["data"]["message"]["timestamp"]))
    return found


def repeats(receiver: EventReceiver) -> int:
    """Returns how many of the accepted messages had arrived before."""
    return len(receiver.messages) - len(receiver.events())


def broken_promises(receiver: EventReceiver, posted: Mapping[str, Sequence[int]]) -> list[str]:
    """Returns what is wrong with the messages that a receiver accepted. `posted` has those that it must have."""
    found, faults = arrivals(receiver), []
    for topic, timestamps in posted.items():
        if missing := len(set(timestamps) - set(found.get(topic, ()))):
            faults.append(f"{topic}: {missing} of {len(timestamps)} messages are lost")
        if (order := found.get(topic, [])) != sorted(order):
            faults.append(f"{topic}: messages arrived out of order")
    if extra := found.keys() - posted.keys():
        faults.append(f"messages of other topics arrived: {extra}")
    return faults + _broken_ids(receiver)


def _broken_ids(receiver: EventReceiver) -> list[str]:
    """Returns the ids of two messages, and the messages with two ids."""
    by_id, by_event = defaultdict(set), defaultdict(set)
    for id_, body in receiver.messages:
        event = body["topic"]["id"], body["data"]["message"]["timestamp"]
        by_id[id_].add(event)
        by_event[event].add(id_)
    shared = [f"{id_} has several events" for id_, events in by_id.items() if len(events) > 1]
    return shared + [f"{event} has several ids" for event, ids in by_event.items() if len(ids) > 1]

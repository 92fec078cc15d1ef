"""An upgrade from the last release under load: `noroshi migrate`, then one process after the other is replaced.

Clients notice only that connections end. The documentation tells them to reconnect then. Nothing is lost, repeated or
published twice. Pages of processes of the last release may lack the newest messages of new processes for 2 s.
"""

import asyncio
import secrets
import socket
import time
from bisect import bisect_right
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx2
import pytest

from server.auth.tokens import mint
from tests.databases import fresh_database
from tests.e2e.chat_topic import ChatTopic, all_messages
from tests.e2e.last_release import last_release
from tests.e2e.reconnecting_client import ReceivedEvent, ReconnectingClient
from tests.product import eventually
from tests.serving import ServerProcess, noroshi_process, server_variables
from tests.waiting import until

pytestmark = [pytest.mark.anyio, pytest.mark.soak]

START_DEADLINE_S = 300.0

POLL_S = 0.5
"""How often the test reads large pages while it waits. More often would exceed a member's budget."""

PAGE_LEASE_S = 2.0
"""How old a page of the last release may be. Its processes read pages from Redis, where new processes write none."""

TOPIC_EVENTS = """subscription ($topic: ID!, $since: Cursor) { topicEvents(topicId: $topic, since: $since) {
    __typename ... on Event { cursor } ... on StreamReady { resumed } ... on MessagePosted { message { text } } } }"""
HOME_EVENTS = """subscription ($since: Cursor) { homeFeedEvents(since: $since) {
    __typename ... on Event { cursor } ... on StreamReady { resumed } ... on PostArrived { post { text } } } }"""
POST_MESSAGE = "mutation ($input: PostMessageInput!) { postMessage(input: $input) { id } }"
CREATE_POST = "mutation ($input: CreatePostInput!) { createPost(input: $input) { id } }"
SCHEDULE = "mutation ($input: SchedulePostInput!) { schedulePost(input: $input) { id } }"
RECORD = "mutation ($events: [DeliveryEventInput!]!) { recordDeliveries(events: $events) { accepted duplicates } }"
MESSAGES = 'query ($topic: ID!) { messages(topicId: $topic, latest: "now", limit: 999) { items { text } } }'
HOME_FEED = '{ homeFeed(latest: "now", limit: 800) { items { text } } }'
STATES = '{ scheduledPosts(latest: "now", limit: 999) { items { publications { state } } } }'
RATES = "query ($from: DateTime!, $to: DateTime!) { bounceRates(from: $from, to: $to) { sent bounced } }"


class UpgradedDeployment:
    """Two web and two worker processes. Each is stopped and started on its own."""

    def __init__(self, folder: Path, variables: dict[str, str]) -> None:
        self.urls = [f"http://127.0.0.1:{port}" for port in _free_ports(2)]
        self._folder, self.variables = folder, variables
        self._running: dict[str, ExitStack] = {}

    def start(self, name: str, release: dict[str, str]) -> None:
        """Starts the process "web 0", "web 1", "worker 0" or "worker 1" in its release, and waits until it serves."""
        kind, number = name.split()
        url = self.urls[int(number)]
        command = ["web", f"--port={url.rpartition(':')[2]}"] if kind == "web" else ["worker"]
        stack = self._running[name] = ExitStack()
        log_folder = self._folder / f"{name} {len(release)}"
        process = stack.enter_context(noroshi_process(log_folder, command, self.variables | release))
        is_serving = (lambda: _is_ready(url)) if kind == "web" else (lambda: "worker_ready" in process.log_text)
        assert eventually(lambda: is_serving() or process.process.poll() is not None, START_DEADLINE_S), (
            process.log_text
        )
        assert process.process.poll() is None, process.log_text

    def stop(self, name: str) -> None:
        """Stops the process with SIGTERM, and waits for its end."""
        self._running.pop(name).close()

    def stop_all(self) -> None:
        for name in list(self._running):
            self.stop(name)

    def run(self, *command: str, release: dict[str, str]) -> ServerProcess:
        """Runs another command, which must succeed, and waits for its end."""
        with noroshi_process(self._folder / command[0], command, self.variables | release) as process:
            assert process.process.wait(300) == 0, process.log_text
        return process


def _free_ports(count: int) -> list[int]:
    with ExitStack() as stack:
        listeners = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return [listener.getsockname()[1] for listener in listeners]


def _is_ready(url: str) -> bool:
    try:
        return httpx2.get(f"{url}/readyz", timeout=5).status_code == 200
    except httpx2.HTTPError:
        return False


@dataclass
class UpgradeLoad:
    """The actions of clients during the upgrade, and the events that they received. Texts contain their numbers."""

    ann: ReconnectingClient
    bob: ReconnectingClient
    mta: ReconnectingClient
    chat: ChatTopic
    has_ended: asyncio.Event = field(default_factory=asyncio.Event)
    counts: Counter[str] = field(default_factory=Counter)
    message_times: list[float] = field(default_factory=list)
    """When the call that posted each message returned."""
    topic_events: list[ReceivedEvent] = field(default_factory=list)
    home_events: list[ReceivedEvent] = field(default_factory=list)

    @property
    def clients(self) -> tuple[ReconnectingClient, ...]:
        return self.ann, self.bob, self.mta

    async def repeat(self, kind: str, every_s: float, action: Callable[[str], Awaitable[object]]) -> None:
        """Calls `action` with a new text, pauses for `every_s` seconds, and repeats both until the load has ended."""
        while not self.has_ended.is_set():
            await action(f"{kind} {self.counts[kind]}")
            self.counts[kind] += 1
            await asyncio.sleep(every_s)

    def texts(self, kind: str) -> list[str]:
        """Returns the texts of all calls of this kind, in order."""
        return [f"{kind} {number}" for number in range(self.counts[kind])]

    async def post_message(self, text: str) -> None:
        await self.ann.run(POST_MESSAGE, input={"topicId": self.chat.topic, "text": text, "idempotencyKey": text})
        self.message_times.append(time.monotonic())

    async def create_post(self, text: str) -> None:
        await self.ann.run(CREATE_POST, input={"text": text, "idempotencyKey": text})

    async def schedule(self, text: str) -> None:
        due_at = (datetime.now(UTC) + timedelta(seconds=4)).isoformat(timespec="milliseconds")
        target = {"toTopicIds": [self.chat.topic], "dueAt": due_at, "timeZone": "UTC"}
        await self.ann.run(SCHEDULE, input={"text": text, "idempotencyKey": text, **target})

    async def record_delivery(self, text: str) -> None:
        event = {
            "eventId": text,
            "address": f"{text.replace(' ', '-')}@example.org",
            "smtpCode": 550,
            "enhancedStatus": "5.1.1",
        }
        await self.mta.run(RECORD, events=[event | {"at": datetime.now(UTC).isoformat()}])

    async def read_pages(self, text: str) -> None:
        posted = bisect_right(self.message_times, time.monotonic() - PAGE_LEASE_S)
        page = await self.bob.run(MESSAGES, topic=self.chat.topic)
        shown = [item["text"] for item in page["messages"]["items"]]
        if posted and f"message {posted - 1}" not in shown:
            self.bob.errors.append(f"A page lacks message {posted - 1}, which was posted 2 s before.")


@asynccontextmanager
async def running_load(load: UpgradeLoad) -> AsyncIterator[None]:
    """Runs all clients during the block. Raises their errors."""
    topic_ready, home_ready = asyncio.Event(), asyncio.Event()
    async with asyncio.TaskGroup() as group:
        topic = load.bob.follow(TOPIC_EVENTS, load.topic_events, topic_ready, topic=load.chat.topic)
        home = load.bob.follow(HOME_EVENTS, load.home_events, home_ready)
        followers = [group.create_task(topic), group.create_task(home)]
        await asyncio.gather(topic_ready.wait(), home_ready.wait())
        work = [
            load.repeat("message", 0.1, load.post_message),
            load.repeat("post", 0.3, load.create_post),
            load.repeat("scheduled", 0.3, load.schedule),
            load.repeat("delivery", 0.2, load.record_delivery),
            load.repeat("page", 0.3, load.read_pages),
        ]
        tasks = [group.create_task(each) for each in work]
        try:
            yield
            load.has_ended.set()
            await asyncio.gather(*tasks)
            await until(lambda: _is_complete(load), interval_s=POLL_S)
        finally:
            for task in (*followers, *tasks):
                task.cancel()


async def _is_complete(load: UpgradeLoad) -> bool:
    """Returns whether every scheduled post has its outcome, and every event has arrived."""
    posts = (await load.ann.run(STATES))["scheduledPosts"]["items"]
    states = Counter(each["state"] for post in posts for each in post["publications"])
    arrived = len(load.topic_events) >= load.counts["message"] + load.counts["scheduled"]
    return set(states) <= {"PUBLISHED", "FAILED"} and arrived and len(load.home_events) >= load.counts["post"]


@pytest.fixture
def deployment(tmp_path: Path, mongodb_uri: str, redis_url: str) -> Iterator[UpgradedDeployment]:
    with fresh_database(mongodb_uri, redis_url) as name:
        secret = {"NOROSHI_AUTH_SECRET": secrets.token_hex(32)}
        deployment = UpgradedDeployment(tmp_path, server_variables(mongodb_uri, redis_url, name) | secret)
        yield deployment
        deployment.stop_all()


@asynccontextmanager
async def open_load(urls: list[str], secret: str) -> AsyncIterator[UpgradeLoad]:
    """Signs in a mail server and two members of a topic. One member follows the other."""
    async with AsyncExitStack() as stack:
        roles = {"ann": ("MEMBER", "OPERATOR"), "bob": ("MEMBER",), "mta": ("SERVICE",)}
        clients = {}
        for name, user_roles in roles.items():
            http = await stack.enter_async_context(httpx2.AsyncClient(timeout=60))
            token = mint(secret, user_id=name, organization_id="acme", roles=user_roles)
            clients[name] = ReconnectingClient(urls, token, http)
        ann, bob = clients["ann"], clients["bob"]
        created = await ann.run('mutation { createCommunity(input: {name: "Hills"}) { id } }')
        community = created["createCommunity"]["id"]
        create = 'mutation ($id: ID!) { createTopic(input: {communityId: $id, title: "Watch"}) { id } }'
        topic = (await ann.run(create, id=community))["createTopic"]["id"]
        await bob.run("mutation ($id: ID!) { joinCommunity(communityId: $id) { id } }", id=community)
        await bob.run('mutation { follow(userId: "ann") { id } }')
        yield UpgradeLoad(*clients.values(), ChatTopic(community, topic))


async def test_rolling_upgrade_loses_and_repeats_nothing(deployment: UpgradedDeployment, tmp_path: Path) -> None:
    old, new = last_release(tmp_path / "last release"), dict[str, str]()
    names = ("web 0", "worker 0", "web 1", "worker 1")
    for name in names:
        await asyncio.to_thread(deployment.start, name, old)
    async with open_load(deployment.urls, deployment.variables["NOROSHI_AUTH_SECRET"]) as load:
        async with running_load(load):
            await asyncio.to_thread(deployment.run, "migrate", release=new)
            for name in names:
                await asyncio.to_thread(deployment.stop, name)
                await asyncio.to_thread(deployment.start, name, new)
        await assert_nothing_lost_or_repeated(load)


async def assert_nothing_lost_or_repeated(load: UpgradeLoad) -> None:
    """Compares the actions of the clients with the events that they received and the pages that they read."""
    assert [client.errors for client in load.clients] == [[], [], []]
    messages, scheduled, posts = (load.texts(kind) for kind in ("message", "scheduled", "post"))
    assert min(len(messages), len(scheduled), len(posts), load.counts["delivery"]) > 5
    received = [event["message"]["text"] for event in load.topic_events]
    assert [text for text in received if text.startswith("message")] == messages
    assert sorted(text for text in received if text.startswith("scheduled")) == sorted(scheduled)
    assert sorted(event["post"]["text"] for event in load.home_events) == sorted(posts)
    page = await all_messages(load.chat, load.bob, "text")
    assert sorted(item["text"] for item in page) == sorted(messages + scheduled)
    home = (await load.bob.run(HOME_FEED))["homeFeed"]["items"]
    assert [item["text"] for item in reversed(home)] == posts
    await until(lambda: is_counted_once(load), interval_s=POLL_S)


async def is_counted_once(load: UpgradeLoad) -> bool:
    """Returns whether each delivery event is counted once."""
    today = datetime.now(UTC)
    days = {"from": (today - timedelta(days=1)).isoformat(), "to": (today + timedelta(days=1)).isoformat()}
    rates: list[Any] = (await load.ann.run(RATES, **days))["bounceRates"]
    sent, bounced = (sum(day[name] for day in rates) for name in ("sent", "bounced"))
    assert max(sent, bounced) <= load.counts["delivery"]
    return bool(sent == bounced == load.counts["delivery"])

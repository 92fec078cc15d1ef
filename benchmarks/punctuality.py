"""Lateness of publications that are due at the same time, to ten topics and to a webhook on loopback.

One worker publishes. Then the benchmark times a sweep while few posts wait, and while many posts wait.
"""

import asyncio
import random
import socket
import statistics
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from ipaddress import ip_network
from typing import Annotated, ClassVar

import httpx2
import orjson
import typer
import uvloop
from httptools import HttpRequestParser

from benchmarks.servers import database_servers
from benchmarks.tables import numbers, percentile, print_table
from jobs.providers.egress import Egress
from jobs.providers.social.registry import all_networks
from jobs.publishing.publisher import PostPublisher
from server.worker import tune_interpreter
from storage.mongo import due_filter
from storage.publishing.networks import Network
from storage.publishing.records import ScheduledPost, Target
from storage.publishing.sandbox import SandboxStore
from storage.stores import Stores, open_stores
from tests.databases import CREDENTIAL_KEYS
from tests.preloaded import PreloadedProcess
from tests.storage.publishing.scenario import PublishingScenario, account_target, create_publishing_scenario
from tests.twins.webhook import WebhookTwin

PHASE_S = 1.0
"""Maximum length of the random part of the lead time, so that due times fall anywhere in a polling interval."""

SCHEDULED_A_SECOND = 150
SCHEDULED_AT_ONCE = 100
SWEEP_INTERVAL_S = 1.0
INSERTED_AT_ONCE = 10_000
TOPICS = 10
SWEEPS = 20

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


class Receiver(asyncio.Protocol):
    """A connection of a minimal receiver of webhooks. A request has arrived when it is complete.

    /ledger returns the id and the time of arrival of each request since the last call of /ledger. No signatures are
    checked, so that the benchmark measures the sender.
    """

    received: ClassVar[list[tuple[str, float]]] = []
    """Webhook id and time of arrival of each request."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        self._parser = HttpRequestParser(self)
        self._url, self._id = b"", ""

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_url(self, url: bytes) -> None:
        self._url = url

    def on_header(self, name: bytes, value: bytes) -> None:
        if name.lower() == b"webhook-id":
            self._id = value.decode()

    def on_message_complete(self) -> None:
        if self._url == b"/ledger":
            self._answer(orjson.dumps(self.received))
            self.received.clear()
            return
        self.received.append((self._id, time.time()))
        self._answer(orjson.dumps({"id": self._id}))

    def _answer(self, body: bytes) -> None:
        head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body)
        self._transport.write(head + body)  # type: ignore[attr-defined]


def receive(listener: socket.socket) -> None:
    """Receives webhooks until the process is ended."""

    async def serve() -> None:
        server = await asyncio.get_running_loop().create_server(Receiver, sock=listener, backlog=4096)
        await server.serve_forever()

    uvloop.run(serve())


@contextmanager
def running_receiver() -> Iterator[str]:
    """Runs a receiver of webhooks in a separate process. Yields its URL."""
    with socket.create_server(("127.0.0.1", 0), backlog=4096) as listener:
        process = PreloadedProcess(receive, listener)
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            process.kill()
            process.wait()


@dataclass(frozen=True)
class PublishingWorker:
    """A publisher in this process, its scenarios with a topic each, and the URL of the receiver.

    Posts are due `lead_time_s` after the last one was scheduled, or a little later.
    """

    publisher: PostPublisher
    scenarios: Sequence[PublishingScenario]
    url: str
    lead_time_s: float

    @property
    def stores(self) -> Stores:
        return self.scenarios[0].stores

    async def measure_topics(self, count: int) -> list[float]:
        """Returns milliseconds from the due time to publishedAt of each message, by the database's clock."""
        return await self._lateness(await self._publish([scenario.topic for scenario in self.scenarios], count))

    async def measure_webhook(self, count: int) -> tuple[list[float], list[float]]:
        """Returns milliseconds from the due time to the start of the call, and to its receipt."""
        account = await self.scenarios[0].connect_account(Network.WEBHOOK, WebhookTwin.secret, f"{self.url}/hook")
        due_at = await self._publish([account_target(account)], count)
        async with httpx2.AsyncClient() as http:
            ledger = (await http.get(f"{self.url}/ledger")).json()
        assert len({id_ for id_, _ in ledger}) == len(ledger) == count, f"{len(ledger)} of {count} were received."
        return await self._lateness(due_at), [(at - due_at.timestamp()) * 1000 for _, at in ledger]

    async def _publish(self, targets: Sequence[Target], count: int) -> datetime:
        """Schedules `count` posts for the same due time, and waits until they are published. Returns the due time."""
        lead_time_s = self.lead_time_s + count / SCHEDULED_A_SECOND + random.uniform(0, PHASE_S)
        due_at = await self.scenarios[0].now() + timedelta(seconds=lead_time_s)
        due_at = due_at.replace(microsecond=due_at.microsecond // 1000 * 1000)

        async def schedule(number: int) -> ScheduledPost:
            target = targets[number % len(targets)]
            return await self.scenarios[0].schedule(target, due_at=due_at, text=f"{due_at:%H%M%S%f} {number}")

        for first in range(0, count, SCHEDULED_AT_ONCE):
            await asyncio.gather(*map(schedule, range(first, min(first + SCHEDULED_AT_ONCE, count))))
        await self._sweep_until_published(due_at)
        return due_at

    async def _sweep_until_published(self, due_at: datetime) -> None:
        """Sweeps once a second, as a worker does, until all posts with this due time are published."""
        unpublished = {"due": due_at, "state": {"$in": ["SCHEDULED", "PUBLISHING", "UNKNOWN"]}}
        while await self.stores.mongo["publications"].count_documents(unpublished):
            await self.publisher.sweep()
            await asyncio.sleep(SWEEP_INTERVAL_S)
        await self.publisher.wait_until_idle()

    async def _lateness(self, due_at: datetime) -> list[float]:
        """Returns milliseconds from the due time to publishedAt, by the database's clock."""
        published = {"due": due_at, "state": "PUBLISHED"}
        rows = self.stores.mongo["publications"].find(published, {"published_at": 1})
        return [(row["published_at"] - due_at).total_seconds() * 1000 async for row in rows]


@asynccontextmanager
async def publishing_worker(stores: Stores, lead_time_s: float) -> AsyncIterator[PublishingWorker]:
    """Runs a receiver and a publisher of an organization with ten topics. Tunes this process like a worker."""
    first = await create_publishing_scenario(stores)
    scenarios = [first]
    for number in range(1, TOPICS):
        topic = await stores.topics.create(first.topic_scenario.community, "ann", f"Beacons {number}", None)
        scenarios.append(replace(first, topic_scenario=replace(first.topic_scenario, topic=topic)))
    egress = Egress((ip_network("127.0.0.0/8"),))
    publisher = PostPublisher(stores, all_networks(egress, SandboxStore(stores.mongo)))
    with running_receiver() as url:
        tune_interpreter()
        yield PublishingWorker(publisher, scenarios, url, lead_time_s)
        await publisher.close()
        await egress.aclose()


async def measure_lateness(worker: PublishingWorker, count: int, runs: int) -> list[list[str]]:
    """Returns the rows of one number of posts that are due at the same time."""
    calls = [await worker.measure_webhook(count) for _ in range(runs)]
    figures = {
        "topics": [each for _ in range(runs) for each in await worker.measure_topics(count)],
        "webhook: call begun": [each for starts, _ in calls for each in starts],
        "webhook: received": [each for _, arrivals in calls for each in arrivals],
    }
    for target, lateness_ms in figures.items():
        assert len(lateness_ms) == count * runs, f"{target}: {len(lateness_ms)} of {count * runs} were published."
    return [
        [
            *(str(count), target, *(f"{percentile(lateness_ms, percent):.0f}" for percent in (50, 99, 100))),
            str(sum(each < 0 for each in lateness_ms)),
        ]
        for target, lateness_ms in figures.items()
    ]


async def measure_sweep(stores: Stores, waiting: int) -> list[str]:
    """Returns the row of a sweep while `waiting` posts wait: its median duration, and the index entries it examines."""
    later, publications = datetime.now(UTC) + timedelta(days=1), stores.mongo["publications"]
    existing = await publications.count_documents({"state": "WAITING"})
    for first in range(existing, waiting, INSERTED_AT_ONCE):
        new = range(first, min(first + INSERTED_AT_ONCE, waiting))
        rows = [{"_id": f"w{n}", "state": "WAITING", "wake_at": later + timedelta(milliseconds=n)} for n in new]
        await publications.insert_many(rows, ordered=False)
    durations_ms = []
    for _ in range(SWEEPS):
        began_s = time.perf_counter()
        assert await stores.claims.claim(500) == []
        durations_ms.append((time.perf_counter() - began_s) * 1000)
    command = {"find": "publications", "filter": due_filter("wake_at"), "sort": {"wake_at": 1}, "limit": 500}
    explained = await stores.mongo.database.command({"explain": command, "verbosity": "executionStats"})
    examined = explained["executionStats"]["totalKeysExamined"]
    return [f"{waiting:,}", f"{statistics.median(durations_ms):.1f}", str(examined)]


async def measure(counts: Sequence[int], waiting: Sequence[int], runs: int, lead_time_s: float) -> None:
    """Measures lateness for each count of posts, and sweeps for each number of waiting posts. Prints both tables."""
    async with (
        database_servers() as servers,
        open_stores(
            servers.mongodb_uri, servers.redis_url, servers.database, credential_keys=CREDENTIAL_KEYS
        ) as stores,
    ):
        async with publishing_worker(stores, lead_time_s) as worker:
            rows = [row for count in counts for row in await measure_lateness(worker, count, runs)]
        sweeps = [await measure_sweep(stores, number) for number in waiting]
    print_table("Lateness", ["due at once", "target", "p50 ms", "p99 ms", "max ms", "early"], rows)
    print_table("Sweeps without a due post", ["waiting", "median ms", "index entries examined"], sweeps)


@app.command()
def main(
    posts: Annotated[str, typer.Option(help="Numbers of posts due at the same time, by commas.")] = "1,100,1000",
    waiting: Annotated[str, typer.Option(help="Numbers of posts that wait while sweeps are timed.")] = "1000,1000000",
    runs: Annotated[int, typer.Option(min=1, help="Runs of each number of posts.")] = 5,
    lead_time_s: Annotated[float, typer.Option("--lead-time", help="Seconds from scheduling to the due time.")] = 1.5,
) -> None:
    """Measures lateness and sweeps, and prints two tables."""
    uvloop.run(measure(numbers(posts), numbers(waiting), runs, lead_time_s))


if __name__ == "__main__":
    app()

"""Lateness of publications that are due at the same time, compared with arq's defer_until and a cron job each minute.

One worker publishes to ten topics and to a webhook on loopback. arq runs the same number of empty jobs at one time,
with the poll delay of the product's workers. A cron job starts at second 0 of each minute, so its lateness is computed,
not measured. Then the benchmark times a sweep while few posts wait, and while many posts wait.
"""

import asyncio
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from ipaddress import ip_network
from pathlib import Path
from typing import Annotated, Any

import httpx2
import typer
import uvloop
from arq.connections import RedisSettings, create_pool
from arq.worker import Worker, func
from rich.console import Console
from rich.table import Table

from jobs.providers.egress import Egress
from jobs.providers.social.registry import all_networks
from jobs.publishing.publisher import PostPublisher
from server.embedded import Mongod, Valkey, find_mongod, find_valkey
from server.worker import tune_interpreter
from storage.mongo import due_filter
from storage.publishing.networks import Network
from storage.publishing.records import ScheduledPost, Target
from storage.publishing.sandbox import SandboxStore
from storage.stores import Stores, open_stores
from tests.databases import CREDENTIAL_KEYS
from tests.storage.publishing.scenario import PublishingScenario, account_target, create_publishing_scenario
from tests.twins.webhook import WebhookTwin

LEAD_TIME_S = 1.5
"""Time between the scheduling of a post and its due time, before the random part."""

REPEATS = 10
"""Number of runs with a single publication. arq's lateness varies between 0 and its poll delay."""

PHASE_S = 1.0
"""Maximum length of the random part of the lead time, so that due times fall anywhere in a polling interval."""

TOPICS = 10
SWEEPS = 20

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@asynccontextmanager
async def embedded_stores(folder: Path) -> AsyncIterator[Stores]:
    """Opens stores on embedded servers."""
    mongod, valkey = Mongod(folder / "mongodb", find_mongod()), Valkey(folder / "redis", find_valkey())
    await mongod.start()
    await valkey.start()
    try:
        async with open_stores(mongod.uri, valkey.url, "punctuality", credential_keys=CREDENTIAL_KEYS) as stores:
            yield stores
    finally:
        await valkey.stop()
        await mongod.stop()


async def topic_scenarios(stores: Stores) -> list[PublishingScenario]:
    """Creates one organization with its topics; returns a scenario for each topic."""
    first = await create_publishing_scenario(stores)
    scenarios = [first]
    for number in range(1, TOPICS):
        topic = await stores.topics.create(first.topic_scenario.community, "ann", f"Beacons {number}", None)
        scenarios.append(replace(first, topic_scenario=replace(first.topic_scenario, topic=topic)))
    return scenarios


async def schedule_together(scenario: PublishingScenario, targets: Sequence[Target], count: int) -> datetime:
    """Schedules `count` posts for the same due time. Returns the due time."""
    lead_time_s = LEAD_TIME_S + count / 150 + random.uniform(0, PHASE_S)
    due_at = await scenario.now() + timedelta(seconds=lead_time_s)
    due_at = due_at.replace(microsecond=due_at.microsecond // 1000 * 1000)

    async def schedule(number: int) -> ScheduledPost:
        target = targets[number % len(targets)]
        return await scenario.schedule(target, due_at=due_at, text=f"{due_at:%H%M%S%f} {number}")

    for first in range(0, count, 100):
        await asyncio.gather(*(schedule(number) for number in range(first, min(first + 100, count))))
    return due_at


async def sweep_until_published(publisher: PostPublisher, due_at: datetime, stores: Stores) -> None:
    """Sweeps once a second, as a worker does, until all posts with this due time are published."""
    unpublished = {"due": due_at, "state": {"$in": ["SCHEDULED", "PUBLISHING", "UNKNOWN"]}}
    while await stores.mongo["publications"].count_documents(unpublished):
        await publisher.sweep()
        await asyncio.sleep(1)
    await publisher.wait_until_idle()


async def measure_internal_lateness(
    scenarios: Sequence[PublishingScenario], publisher: PostPublisher, count: int
) -> list[float]:
    """Returns milliseconds from the due time to publishedAt of each message, by the database's clock."""
    stores = scenarios[0].stores
    due_at = await schedule_together(scenarios[0], [scenario.topic for scenario in scenarios], count)
    await sweep_until_published(publisher, due_at, stores)
    return await lateness_of_published(stores, due_at)


async def measure_external_lateness(
    scenario: PublishingScenario, publisher: PostPublisher, url: str, count: int
) -> tuple[list[float], list[float]]:
    """Returns milliseconds from the due time to the start of the call, and to its receipt."""
    account = account_target(await scenario.connect_account(Network.WEBHOOK, WebhookTwin.secret, f"{url}/hook"))
    due_at = await schedule_together(scenario, [account], count)
    await sweep_until_published(publisher, due_at, scenario.stores)
    async with httpx2.AsyncClient() as http:
        ledger = (await http.get(f"{url}/ledger")).json()
    assert len({id_ for id_, _ in ledger}) == len(ledger), "A publication was received twice."
    return await lateness_of_published(scenario.stores, due_at), [(at - due_at.timestamp()) * 1000 for _, at in ledger]


async def lateness_of_published(stores: Stores, due_at: datetime) -> list[float]:
    """Returns milliseconds from the due time to publishedAt, by the database's clock."""
    publications = stores.mongo["publications"].find({"due": due_at, "state": "PUBLISHED"}, {"published_at": 1})
    return [(publication["published_at"] - due_at).total_seconds() * 1000 async for publication in publications]


@contextmanager
def running_receiver() -> Iterator[str]:
    """Runs a receiver of webhooks in a separate process. Yields its URL."""
    command = [sys.executable, "-m", "benchmarks.receiver"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield f"http://127.0.0.1:{process.stdout.readline().strip()}"
        finally:
            process.terminate()


async def measure_arq_lateness(redis_url: str, count: int) -> list[float]:
    """Returns milliseconds from the due time to the start of an empty job."""
    lateness_ms: list[float] = []
    due_at = datetime.now(UTC) + timedelta(seconds=LEAD_TIME_S + count / 500 + random.uniform(0, PHASE_S))

    async def job(ctx: dict[str, Any]) -> None:
        lateness_ms.append((time.time() - due_at.timestamp()) * 1000)

    settings = RedisSettings.from_dsn(redis_url)
    pool = await create_pool(settings, default_queue_name="bench")
    for _ in range(count):
        await pool.enqueue_job("job", _defer_until=due_at)
    worker = Worker([func(job, name="job", keep_result=0)], queue_name="bench", redis_settings=settings, poll_delay=0.1,
                    max_jobs=50, queue_read_limit=2000, handle_signals=False, burst=False)  # fmt: skip
    task = asyncio.create_task(worker.async_run())
    while len(lateness_ms) < count:
        await asyncio.sleep(0.05)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    # Closing raises CancelledError if the last jobs have not written their results yet.
    with suppress(asyncio.CancelledError):
        await worker.close()
    await pool.aclose()
    return lateness_ms


async def measure_sweep(stores: Stores, waiting: int) -> tuple[float, int]:
    """Returns the median duration of a sweep in ms and the index entries it examines, while `waiting` posts wait."""
    later, publications = datetime.now(UTC) + timedelta(days=1), stores.mongo["publications"]
    existing = await publications.count_documents({"state": "WAITING"})
    for first in range(existing, waiting, 10_000):
        rows = [{"_id": f"w{number}", "state": "WAITING", "wake_at": later + timedelta(milliseconds=number)}
                for number in range(first, min(first + 10_000, waiting))]  # fmt: skip
        await publications.insert_many(rows, ordered=False)
    durations_ms = []
    for _ in range(SWEEPS):
        began_s = time.perf_counter()
        assert await stores.claims.claim(500) == []
        durations_ms.append((time.perf_counter() - began_s) * 1000)
    command = {"find": "publications", "filter": due_filter("wake_at"), "sort": {"wake_at": 1}, "limit": 500}
    explained = await stores.mongo.database.command({"explain": command, "verbosity": "executionStats"})
    return statistics.median(durations_ms), explained["executionStats"]["totalKeysExamined"]


def quantiles(lateness_ms: Sequence[float]) -> tuple[str, str, str]:
    """Returns p50, p99 and the maximum as texts."""
    ordered = sorted(lateness_ms)
    at = [ordered[min(len(ordered) - 1, int(len(ordered) * share))] for share in (0.5, 0.99)]
    return f"{at[0]:.0f}", f"{at[1]:.0f}", f"{ordered[-1]:.0f}"


async def measure(counts: Sequence[int], waiting: Sequence[int], console: Console) -> None:
    """Measures lateness for each count of posts, and sweeps for each number of waiting posts. Prints both tables."""
    lateness_table = Table("due at once", "variant", "p50 ms", "p99 ms", "max ms", "early")
    sweeps_table = Table("waiting", "a sweep, median ms", "index entries examined")
    with tempfile.TemporaryDirectory(prefix="noroshi-benchmark-") as folder, running_receiver() as url:
        async with embedded_stores(Path(folder)) as stores:
            egress = Egress((ip_network("127.0.0.0/8"),))
            publisher = PostPublisher(stores, all_networks(egress, SandboxStore(stores.mongo)))
            scenarios = await topic_scenarios(stores)
            tune_interpreter()
            redis_url = "redis://{host}:{port}/{db}".format(**stores.redis.connection_pool.connection_kwargs)
            for count in counts:
                runs = max(2, REPEATS // count)
                calls = [await measure_external_lateness(scenarios[0], publisher, url, count) for _ in range(runs)]
                variants = {
                    "Noroshi, topics": [
                        each
                        for _ in range(runs)
                        for each in await measure_internal_lateness(scenarios, publisher, count)
                    ],
                    "Noroshi, webhook: call begun": [each for starts, _ in calls for each in starts],
                    "Noroshi, webhook: received": [each for _, arrivals in calls for each in arrivals],
                    "arq defer_until": [
                        each for _ in range(runs) for each in await measure_arq_lateness(redis_url, count)
                    ],
                }
                for variant, lateness_ms in variants.items():
                    assert len(lateness_ms) == count * runs, (
                        f"{variant}: {len(lateness_ms)} of {count * runs} were published"
                    )
                    early = sum(each < 0 for each in lateness_ms)
                    lateness_table.add_row(str(count), variant, *quantiles(lateness_ms), str(early))
            lateness_table.add_row("any", "a cron job each minute (computed)", "30000", "59400", "60000", "0")
            for number in waiting:
                median_ms, examined = await measure_sweep(stores, number)
                sweeps_table.add_row(f"{number:,}", f"{median_ms:.1f}", str(examined))
            await publisher.close()
            await egress.aclose()
    console.print(lateness_table, sweeps_table)


@app.command()
def main(
    posts: Annotated[list[int] | None, typer.Option(help="Number of posts that are due at the same time.")] = None,
    waiting: Annotated[list[int] | None, typer.Option(help="Number of posts that wait while sweeps are timed.")] = None,
) -> None:
    """Measures lateness and sweeps, and prints two tables."""
    uvloop.run(measure(posts or [1, 100, 1000], waiting or [1000, 1_000_000], Console(width=110)))


if __name__ == "__main__":
    app()

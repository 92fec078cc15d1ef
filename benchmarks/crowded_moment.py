"""Posts that are scheduled or updated at a due moment that already has many posts, while calls are placed.

By default, 100 concurrent changes compete with a call job of nearly ten starts a second for the organization's stream.
The changes use one `Stores` and the call job another, as if they ran in a web process and in a worker. The product
counts index keys to find a free timestamp. The other variant reads the posts at the due moment for each change, a
thousand at a time.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import count, pairwise
from typing import Annotated
from unittest.mock import patch

import typer
from rich.console import Console
from rich.table import Table

from benchmarks.calls_servers import launch, simulator
from benchmarks.fanout_targets import DATABASE, database_servers
from jobs.calls.broker_pool import run_broker_pool
from storage.calls.documents import SIMULATED_CALLS
from storage.calls.job_changes import JobAction
from storage.errors import Unavailable
from storage.mongo import Mongo, Session
from storage.publishing.documents import SCHEDULED_POSTS
from storage.publishing.editing import ScheduledPostEdit
from storage.publishing.free_timestamps import FreeTimestamps, microseconds
from storage.stores import Stores, open_stores
from tests.jobs.contexts import job_context
from tests.storage.publishing.scenario import PublishingScenario, create_publishing_scenario

STARTS_PER_SECOND = 10.0
TALK_S = 1.0
MARGIN_S = 3.0
"""How long calls are placed before the mutations begin, and again after the mutations have ended."""

NUMBERS = 5000
PAGE_SIZE = 1000
INSERT_BATCH = 10_000

SearchVariant = Callable[[FreeTimestamps, Mongo, Session, str, datetime], Awaitable[None]]

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


async def search_by_reading(
    self: FreeTimestamps, mongo: Mongo, session: Session, organization_id: str, at: datetime
) -> None:
    """Reads the posts from the due moment on until a timestamp has no post. Replaces `FreeTimestamps.search`."""
    free = microseconds(at)
    is_taken = True
    while is_taken:
        filter_ = {"org": organization_id, "ts": {"$gte": free}}
        rows = await mongo.find(SCHEDULED_POSTS, filter_, {"_id": 0, "ts": 1}, [("ts", 1)], PAGE_SIZE, session)
        taken = sum(row["ts"] == ts for row, ts in zip(rows, range(free, free + PAGE_SIZE), strict=False))
        is_taken, free = taken == PAGE_SIZE, free + taken
    self.free.add(next(ts for ts in count(free) if ts not in self.free))


VARIANTS: dict[str, SearchVariant] = {"index keys": FreeTimestamps.search, "posts read": search_by_reading}


@dataclass(frozen=True, slots=True)
class BurstResult:
    """Duration and refusals of one burst of changes, and the rate and the longest gap of call starts meanwhile."""

    seconds: float
    refused: int
    starts_per_second: float
    longest_gap_s: float


async def occupy(scenario: PublishingScenario, due_at: datetime, posts: int) -> None:
    """Stores posts at the first timestamps of the due moment."""
    first, organization_id = microseconds(due_at), scenario.organization_id
    for start in range(first, first + posts, INSERT_BATCH):
        timestamps = range(start, min(start + INSERT_BATCH, first + posts))
        rows = [{"_id": f"{organization_id}-{ts}", "org": organization_id, "ts": ts} for ts in timestamps]
        await scenario.stores.mongo[SCHEDULED_POSTS].insert_many(rows, ordered=False)


@asynccontextmanager
async def placing_calls(worker: Stores, organization_id: str) -> AsyncIterator[None]:
    """Places calls in the background."""
    jobs = job_context(worker, telephony=simulator(worker, lambda _: TALK_S))
    job_id = await launch(worker, organization_id, NUMBERS, 100, STARTS_PER_SECOND)
    brokers = asyncio.create_task(run_broker_pool(jobs))
    try:
        await asyncio.sleep(MARGIN_S)
        yield
        await asyncio.sleep(MARGIN_S)
    finally:
        await worker.call_jobs.act(organization_id, job_id, JobAction.CANCEL)
        brokers.cancel()
        await asyncio.gather(brokers, return_exceptions=True)
        assert jobs.telephony is not None
        await jobs.telephony.aclose()


async def run_burst(mutations: Sequence[Awaitable[object]]) -> tuple[float, int]:
    """Runs the mutations concurrently. Returns the seconds until all have an answer, and the number of refusals."""
    began_s = time.perf_counter()
    answers = await asyncio.gather(*mutations, return_exceptions=True)
    refused = [each for each in answers if isinstance(each, Unavailable)]
    assert len(refused) == sum(isinstance(each, BaseException) for each in answers), answers
    return time.perf_counter() - began_s, len(refused)


async def measure(
    web: Stores, worker: Stores, search: SearchVariant, posts: int, concurrent: int, is_update: bool
) -> BurstResult:
    """Measures one burst of mutations in a new organization. `is_update` tells whether they move existing posts."""
    scenario = await create_publishing_scenario(web)
    due_at = (await scenario.now() + timedelta(hours=1)).replace(microsecond=0)
    await occupy(scenario, due_at, posts)
    update, edit = web.scheduled_posts.update, ScheduledPostEdit(due_at=due_at)
    existing = await asyncio.gather(*(scenario.schedule() for _ in range(concurrent))) if is_update else []
    moves = [update(scenario.organization_id, post.id, edit) for post in existing]
    with patch.object(FreeTimestamps, "search", search):
        async with placing_calls(worker, scenario.organization_id):
            began_at = await scenario.now()
            seconds, refused = await run_burst(moves or [scenario.schedule(due_at=due_at) for _ in range(concurrent)])
            ended_at = await scenario.now()
    return BurstResult(seconds, refused, *await call_starts(worker, began_at, ended_at))


async def call_starts(worker: Stores, began_at: datetime, ended_at: datetime) -> tuple[float, float]:
    """Returns the call starts a second around the burst, and the longest gap between two starts."""
    margin = timedelta(seconds=MARGIN_S - 1)
    filter_ = {"at": {"$gte": began_at - margin, "$lte": ended_at + margin}}
    calls = await worker.mongo.find(SIMULATED_CALLS, filter_, {"at": 1}, [("at", 1)])
    starts = [call["at"].timestamp() for call in calls]
    gaps = [later - earlier for earlier, later in pairwise(starts)]
    return len(starts) / (ended_at - began_at + 2 * margin).total_seconds(), max(gaps, default=float("inf"))


async def run(sizes: Sequence[int], concurrent: int, console: Console) -> None:
    """Measures every size and variant, and prints the table."""
    table = Table(title=f"{concurrent} concurrent mutations at one due moment, beside {STARTS_PER_SECOND:g} calls/s")
    for column in ("posts at the moment", "mutation", "variant", "all done s", "refused", "starts/s", "longest gap s"):
        table.add_column(column, justify="left" if column in ("mutation", "variant") else "right")
    async with (
        database_servers("pymongo") as servers,
        open_stores(servers.mongodb_uri, servers.redis_url, DATABASE, "pymongo") as web,
        open_stores(servers.mongodb_uri, servers.redis_url, DATABASE, "pymongo") as worker,
    ):
        for posts in sizes:
            for is_update in (False, True):
                for variant, search in VARIANTS.items():
                    result = await measure(web, worker, search, posts, concurrent, is_update)
                    row = (f"{result.seconds:.2f}", f"{result.refused}", f"{result.starts_per_second:.1f}")
                    name = "updateScheduledPost" if is_update else "schedulePost"
                    table.add_row(f"{posts:,}", name, variant, *row, f"{result.longest_gap_s:.2f}")
    console.print(table)


@app.command()
def main(
    sizes: Annotated[
        str, typer.Option(help="Numbers of posts at the due moment, separated by commas.")
    ] = "0,2000,5000,20000",
    concurrent: Annotated[int, typer.Option(min=1, help="Number of concurrent mutations.")] = 100,
) -> None:
    """Measures bursts of mutations and prints a table."""
    import uvloop

    uvloop.run(run([int(size) for size in sizes.split(",")], concurrent, Console(width=120)))


if __name__ == "__main__":
    app()

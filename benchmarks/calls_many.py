"""Many organizations that call at the same time, in one worker process: active calls, and their cost.

The simulator's ledger checks the limits: it has the start of each call by the database's clock.
"""

import asyncio
import os
import random
import resource
import time
from collections import defaultdict
from dataclasses import dataclass
from functools import partial
from itertools import accumulate, pairwise
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from benchmarks.calls_servers import launch, servers, simulator
from benchmarks.cpu import CpuTimes, cpu_times
from jobs.calls.broker_pool import run_broker_pool
from jobs.calls.polling import poll_overdue_calls
from jobs.context import JobContext
from storage.calls.documents import SIMULATED_CALLS
from storage.metrics import CALL_ANSWERS
from storage.mongo import Driver
from storage.stores import Stores
from tests.jobs.contexts import job_context

EVERY_S = 15.0
LAUNCHED_AT_ONCE = 20
SWEEP_S = 1.0

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@dataclass(frozen=True, slots=True)
class Sample:
    """Counters at one instant."""

    active: int
    answers: dict[str, float]
    cpu: CpuTimes


def length_s(talk_s: float, call_id: str) -> float:
    """Returns how long a call lasts: 50 to 150 % of `talk_s`, so that calls which begin together end apart."""
    return talk_s * random.Random(call_id).uniform(0.5, 1.5)


async def organizations(
    console: Console, count: int, active: int, talk_s: float, seconds: float, driver: Driver
) -> None:
    """Prints a row every 15 s, then the check of the simulator's ledger. Raises: AssertionError."""
    async with servers(driver) as (stores, mongod_pid):
        jobs = job_context(stores, telephony=simulator(stores, partial(length_s, talk_s)))
        await _launch_lists(stores, count, active, talk_s, seconds)
        title = f"{count} organizations, {active} calls of some {talk_s:g} s at once and 1 start/s each, one worker"
        table = Table(title=title)
        for column in ("after s", "active", "starts/s", "refused or late", "worker CPU %", "mongod CPU %", "MiB"):
            table.add_column(column, justify="right")
        running = [asyncio.create_task(work) for work in (run_broker_pool(jobs), _poll_overdue(jobs))]
        try:
            await _measure(table, stores, mongod_pid, seconds)
        finally:
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)
            await jobs.telephony.aclose()
        console.print(table)
        console.print(await _check_ledger(stores, active, talk_s))


async def _launch_lists(stores: Stores, count: int, active: int, talk_s: float, seconds: float) -> None:
    """Launches a list for each organization that is long enough for the whole measurement."""
    numbers = int(active * (seconds / talk_s + 2))
    places = asyncio.Semaphore(LAUNCHED_AT_ONCE)

    async def one(n: int) -> None:
        async with places:
            await launch(stores, f"org-{n}", numbers, active, 1)

    await asyncio.gather(*(one(n) for n in range(count)))


async def _poll_overdue(jobs: JobContext) -> None:
    while True:
        await asyncio.sleep(SWEEP_S)
        await poll_overdue_calls(jobs)


async def _measure(table: Table, stores: Stores, mongod_pid: int, seconds: float) -> None:
    begun, before = time.monotonic(), await _sample(stores, mongod_pid)
    while time.monotonic() - begun < seconds:
        await asyncio.sleep(EVERY_S)
        now = await _sample(stores, mongod_pid)
        took_s = now.cpu.at_s - before.cpu.at_s
        percent = now.cpu.percent_since(before.cpu)
        answers = {name: now.answers[name] - before.answers.get(name, 0) for name in now.answers}
        starts = answers.pop("Began", 0) / took_s
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        cpu = f"{percent[str(os.getpid())]:.0f}", f"{percent[str(mongod_pid)]:.0f}"
        after = f"{now.cpu.at_s - begun:.0f}"
        table.add_row(after, f"{now.active:,}", f"{starts:.0f}", f"{sum(answers.values()):.0f}", *cpu, f"{memory:.0f}")
        before = now


async def _sample(stores: Stores, mongod_pid: int) -> Sample:
    pipeline = [{"$group": {"_id": None, "active": {"$sum": {"$size": "$slots"}}}}]
    rows = await stores.mongo.aggregate("call_limits", pipeline)
    counted = [sample for metric in CALL_ANSWERS.collect() for sample in metric.samples]
    answers = {sample.labels["answer"]: sample.value for sample in counted if sample.name.endswith("_total")}
    return Sample(rows[0]["active"], answers, cpu_times([os.getpid(), mongod_pid]))


async def _check_ledger(stores: Stores, active: int, talk_s: float) -> str:
    """Checks the ledger: the most active calls of an organization, and the shortest time between two starts."""
    of_job = {job["_id"]: job["org"] async for job in stores.mongo["call_jobs"].find({}, {"org": 1})}
    calls: defaultdict[str, list[tuple[float, float]]] = defaultdict(list)
    numbers: defaultdict[str, int] = defaultdict(int)
    async for call in stores.mongo[SIMULATED_CALLS].find({}):
        job_id, row, _ = call["_id"].rsplit("-", 2)
        begun = call["at"].timestamp()
        calls[of_job[job_id]].append((begun, begun + length_s(talk_s, call["_id"])))
        numbers[f"{job_id}-{row}"] += 1
    most = max(_most_at_once(spans) for spans in calls.values())
    gaps = [later - earlier for spans in calls.values() for (earlier, _), (later, _) in pairwise(sorted(spans))]
    verdict = (
        f"{len(numbers):,} calls; most of one organization at a time {most}, {max(most - active, 0)} over its limit; "
        f"two starts at least {min(gaps):.3f} s apart"
    )
    assert most <= active, verdict
    assert min(gaps) >= 1.0, verdict
    assert set(numbers.values()) == {1}, "A number was called twice."
    return verdict


def _most_at_once(spans: list[tuple[float, float]]) -> int:
    """Returns the maximum number of overlapping spans. At the same instant, ends are counted before starts."""
    moments = sorted([(begun, 1) for begun, _ in spans] + [(ended, -1) for _, ended in spans])
    return max(accumulate(change for _, change in moments))


@app.command()
def main(
    count: Annotated[int, typer.Option("--organizations", help="Number of organizations.")] = 500,
    active: Annotated[int, typer.Option(help="Concurrent calls of each organization.")] = 20,
    talk_s: Annotated[float, typer.Option(help="Mean length of a call in seconds.")] = 300.0,
    seconds: Annotated[float, typer.Option(help="Seconds to measure.")] = 420.0,
    driver: Annotated[Driver, typer.Option(help="motor or pymongo.")] = "pymongo",
) -> None:
    """Measures many organizations and prints a table."""
    import uvloop

    uvloop.run(organizations(Console(width=120), count, active, talk_s, seconds, driver))


if __name__ == "__main__":
    app()

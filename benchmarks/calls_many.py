"""Many organizations that call at the same time in one worker process: active calls, and their cost.

The limits are checked with the simulator's record of calls, which holds the start of each call by the database's clock.
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
from jobs.providers.telephony import CallStarted
from storage.calls.documents import SIMULATED_CALLS
from storage.metrics import CALL_ANSWERS
from storage.mongo import Driver
from storage.stores import Stores
from tests.jobs.contexts import job_context

SAMPLE_INTERVAL_S = 15.0
CONCURRENT_LAUNCHES = 20
POLL_INTERVAL_S = 1.0

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@dataclass(frozen=True, slots=True)
class CallsSample:
    """Active calls, and counters of the provider's answers and of processor time, at one instant."""

    active: int
    answers: dict[str, float]
    cpu: CpuTimes


def call_length_s(talk_s: float, call_id: str) -> float:
    """Returns the length of a call: 50 to 150 % of `talk_s`, so that concurrent calls do not end together."""
    return talk_s * random.Random(call_id).uniform(0.5, 1.5)


async def measure_organizations(
    console: Console, count: int, active: int, talk_s: float, seconds: float, driver: Driver
) -> None:
    """Prints a table with a row for every 15 s, and the result of the check of the limits. Raises: AssertionError."""
    async with servers(driver) as (stores, mongod_pid):
        jobs = job_context(stores, telephony=simulator(stores, partial(call_length_s, talk_s)))
        await _launch_lists(stores, count, active, talk_s, seconds)
        title = f"{count} organizations, each {active} calls at once of about {talk_s:g} s and 1 start/s, one worker"
        table = Table(title=title)
        for column in ("after s", "active", "starts/s", "refused or late", "worker CPU %", "mongod CPU %", "peak MiB"):
            table.add_column(column, justify="right")
        running = [asyncio.create_task(work) for work in (run_broker_pool(jobs), _poll_overdue(jobs))]
        try:
            await _measure(table, stores, mongod_pid, seconds)
        finally:
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)
            assert jobs.telephony is not None
            await jobs.telephony.aclose()
        console.print(table)
        console.print(await _check_limits(stores, active, talk_s))


async def _launch_lists(stores: Stores, count: int, active: int, talk_s: float, seconds: float) -> None:
    """Launches a list for each organization, long enough for the whole measurement."""
    numbers = int(active * (seconds / talk_s + 2))
    launching = asyncio.Semaphore(CONCURRENT_LAUNCHES)

    async def launch_list(number: int) -> None:
        async with launching:
            await launch(stores, f"org-{number}", numbers, active, 1)

    await asyncio.gather(*(launch_list(number) for number in range(count)))


async def _poll_overdue(jobs: JobContext) -> None:
    while True:
        await asyncio.sleep(POLL_INTERVAL_S)
        await poll_overdue_calls(jobs)


async def _measure(table: Table, stores: Stores, mongod_pid: int, seconds: float) -> None:
    began_s, before = time.monotonic(), await _sample(stores, mongod_pid)
    while time.monotonic() - began_s < seconds:
        await asyncio.sleep(SAMPLE_INTERVAL_S)
        now = await _sample(stores, mongod_pid)
        passed_s = now.cpu.at_s - before.cpu.at_s
        percent = now.cpu.percent_since(before.cpu)
        answers = {name: now.answers[name] - before.answers.get(name, 0) for name in now.answers}
        starts = answers.pop(CallStarted.__name__, 0) / passed_s
        peak_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        cpu = f"{percent[str(os.getpid())]:.0f}", f"{percent[str(mongod_pid)]:.0f}"
        after = f"{now.cpu.at_s - began_s:.0f}"
        table.add_row(
            after, f"{now.active:,}", f"{starts:.0f}", f"{sum(answers.values()):.0f}", *cpu, f"{peak_mib:.0f}"
        )
        before = now


async def _sample(stores: Stores, mongod_pid: int) -> CallsSample:
    pipeline = [{"$group": {"_id": None, "active": {"$sum": {"$size": "$slots"}}}}]
    rows = await stores.mongo.aggregate("call_limits", pipeline)
    samples = [sample for metric in CALL_ANSWERS.collect() for sample in metric.samples]
    answers = {sample.labels["answer"]: sample.value for sample in samples if sample.name.endswith("_total")}
    return CallsSample(rows[0]["active"], answers, cpu_times([os.getpid(), mongod_pid]))


async def _check_limits(stores: Stores, active: int, talk_s: float) -> str:
    """Checks the limits of concurrent calls and of starts, and that no number was called twice. Returns a summary."""
    organization_of_job = {job["_id"]: job["org"] async for job in stores.mongo["call_jobs"].find({}, {"org": 1})}
    calls: defaultdict[str, list[tuple[float, float]]] = defaultdict(list)
    numbers: defaultdict[str, int] = defaultdict(int)
    async for call in stores.mongo[SIMULATED_CALLS].find({}):
        job_id, row, _ = call["_id"].rsplit("-", 2)
        began_s = call["at"].timestamp()
        calls[organization_of_job[job_id]].append((began_s, began_s + call_length_s(talk_s, call["_id"])))
        numbers[f"{job_id}-{row}"] += 1
    most_concurrent = max(_max_overlap(spans) for spans in calls.values())
    gaps = [later - earlier for spans in calls.values() for (earlier, _), (later, _) in pairwise(sorted(spans))]
    summary = (
        f"{len(numbers):,} calls; at most {most_concurrent} of one organization at once, "
        f"{max(most_concurrent - active, 0)} over its limit; "
        f"two starts of one organization at least {min(gaps):.3f} s apart"
    )
    assert most_concurrent <= active, summary
    assert min(gaps) >= 1.0, summary
    assert set(numbers.values()) == {1}, "A number was called twice."
    return summary


def _max_overlap(spans: list[tuple[float, float]]) -> int:
    """Returns the maximum number of overlapping spans. At the same instant, ends are counted before starts."""
    changes = sorted([(start, 1) for start, _ in spans] + [(end, -1) for _, end in spans])
    return max(accumulate(change for _, change in changes))


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

    uvloop.run(measure_organizations(Console(width=120), count, active, talk_s, seconds, driver))


if __name__ == "__main__":
    app()

"""Many organizations that call at the same time in one worker process: active calls, and their cost.

The limits are checked with the simulator's record of calls, which holds the start of each call by the database's clock.
"""

import asyncio
import math
import os
import random
import resource
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import accumulate, pairwise
from typing import Annotated

import typer
import uvloop

from benchmarks.cpu import CpuTimes, cpu_times
from benchmarks.servers import database_servers
from benchmarks.tables import print_table
from jobs.calls.broker_pool import run_broker_pool
from jobs.calls.polling import poll_overdue_calls
from jobs.context import JobContext
from jobs.providers.telephony import CallStarted
from jobs.providers.telephony.simulator import CallScript, Simulator
from server.worker import tune_interpreter
from storage.calls.documents import SIMULATED_CALLS
from storage.calls.job_changes import NewCallJob
from storage.calls.records import CallOutcome
from storage.metrics import CALL_ANSWERS
from storage.stores import Stores, open_stores
from tests.jobs.contexts import job_context

CONCURRENT_LAUNCHES = 20
POLL_INTERVAL_S = 1.0
COLUMNS = ["after s", "active", "starts/s", "refused or late", "worker CPU %", "mongod CPU %", "peak MiB"]

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


def simulator(stores: Stores, length_s: Callable[[str], float]) -> Simulator:
    """Returns a simulator that answers every call at once. `length_s` gives a call's length by its id."""
    return Simulator(
        stores.mongo, stores.calls.report, 1.0, lambda id_: CallScript(0, length_s(id_), CallOutcome.ANSWERED)
    )


@dataclass(frozen=True)
class Workload:
    """Organizations with `active` calls at once each, and the durations of calls, of the measurement and of a row."""

    organizations: int
    active: int
    talk_s: float
    seconds: float
    interval_s: float

    async def launch(self, stores: Stores) -> None:
        """Launches a list for each organization, long enough for the whole measurement."""
        launching = asyncio.Semaphore(CONCURRENT_LAUNCHES)

        async def launch_list(number: int) -> None:
            async with launching:
                await self._launch_list(stores, f"org-{number}")

        await asyncio.gather(*(launch_list(number) for number in range(self.organizations)))

    async def _launch_list(self, stores: Stores, org: str) -> None:
        await stores.call_jobs.set_limits(org, self.active, 1)
        numbers = int(self.active * (self.seconds / self.talk_s + 2))
        csv = "phone_number\n" + "".join(f"+8190{10_000_000 + n}\n" for n in range(numbers))
        await stores.call_jobs.launch(NewCallJob(org, "bench", "List", "Hello", None, None, 1, 60, 60), csv, None)


async def measure_organizations(load: Workload) -> None:
    """Prints a table with a row for each interval, and the result of the check of the limits. Raises: AssertionError.

    Tunes this process like a worker.
    """
    tune_interpreter()
    async with (
        database_servers() as servers,
        open_stores(servers.mongodb_uri, servers.redis_url, servers.database) as stores,
    ):
        jobs = job_context(stores, telephony=simulator(stores, partial(call_length_s, load.talk_s)))
        await load.launch(stores)
        running = [asyncio.create_task(work) for work in (run_broker_pool(jobs), _poll_overdue(jobs))]
        try:
            rows = await _measure(load, stores, servers.mongod_pid)
        finally:
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)
            assert jobs.telephony is not None
            await jobs.telephony.aclose()
        title = f"{load.organizations} organizations, each {load.active} calls at once of about {load.talk_s:g} s"
        print_table(f"{title} and 1 start/s, one worker", COLUMNS, rows)
        typer.echo(await _check_limits(stores, load))


async def _poll_overdue(jobs: JobContext) -> None:
    while True:
        await asyncio.sleep(POLL_INTERVAL_S)
        await poll_overdue_calls(jobs)


async def _measure(load: Workload, stores: Stores, mongod_pid: int) -> list[list[str]]:
    rows, began_s, before = [], time.monotonic(), await _sample(stores, mongod_pid)
    while time.monotonic() - began_s < load.seconds:
        await asyncio.sleep(load.interval_s)
        now = await _sample(stores, mongod_pid)
        passed_s, percent = now.cpu.at_s - before.cpu.at_s, now.cpu.percent_since(before.cpu)
        answers = {name: now.answers[name] - before.answers.get(name, 0) for name in now.answers}
        starts = answers.pop(CallStarted.__name__, 0) / passed_s
        peak_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        cpu = [f"{percent[str(pid)]:.0f}" for pid in (os.getpid(), mongod_pid)]
        figures = [f"{now.cpu.at_s - began_s:.0f}", f"{now.active:,}", f"{starts:.0f}", f"{sum(answers.values()):.0f}"]
        rows.append([*figures, *cpu, f"{peak_mib:.0f}"])
        before = now
    return rows


async def _sample(stores: Stores, mongod_pid: int) -> CallsSample:
    pipeline = [{"$group": {"_id": None, "active": {"$sum": {"$size": "$slots"}}}}]
    rows = await stores.mongo.aggregate("call_limits", pipeline)
    samples = [sample for metric in CALL_ANSWERS.collect() for sample in metric.samples]
    answers = {sample.labels["answer"]: sample.value for sample in samples if sample.name.endswith("_total")}
    return CallsSample(rows[0]["active"], answers, cpu_times([os.getpid(), mongod_pid]))


async def _check_limits(stores: Stores, load: Workload) -> str:
    """Checks the limits of concurrent calls and of starts, and that no number was called twice. Returns a summary."""
    organization_of_job = {job["_id"]: job["org"] async for job in stores.mongo["call_jobs"].find({}, {"org": 1})}
    calls: defaultdict[str, list[tuple[float, float]]] = defaultdict(list)
    numbers: defaultdict[str, int] = defaultdict(int)
    async for call in stores.mongo[SIMULATED_CALLS].find({}):
        job_id, row, _ = call["_id"].rsplit("-", 2)
        began_s = call["at"].timestamp()
        calls[organization_of_job[job_id]].append((began_s, began_s + call_length_s(load.talk_s, call["_id"])))
        numbers[f"{job_id}-{row}"] += 1
    most_concurrent = max((_max_overlap(spans) for spans in calls.values()), default=0)
    gaps = [later - earlier for spans in calls.values() for (earlier, _), (later, _) in pairwise(sorted(spans))]
    least_gap_s = min(gaps, default=math.inf)
    summary = (
        f"{len(numbers):,} calls; at most {most_concurrent} of one organization at once, "
        f"{max(most_concurrent - load.active, 0)} over its limit; "
        f"two starts of one organization at least {least_gap_s:.3f} s apart"
    )
    assert most_concurrent <= load.active, summary
    assert least_gap_s >= 1.0, summary
    assert set(numbers.values()) <= {1}, "A number was called twice."
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
    interval_s: Annotated[float, typer.Option("--interval", help="Seconds of a row.")] = 15.0,
) -> None:
    """Measures many organizations and prints a table."""
    uvloop.run(measure_organizations(Workload(count, active, talk_s, seconds, interval_s)))


if __name__ == "__main__":
    app()

"""Calls on a scaled clock: how close a list comes to its limit, beside a broker that polls; and many at once.

The manager runs in this process with the simulator, on embedded servers. The polling broker is the article's: each
(scaled) second it counts the active calls and starts what is free.
"""

import asyncio
import resource
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from jobs.call_broker import Broker
from jobs.call_manager import run_call_manager
from jobs.providers.telephony.simulator import Script, Simulator
from server.embedded import Mongod, Valkey, find_mongod, find_valkey
from storage.calls.jobs import NewCallJob
from storage.calls.records import CallJobState, CallOutcome
from storage.metrics import CALL_ANSWERS
from storage.stores import Stores, open_stores
from tests.jobs.contexts import job_context

CALL_S = 60.0
CONCURRENT = 6

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


class PollingBroker(Broker):
    """Looks once in a while, whatever happens: the broker of the article."""

    poll_s = 1.0

    async def _turn(self, fence: int) -> float | None:
        wait_s = await super()._turn(fence)
        return wait_s if wait_s in (None, 0.0) else self.poll_s

    async def _wait(self, wait_s: float) -> None:
        await asyncio.sleep(wait_s)


@asynccontextmanager
async def servers() -> AsyncIterator[Stores]:
    """Embedded servers with an empty database."""
    with tempfile.TemporaryDirectory(prefix="noroshi-benchmark-") as folder:
        mongod, valkey = Mongod(Path(folder) / "mongodb", find_mongod()), Valkey(Path(folder) / "redis", find_valkey())
        await mongod.start()
        await valkey.start()
        try:
            async with open_stores(mongod.uri, valkey.url, "benchmark") as stores:
                yield stores
        finally:
            await valkey.stop(0)
            await mongod.stop(0)


def simulator(stores: Stores, speed: float) -> Simulator:
    """Every call lasts a minute of the scaled clock."""
    return Simulator(stores.mongo, stores.calls.report, speed, lambda _id: Script(0, CALL_S, CallOutcome.ANSWERED))


async def launch(stores: Stores, org: str, numbers: int, concurrent: int, per_second: float) -> str:
    """The id of a job with so many numbers."""
    await stores.call_jobs.set_limits(org, concurrent, per_second)
    csv = "phone_number\n" + "".join(f"+8190{10_000_000 + n}\n" for n in range(numbers))
    new = NewCallJob(org, "bench", "List", "Hello", None, None, 1, 60, int(CALL_S))
    return (await stores.call_jobs.launch(new, csv, None)).id


async def over(stores: Stores, org: str, job_id: str) -> float:
    """When the job was over, on the monotonic clock."""
    while (await stores.call_jobs.get(org, job_id)).state is not CallJobState.COMPLETED:
        await asyncio.sleep(0.02)
    return time.monotonic()


async def lists(numbers: int, speed: float) -> Table:
    """One list by our broker and the same by a polling one, at once."""
    table = Table(title=f"{numbers} numbers, {CONCURRENT} at a time, calls of 60 s on a clock {speed:g} times as fast")
    for column in ("broker", "minutes", "the limit", "over it"):
        table.add_column(column, justify="right")
    async with servers() as stores:
        telephony, limit_s = simulator(stores, speed), numbers / CONCURRENT * CALL_S
        PollingBroker.poll_s = 1 / speed
        brokers = {
            "events": Broker(stores.calls, telephony, "events"),
            "polls": PollingBroker(stores.calls, telephony, "polls"),
        }
        listening = asyncio.create_task(stores.call_wakes.listen(lambda org, _released: brokers[org].wake()))
        ids = {org: await launch(stores, org, numbers, CONCURRENT, min(speed, 100)) for org in brokers}
        begun = time.monotonic()
        running = [asyncio.create_task(broker.run(1)) for broker in brokers.values()]
        ends = await asyncio.gather(*(over(stores, org, ids[org]) for org in brokers))
        listening.cancel()
        await asyncio.gather(listening, *running, return_exceptions=True)
        for org, end in zip(brokers, ends, strict=True):
            took_s = (end - begun) * speed
            share = f"{(took_s / limit_s - 1) * 100:.2f} %"
            table.add_row(org, f"{took_s / 60:.2f}", f"{limit_s / 60:.2f}", share)
    return table


async def organizations(count: int, active: int, speed: float, seconds: float) -> Table:
    """Many organizations in one worker process."""
    async with servers() as stores:
        jobs = job_context(stores, telephony=simulator(stores, speed))
        for n in range(count):
            await launch(stores, f"org-{n}", active * 6, active, 1)
        manager = asyncio.create_task(run_call_manager(jobs))
        await asyncio.sleep(seconds / 3)
        starts, cpu_s, begun = _starts(), time.process_time(), time.monotonic()
        most = 0
        while time.monotonic() - begun < seconds * 2 / 3:
            await asyncio.sleep(2)
            rows = await stores.mongo["call_limits"].find({}, {"slots": 1}).to_list(None)
            most = max(most, *(len(row["slots"]) for row in rows))
            total = sum(len(row["slots"]) for row in rows)
        took_s = time.monotonic() - begun
        table = Table(title=f"{count} organizations, {active} calls at a time each, one worker process")
        for column in ("starts/s", "active at the end", "most of one", "CPU of a core", "memory MiB"):
            table.add_column(column, justify="right")
        cpu = (time.process_time() - cpu_s) / took_s * 100
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        table.add_row(f"{(_starts() - starts) / took_s:.0f}", str(total), str(most), f"{cpu:.0f} %", f"{memory:.0f}")
        manager.cancel()
        await asyncio.gather(manager, return_exceptions=True)
        await jobs.telephony.aclose()
        assert most <= active, "more calls than allowed"
    return table


def _starts() -> float:
    return sum(
        s.value for metric in CALL_ANSWERS.collect() for s in metric.samples if s.labels.get("answer") == "Began"
    )


@app.command()
def main(
    numbers: Annotated[int, typer.Option(help="Numbers of the list.")] = 600,
    speed: Annotated[float, typer.Option(help="How much faster than life the clock runs.")] = 60.0,
    organizations_: Annotated[
        int, typer.Option("--organizations", help="Organizations at once; 0 leaves it out.")
    ] = 500,
    active: Annotated[int, typer.Option(help="Calls at a time of each.")] = 20,
    seconds: Annotated[float, typer.Option(help="How long the organizations run.")] = 60.0,
) -> None:
    """Measures a list beside a polling broker, then many organizations at once, and prints two tables."""
    import uvloop

    console = Console(width=110)
    if numbers:
        console.print(uvloop.run(lists(numbers, speed)))
    if organizations_:
        console.print(uvloop.run(organizations(organizations_, active, 1.0, seconds)))


if __name__ == "__main__":
    app()

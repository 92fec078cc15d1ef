"""Time to call a list, compared with the theoretical limit and with a broker that polls, on an accelerated clock.

Both brokers run in this process with the simulator, on embedded servers. The polling broker counts the active calls
once a second of the accelerated clock, and starts a call for each free slot.
"""

import asyncio
import time
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from benchmarks.calls_servers import launch, servers, simulator
from jobs.calls.broker import Broker
from storage.calls.records import CallJobState
from storage.stores import Stores

CALL_S = 60.0
CONCURRENT_CALLS = 6
WARM_UP_NUMBERS = 12

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


class PollingBroker(Broker):
    """A broker that plans at a fixed interval and ignores wake-ups."""

    poll_interval_s = 1.0

    async def _do_due_work(self, fence: int) -> float | None:
        wait_s = await super()._do_due_work(fence)
        return wait_s if wait_s in (None, 0.0) else self.poll_interval_s

    async def _wait(self, wait_s: float) -> None:
        await asyncio.sleep(wait_s)


async def wait_until_completed(stores: Stores, org: str, job_id: str) -> float:
    """Waits until the job is completed. Returns the time by the monotonic clock."""
    while (await stores.call_jobs.get(org, job_id)).state is not CallJobState.COMPLETED:
        await asyncio.sleep(0.05)
    return time.monotonic()


async def measure_brokers(numbers: int, speed: float) -> Table:
    """Measures the same list with both brokers concurrently. Returns a table with a row for each broker."""
    table = Table(
        title=f"{numbers} numbers, {CONCURRENT_CALLS} at a time, calls of 60 s on a clock {speed:g} times as fast"
    )
    for column in ("broker", "minutes", "limit", "over the limit", "ms a call", "over the limit at real speed"):
        table.add_column(column, justify="right")
    async with servers() as (stores, _pid):
        limit_s, rounds = numbers / CONCURRENT_CALLS * CALL_S, numbers / CONCURRENT_CALLS
        PollingBroker.poll_interval_s = 1 / speed
        durations_s = await _measure(stores, numbers, speed)
    for org, seconds in durations_s.items():
        over_limit_s = (seconds - limit_s / speed) / rounds
        minutes = f"{seconds * speed / 60:.2f}", f"{limit_s / 60:.2f}", f"{(seconds * speed / limit_s - 1) * 100:.2f} %"
        table.add_row(org, *minutes, f"{over_limit_s * 1000:.1f}", f"{over_limit_s / CALL_S * 100:.3f} %")
    return table


async def _measure(stores: Stores, numbers: int, speed: float) -> dict[str, float]:
    """Returns the duration of the list in seconds for each broker, after a warm-up list."""
    telephony = simulator(stores, lambda _id: CALL_S, speed)
    brokers = {
        "event-driven": Broker(stores.calls, telephony, "event-driven"),
        "polls each second": PollingBroker(stores.calls, telephony, "polls each second"),
    }
    listening = asyncio.create_task(stores.call_wake_ups.listen(lambda org, _released: brokers[org].wake()))
    durations_s: dict[str, float] = {}
    for size in (WARM_UP_NUMBERS, numbers):
        ids = {org: await launch(stores, org, size, CONCURRENT_CALLS, min(speed, 100)) for org in brokers}
        began_s = time.monotonic()
        running = [asyncio.create_task(broker.run(1)) for broker in brokers.values()]
        ends = await asyncio.gather(*(wait_until_completed(stores, org, ids[org]) for org in brokers))
        await asyncio.gather(*running)
        durations_s = {org: end_s - began_s for org, end_s in zip(brokers, ends, strict=True)}
    listening.cancel()
    await asyncio.gather(listening, return_exceptions=True)
    return durations_s


@app.command()
def main(
    numbers: Annotated[int, typer.Option(help="Phone numbers in the list.")] = 600,
    speed: Annotated[float, typer.Option(help="Speed of the clock relative to real time.")] = 10.0,
) -> None:
    """Measures a list with both brokers and prints a table.

    Takes the duration of the list at real speed, divided by the speed.
    """
    import uvloop

    Console(width=120).print(uvloop.run(measure_brokers(numbers, speed)))


if __name__ == "__main__":
    app()

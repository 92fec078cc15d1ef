"""Time without new calls after the worker that holds an organization's lock gets SIGTERM or is killed.

Runs a web process, two workers, and a telephony twin that answers by signed callbacks. Each try ends the worker that
holds the lock, and measures the time until another worker holds it and until the twin's next call.
"""

import asyncio
import os
import signal
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from server.embedded import Mongod, find_mongod
from tests.e2e.call_deployment import CallDeployment, call_deployment

SIGNALS = {signal.SIGTERM: "SIGTERM", signal.SIGKILL: "kill -9"}

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


async def measure(deployment: CallDeployment, signal_number: signal.Signals, tries: int) -> list[tuple[float, float]]:
    """Returns for each try the seconds until the next holder of the lock and until the next call."""
    durations = []
    for _ in range(tries):
        pid = await deployment.wait_for_holder(deadline_s=40)
        await deployment.start_worker()
        # Waits a random time, so that the age of the lease differs between tries.
        await asyncio.sleep(deployment.twin.rng.uniform(0, 5))
        began_s, began_at = time.monotonic(), time.time()
        os.kill(pid, signal_number)
        await deployment.wait_for_holder(except_pid=pid, deadline_s=40)
        until_held_s = time.monotonic() - began_s
        durations.append((until_held_s, await _next_call(deployment, began_at + until_held_s) - began_at))
    return durations


async def _next_call(deployment: CallDeployment, since: float) -> float:
    """Waits for the first call after `since`. Returns its start time."""
    while not (starts := [call.begun_at for call in deployment.twin.calls.values() if call.begun_at > since]):
        await asyncio.sleep(0.01)
    return min(starts)


def _median_and_maximum(durations_s: Sequence[float]) -> tuple[float, float]:
    return statistics.median(durations_s), max(durations_s)


async def measure_takeovers(tries: int) -> Table:
    """Returns a table with a row for each signal."""
    table = Table(title=f"Seconds until another worker holds the lock, and until the next call; {tries} tries each")
    for column in ("signal", "lock: median", "lock: longest", "next call: median", "next call: longest"):
        table.add_column(column, justify="right")
    with tempfile.TemporaryDirectory(prefix="noroshi-benchmark-") as folder:
        mongod = Mongod(Path(folder) / "mongodb", find_mongod())
        await mongod.start()
        try:
            async with call_deployment(Path(folder), mongod.uri, 6, talk_s=(0.5, 1.5)) as deployment:
                await deployment.start_worker()
                await deployment.set_limits(6, 5)
                await deployment.launch(5000)
                for signal_number, name in SIGNALS.items():
                    until_held, until_call = zip(*await measure(deployment, signal_number, tries), strict=True)
                    figures_s = [*_median_and_maximum(until_held), *_median_and_maximum(until_call)]
                    table.add_row(name, *(f"{seconds:.2f}" for seconds in figures_s))
                    print(name, [f"{seconds:.2f}" for seconds in until_held], flush=True)
                assert deployment.twin.faults == [] == deployment.twin.rolling_faults(5)
                assert set(deployment.twin.dialled.values()) == {1}
        finally:
            await mongod.stop(0)
    return table


@app.command()
def main(tries: Annotated[int, typer.Option(help="Number of tries for each signal.")] = 20) -> None:
    """Measures takeovers and prints a table. Takes about six minutes."""
    Console(width=120).print(asyncio.run(measure_takeovers(tries)))


if __name__ == "__main__":
    app()

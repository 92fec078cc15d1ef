"""How long nobody calls when the worker that called is told to end, or is killed: tries with real processes.

A web process, two workers, a telephony twin that answers by signed callbacks. Each try ends the worker that holds the
organization's lock, and measures until another one holds it, and until the twin's next call.
"""

import asyncio
import os
import signal
import statistics
import tempfile
import time
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from server.embedded import Mongod, find_mongod
from tests.e2e.call_deployment import CallDeployment, call_deployment

SIGNALS = {signal.SIGTERM: "SIGTERM", signal.SIGKILL: "kill -9"}

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


async def measured(it: CallDeployment, number: signal.Signals, tries: int) -> list[tuple[float, float]]:
    """Seconds until the next holder, and until the next call, of each try."""
    found = []
    for _ in range(tries):
        pid = await it.dialling(deadline_s=40)
        await it.start_worker()
        # At any time of a lease.
        await asyncio.sleep(it.twin.dice.uniform(0, 5))
        begun, wall = time.monotonic(), time.time()
        os.kill(pid, number)
        await it.dialling(but=pid, deadline_s=40)
        held_s = time.monotonic() - begun
        found.append((held_s, await _next_call(it, wall + held_s) - wall))
    return found


async def _next_call(it: CallDeployment, since: float) -> float:
    """When the first call after that began."""
    while not (starts := [call.begun_at for call in it.twin.calls.values() if call.begun_at > since]):
        await asyncio.sleep(0.01)
    return min(starts)


async def takeovers(tries: int) -> Table:
    """A row a signal."""
    table = Table(title=f"Until another worker calls, in seconds; {tries} tries each")
    for column in ("signal", "lock: median", "lock: most", "next call: median", "next call: most"):
        table.add_column(column, justify="right")
    with tempfile.TemporaryDirectory(prefix="noroshi-benchmark-") as folder:
        mongod = Mongod(Path(folder) / "mongodb", find_mongod())
        await mongod.start()
        try:
            async with call_deployment(Path(folder), mongod.uri, 6, talk_s=(0.5, 1.5)) as it:
                await it.start_worker()
                await it.limit(6, 5)
                await it.launch(5000)
                for number, name in SIGNALS.items():
                    held, called = zip(*await measured(it, number, tries), strict=True)
                    cells = statistics.median(held), max(held), statistics.median(called), max(called)
                    table.add_row(name, *(f"{seconds:.2f}" for seconds in cells))
                    print(name, [f"{seconds:.2f}" for seconds in held], flush=True)
                assert it.twin.faults == [] == it.twin.rolling_faults(5)
                assert set(it.twin.dialled.values()) == {1}
        finally:
            await mongod.stop(0)
    return table


@app.command()
def main(tries: Annotated[int, typer.Option(help="How often each signal is sent.")] = 20) -> None:
    """Prints a table; takes about six minutes."""
    Console(width=120).print(asyncio.run(takeovers(tries)))


if __name__ == "__main__":
    app()

"""Sign-ins with the right password while 250 addresses guess, at one account or at a new address with each guess.

A known browser has signed in before; a new browser has not. Both try once a second. Guesses at one account use up its
attempts. Guesses at many accounts use up the time in which passwords are compared.
"""

import asyncio
import statistics
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from typing import Annotated

import httpx2
import typer
from rich.console import Console
from rich.table import Table

from benchmarks.account_browsers import Browser, register_admin
from benchmarks.servers import RunningDeployment, deployment
from storage.mongo import DEFAULT_DRIVER

ADDRESSES = 250
GUESSES_PER_S = 2
VICTIM = "ada@example.org"

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@dataclass(slots=True)
class Tries:
    """Outcomes of the tries of one browser, or of all guesses."""

    statuses: Counter[int] = field(default_factory=Counter)
    times_ms: list[float] = field(default_factory=list)

    async def sign_in(self, browser: Browser, mail_address: str, **password: str) -> None:
        """Tries once, and records the outcome."""
        status, time_ms = await browser.sign_in(mail_address, **password)
        self.statuses[status] += 1
        self.times_ms.append(time_ms)


async def guess(browser: Browser, mail_address: Callable[[], str], tries: Tries, ends_at_s: float) -> None:
    """Guesses passwords at a fixed rate, and does not wait for earlier answers longer than that."""
    while (now_s := time.perf_counter()) < ends_at_s:
        await tries.sign_in(browser, mail_address(), password=f"wrong guess {now_s}")
        await asyncio.sleep(max(0.0, now_s + 1 / GUESSES_PER_S - time.perf_counter()))


async def sign_in_each_second(browser: Callable[[], Browser], tries: Tries, ends_at_s: float) -> None:
    """Signs in with the right password. Begins after two seconds of guesses."""
    await asyncio.sleep(2)
    while time.perf_counter() < ends_at_s:
        await tries.sign_in(browser(), VICTIM)
        await asyncio.sleep(1)


async def run_phase(known: Browser, mail_address: Callable[[], str], seconds: float) -> dict[str, Tries]:
    """Returns the outcomes by who tried."""
    results = {"known browser": Tries(), "new browser": Tries(), "guesses": Tries()}
    strangers = [Browser(known.http, f"198.18.{n // 200}.{n % 200 + 1}") for n in range(ADDRESSES)]
    ends_at_s = time.perf_counter() + seconds
    await asyncio.gather(
        sign_in_each_second(lambda: known, results["known browser"], ends_at_s),
        sign_in_each_second(lambda: Browser(known.http, "192.0.2.2"), results["new browser"], ends_at_s),
        *(guess(each, mail_address, results["guesses"], ends_at_s) for each in strangers),
    )
    return results


async def measure(running: RunningDeployment, seconds: float) -> dict[str, dict[str, Tries]]:
    """Returns the outcomes by what strangers guess at."""
    numbers, limits = count(), httpx2.Limits(max_connections=None)
    async with httpx2.AsyncClient(base_url=running.product.url, timeout=60, limits=limits) as http:
        known = await register_admin(running, http, VICTIM)
        return {
            "many accounts": await run_phase(known, lambda: f"person{next(numbers)}@example.org", seconds),
            "the account": await run_phase(known, lambda: VICTIM, seconds),
        }


def print_table(phases: dict[str, dict[str, Tries]]) -> None:
    table = Table("guesses at", "who", "tries", "signed in", "wrong", "refused", "p50", "slowest")
    for target, results in phases.items():
        for who, tries in results.items():
            statuses = tries.statuses
            refused = statuses.total() - statuses[200] - statuses[401]
            times = f"{statistics.median(tries.times_ms):.0f} ms", f"{max(tries.times_ms):.0f} ms"
            counts = (statuses.total(), statuses[200], statuses[401], refused)
            table.add_row(target, who, *map(str, counts), *times)
    Console(width=120).print(table)


@app.command()
def main(
    seconds: Annotated[float, typer.Option(help="Duration of each of the two phases.")] = 20,
) -> None:
    """Prints a table. Fails if the known browser did not sign in at each try."""
    with deployment(1, DEFAULT_DRIVER) as running:
        phases = asyncio.run(measure(running, seconds))
    print_table(phases)
    if any(each["known browser"].statuses.keys() != {200} for each in phases.values()):
        raise typer.Exit(1)


if __name__ == "__main__":
    app()

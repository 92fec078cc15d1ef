"""Sign-ins of one person, alone and while ten members change their passwords to 72 characters of leetspeak."""

import asyncio
import random
import statistics
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Annotated

import httpx2
import typer
from rich.console import Console
from rich.table import Table

from benchmarks.account_browsers import PASSWORD, Browser, register_admin, register_member
from benchmarks.servers import RunningDeployment, deployment
from storage.mongo import DEFAULT_DRIVER

MEMBERS = 10
LEETSPEAK = "4@8({[<369!1|70$5+%2"
VICTIM = "ada@example.org"
LONGEST_MS = 1000

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@dataclass(slots=True)
class Results:
    """Measurements of all rounds."""

    alone_ms: list[float] = field(default_factory=list)
    known_ms: list[float] = field(default_factory=list)
    """Sign-ins in a known browser beside the changes."""

    new_ms: list[float] = field(default_factory=list)
    """Sign-ins in new browsers beside the changes."""

    changes_ms: list[float] = field(default_factory=list)
    changes: Counter[int] = field(default_factory=Counter)


@dataclass(slots=True)
class Member:
    """A member who changes the password again and again."""

    browser: Browser
    password: str = PASSWORD

    async def change(self, new: str, results: Results) -> None:
        """Changes the password to `new`."""
        began_s = time.perf_counter()
        response = await self.browser.post("/accounts/password", currentPassword=self.password, password=new)
        results.changes_ms.append((time.perf_counter() - began_s) * 1000)
        results.changes[response.status_code] += 1
        if response.status_code == 200:
            self.password = new


async def sign_in(browser: Browser, times_ms: list[float]) -> None:
    """Signs in. Raises: RuntimeError if that is refused."""
    status, time_ms = await browser.sign_in(VICTIM)
    if status != 200:
        raise RuntimeError(f"The sign-in was answered with {status}.")
    times_ms.append(time_ms)


async def run_round(members: list[Member], known: Browser, results: Results, rng: random.Random) -> None:
    """Signs in five times, and then until all members, who change their passwords at once, have an answer."""
    for _ in range(5):
        await sign_in(known, results.alone_ms)
    passwords = ["".join(rng.choices(LEETSPEAK, k=72)) for _ in members]
    pairs = zip(members, passwords, strict=True)
    changing = asyncio.gather(*(member.change(new, results) for member, new in pairs))
    await asyncio.sleep(0.05)
    while not changing.done():
        new = Browser(known.http, "192.0.2.2")
        await asyncio.gather(sign_in(known, results.known_ms), sign_in(new, results.new_ms))
    await changing


async def measure(running: RunningDeployment, rounds: int) -> Results:
    results, rng = Results(), random.Random(1)
    limits = httpx2.Limits(max_connections=None)
    async with httpx2.AsyncClient(base_url=running.product.url, timeout=120, limits=limits) as http:
        admin = await register_admin(running, http, VICTIM)
        browsers = [await register_member(admin, f"m{n}@example.org", f"198.18.0.{n + 1}") for n in range(MEMBERS)]
        members = [Member(each) for each in browsers]
        for _ in range(rounds):
            await run_round(members, admin, results, rng)
    return results


def print_table(results: Results) -> None:
    table = Table("", "number", "p50", "slowest", "answers")
    rows = {
        "sign-ins alone": (results.alone_ms, "200"),
        "beside ten changes, in a known browser": (results.known_ms, "200"),
        "beside ten changes, in new browsers": (results.new_ms, "200"),
        "changes of passwords": (results.changes_ms, ", ".join(f"{n} x {each}" for each, n in results.changes.items())),
    }
    for name, (times_ms, answers) in rows.items():
        times = f"{statistics.median(times_ms):.0f} ms", f"{max(times_ms):.0f} ms"
        table.add_row(name, str(len(times_ms)), *times, answers)
    Console(width=120).print(table)


@app.command()
def main(
    rounds: Annotated[int, typer.Option(help="How often the members change their passwords.")] = 5,
) -> None:
    """Prints a table. Fails if a sign-in took a second or longer."""
    with deployment(1, DEFAULT_DRIVER) as running:
        results = asyncio.run(measure(running, rounds))
    print_table(results)
    if max(results.known_ms + results.new_ms) >= LONGEST_MS:
        raise typer.Exit(1)


if __name__ == "__main__":
    app()

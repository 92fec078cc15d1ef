"""Lateness of scheduled posts while the only worker of `noroshi up` is killed by `kill -9`.

The posts go in equal parts to a topic, a home feed, a Mastodon twin and a webhook twin. The twins publish and then lose
some of their answers. A post is published when it is in the ledger of its target, or visible in the product.
"""

import asyncio
import os
import random
import signal
import tempfile
from datetime import timedelta
from pathlib import Path
from typing import Annotated

import typer
import uvloop

from benchmarks.servers import FOLDER_PREFIX
from benchmarks.tables import percentile, print_table
from storage.stores import open_stores
from tests.databases import CREDENTIAL_KEYS
from tests.e2e.publishing_load import TWIN_VARIABLES, PublishingLoadPlan, PublishingLoadScenario, open_load_scenario
from tests.product import RunningProduct, running_product
from tests.waiting import until

LEAD_S = 6.0
"""How long before the first due moment the posts are scheduled, so that the worker claims them ahead."""

DATABASE = "noroshi"

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


async def kill_workers(product: RunningProduct, plan: PublishingLoadPlan, rng: random.Random) -> None:
    """Kills the worker at random moments while posts are due, and lets the product replace it."""
    for _ in range(plan.kills):
        await asyncio.sleep(plan.duration_s / plan.kills * rng.uniform(0.7, 1.0))
        os.kill(await asyncio.to_thread(product.child, "noroshi worker"), signal.SIGKILL)


async def run_load(product: RunningProduct, load: PublishingLoadScenario, plan: PublishingLoadPlan) -> None:
    """Schedules the posts, kills workers, and waits for every outcome."""
    start_at = await load.scenario.now() + timedelta(seconds=LEAD_S)
    await load.schedule(plan, start_at)
    await asyncio.sleep((start_at - await load.scenario.now()).total_seconds())
    await kill_workers(product, plan, random.Random(7))
    await until(load.has_all_outcomes, plan.duration_s + plan.outcome_deadline_s)


async def measure(product: RunningProduct, plan: PublishingLoadPlan) -> list[str]:
    """Returns the row of one run on a running product."""
    mongodb_uri = f"mongodb://127.0.0.1:{product.database_port('mongod')}/?directConnection=true"
    redis_url = f"redis://127.0.0.1:{product.database_port('valkey-server')}/0"
    async with (
        open_stores(mongodb_uri, redis_url, DATABASE, credential_keys=CREDENTIAL_KEYS) as stores,
        open_load_scenario(stores, plan) as load,
    ):
        await run_load(product, load, plan)
        outcome, late_s = await load.compare_with_ledgers(), [late for _, late in await load.lateness_s()]
    counts = [str(len(outcome[name])) for name in ("lost", "repeated", "early")]
    return [str(plan.publications), str(plan.kills), *counts, *(f"{percentile(late_s, p):.1f}" for p in (50, 99, 100))]


@app.command()
def main(
    posts: Annotated[int, typer.Option(min=1, help="Number of posts.")] = 300,
    seconds: Annotated[float, typer.Option(help="Time over which the posts are due.")] = 60.0,
    kills: Annotated[int, typer.Option(min=0, help="How often the worker is killed.")] = 6,
    lost_answers: Annotated[float, typer.Option(help="Share of the twins' answers that are lost.")] = 0.05,
    runs: Annotated[int, typer.Option(min=1, help="Number of runs, each on a new product.")] = 1,
) -> None:
    """Measures lateness while workers are killed, and prints a table."""
    plan = PublishingLoadPlan(posts, seconds, workers=1, kills=kills, lost_response_rate=lost_answers)
    rows = []
    for _ in range(runs):
        with (
            tempfile.TemporaryDirectory(prefix=FOLDER_PREFIX) as folder,
            running_product(Path(folder) / "data", NOROSHI_LOG_LEVEL="warning", **TWIN_VARIABLES) as product,
        ):
            rows.append(uvloop.run(measure(product, plan)))
    columns = ("posts", "kills", "lost", "twice", "early", "p50 s late", "p99 s late", "latest s")
    print_table("Scheduled posts while workers are killed", columns, rows)


if __name__ == "__main__":
    app()

"""Pages after an election. The new primary holds the newest message, but does not know that it is acknowledged.

Each try kills the primary of a replica set of three when it has acknowledged a message. Two variants then read the
newest page until both show every acknowledged message: the product, and a process that trusts every new primary.
"""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer
from pymongo.errors import PyMongoError
from pymongo.server_description import ServerDescription
from rich.console import Console
from rich.table import Table

from server.embedded import Valkey, find_valkey
from storage.errors import Unavailable
from storage.mongo.elections import SettledPrimaries
from storage.stores import Stores, open_stores
from storage.timeline import MAX_TIMESTAMP, timeline_range
from tests.replica_set import TEST_COMMANDS, ReplicaSet, replica_set
from tests.storage.topic_scenario import TopicScenario, create_topic_scenario

PAUSE_S = 0.01
UNCOMMITTED_S = 4.0
"""How long the new primary reaches no majority, and so can commit nothing."""

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@dataclass
class ReadingVariant:
    """Stores that read the topic, and counts of their pages. An incomplete page lacks an acknowledged message."""

    name: str
    stores: Stores
    pages: int = 0
    incomplete: int = 0
    incomplete_tries: int = 0
    complete_after_s: list[float] = field(default_factory=list)

    async def read(self, topic: str, acknowledged: set[int], ends_at: float) -> None:
        """Reads the newest page until `ends_at`, and until a page holds all acknowledged messages."""
        began_s, incomplete_before, completed_s = time.monotonic(), self.incomplete, None
        while completed_s is None or time.monotonic() < ends_at:
            try:
                page = await self.stores.messages.page(topic, timeline_range(latest=MAX_TIMESTAMP, limit=50))
            except (Unavailable, PyMongoError):
                completed_s = None
            else:
                is_complete = acknowledged <= {each.timestamp for each in page.items}
                self.pages += 1
                self.incomplete += not is_complete
                completed_s = (completed_s or time.monotonic()) if is_complete else None
            await asyncio.sleep(PAUSE_S)
        self.complete_after_s.append(completed_s - began_s)
        self.incomplete_tries += self.incomplete > incomplete_before


def select_all(primaries: SettledPrimaries, servers: list[ServerDescription]) -> list[ServerDescription]:
    """Selects servers as the driver alone does."""
    return servers


@asynccontextmanager
async def open_variants(uri: str, redis_url: str) -> AsyncIterator[list[ReadingVariant]]:
    """Opens the stores of the product, and of a process that trusts new primaries at once."""
    select = SettledPrimaries.select
    SettledPrimaries.select = select_all  # type: ignore[method-assign, assignment]
    async with open_stores(uri, redis_url, "elections") as driver_alone:
        SettledPrimaries.select = select  # type: ignore[method-assign]
        async with open_stores(uri, redis_url, "elections") as product:
            yield [ReadingVariant("Noroshi", product), ReadingVariant("driver alone", driver_alone)]


async def run_try(members: ReplicaSet, variants: list[ReadingVariant]) -> None:
    """Kills the primary after a message. Both variants read until seconds after the new primary has a majority."""
    scenario: TopicScenario = await create_topic_scenario(variants[0].stores)
    acknowledged: set[int] = set()

    async def post() -> None:
        acknowledged.add((await scenario.post()).timestamp)

    await post()
    async with members.killed_primary(post):
        ends_at = time.monotonic() + 2 * UNCOMMITTED_S
        reading = [asyncio.create_task(each.read(scenario.topic.id, acknowledged, ends_at)) for each in variants]
        await asyncio.sleep(UNCOMMITTED_S)
    await asyncio.gather(*reading)


async def run(tries: int, folder: Path) -> list[ReadingVariant]:
    """Runs the tries on one replica set, and returns what each variant read."""
    valkey = Valkey(folder / "redis", find_valkey())
    await valkey.start()
    try:
        async with (
            replica_set(folder / "members", TEST_COMMANDS) as members,
            open_variants(members.uri, valkey.url) as variants,
        ):
            for number in range(tries):
                await run_try(members, variants)
                counts = ", ".join(f"{each.name} {each.incomplete} of {each.pages}" for each in variants)
                print(f"try {number + 1}: incomplete pages so far: {counts}", flush=True)
            return variants
    finally:
        await valkey.stop()


@app.command()
def main(tries: Annotated[int, typer.Option(help="Number of elections.")] = 50) -> None:
    """Prints how many pages lacked an acknowledged message."""
    with TemporaryDirectory() as folder:
        variants = asyncio.run(run(tries, Path(folder)))
    columns = [
        "variant",
        "tries",
        "tries with incomplete pages",
        "pages",
        "incomplete",
        "s until complete: median",
        "max",
    ]
    table = Table(*columns)
    for each in variants:
        seconds = sorted(each.complete_after_s)
        figures = [len(seconds), each.incomplete_tries, each.pages, each.incomplete]
        table.add_row(each.name, *map(str, figures), f"{seconds[len(seconds) // 2]:.1f}", f"{seconds[-1]:.1f}")
    Console().print(table)


if __name__ == "__main__":
    app()

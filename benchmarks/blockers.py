"""Delivery times of messages by an author who is blocked by many users, with two queries for the blocks.

Sockets subscribe to one topic in one process, and the author posts one message after another. The time of a delivery
begins with the call that posts the message, and ends when every socket has received it. The product's query reads the
blocks by subscribers only. The other query reads all blocks of the author. The queries are interleaved.
"""

import asyncio
import statistics
import time
from collections.abc import Collection
from contextlib import AsyncExitStack
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from benchmarks.fanout_targets import DATABASE, database_servers
from storage.identity.relations import RelationStore
from storage.stores import Stores, open_stores
from tests.server.graphql.graphql_server import GraphQLServer, RecordedSubscription, serve_graphql
from tests.storage.topic_scenario import create_topic_scenario

LISTENERS = 20
AUTHOR = "ann"

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


class UnfilteredRelationStore(RelationStore):
    """Reads all blockers of an author for each event."""

    async def blockers_among(self, organization_id: str, user_id: str, others: Collection[str]) -> frozenset[str]:
        """Returns all users who blocked the user."""
        query = {"org": organization_id, "blocked": user_id}
        return frozenset(block["user"] for block in await self._blocks.find(query).to_list(None))


async def block_author(stores: Stores, organization_id: str, count: int) -> None:
    """Deletes all blocks of the organization, and stores `count` blocks of the author."""
    await stores.mongo["blocks"].delete_many({"org": organization_id})
    blocks = [{"org": organization_id, "user": f"blocker-{n:08}", "blocked": AUTHOR} for n in range(count)]
    for start in range(0, count, 10_000):
        await stores.mongo["blocks"].insert_many(blocks[start : start + 10_000])


async def deliver(server: GraphQLServer, subscriptions: list[RecordedSubscription]) -> float:
    """Posts a message. Returns the milliseconds until all sockets have received it."""
    received_counts = [len(each.frames) for each in subscriptions]
    began_s = time.perf_counter()
    await server.scenario.post("hello", AUTHOR)
    while any(len(each.frames) == count for each, count in zip(subscriptions, received_counts, strict=True)):
        await asyncio.sleep(0)
    return (time.perf_counter() - began_s) * 1000


async def measure(blockers: list[int], messages: int) -> dict[tuple[int, str], list[float]]:
    """Returns the milliseconds of the deliveries, by number of blockers and variant."""
    durations_ms: dict[tuple[int, str], list[float]] = {}
    async with AsyncExitStack() as stack:
        servers = await stack.enter_async_context(database_servers("pymongo"))
        opening = open_stores(servers.mongodb_uri, servers.redis_url, DATABASE, "pymongo")
        stores = await stack.enter_async_context(opening)
        scenario = await create_topic_scenario(stores)
        server = await stack.enter_async_context(serve_graphql(scenario))
        listeners = [f"listener-{n}" for n in range(LISTENERS)]
        await server.join(*listeners)
        subscriptions = await stack.enter_async_context(server.all_subscribed(*listeners))
        variants = {"listeners only": stores.relations, "all blockers": UnfilteredRelationStore(stores.mongo)}
        for count in blockers:
            await block_author(stores, server.scenario.organization_id, count)
            for _ in range(messages):
                for variant, relations in variants.items():
                    object.__setattr__(stores, "relations", relations)
                    durations_ms.setdefault((count, variant), []).append(await deliver(server, subscriptions))
    return durations_ms


@app.command()
def main(
    blockers: Annotated[str, typer.Option(help="Numbers of blockers, separated by commas.")] = "0,1000,50000",
    messages: Annotated[int, typer.Option(min=2, help="Messages of each variant.")] = 50,
) -> None:
    """Measures both variants and prints a table."""
    counts = [int(each) for each in blockers.split(",")]
    durations_ms = asyncio.run(measure(counts, messages))
    table = Table(title=f"Delivery of a message to {LISTENERS} sockets, ms")
    for column in ("blockers", "variant", "p50", "p95"):
        table.add_column(column, justify="left" if column == "variant" else "right")
    for (count, variant), values in durations_ms.items():
        p95 = statistics.quantiles(values, n=20)[-1]
        table.add_row(f"{count:,}", variant, f"{statistics.median(values):.1f}", f"{p95:.1f}")
    Console().print(table)


if __name__ == "__main__":
    app()

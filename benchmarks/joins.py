"""Joins of many users to one community, at an even rate and all at once, through two sets of stores.

The two sets of stores are separate, as in two web processes, but both are in this process.

The product commits joins that arrive together in one transaction. The other variant has a transaction for each join,
with an increment of the community's counter, and conflicts retried as in the product.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from benchmarks.fanout_targets import DATABASE, database_servers
from storage.chat.communities import NewCommunity
from storage.chat.memberships import COMMUNITIES, MEMBERSHIPS, new_membership
from storage.chat.records import Community
from storage.errors import Unavailable
from storage.identity.records import User
from storage.ids import new_id
from storage.mongo import Session
from storage.stores import Stores, open_stores

JoinVariant = Callable[[Stores, Community, User], Awaitable[object]]

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


async def join_in_batches(stores: Stores, community: Community, user: User) -> None:
    """Joins as the product does."""
    await stores.communities.join(community, user)


async def join_in_separate_transaction(stores: Stores, community: Community, user: User) -> None:
    """Joins in a separate transaction."""
    mongo = stores.mongo

    async def work(session: Session) -> None:
        if await mongo[MEMBERSHIPS].find_one({"community": community.id, "user": user.id}, session=session) is None:
            await mongo[MEMBERSHIPS].insert_one(new_membership(community.id, user, await mongo.now()), session=session)
            await mongo[COMMUNITIES].update_one({"_id": community.id}, {"$inc": {"members": 1}}, session=session)

    await mongo.transact(work)


VARIANTS: dict[str, JoinVariant] = {"group commit": join_in_batches, "a transaction each": join_in_separate_transaction}


@dataclass(frozen=True, slots=True)
class JoinResult:
    """The outcome of one join."""

    seconds: float
    is_refused: bool


async def time_join(join: Awaitable[object], delay_s: float) -> JoinResult:
    """Joins after a delay. The duration is measured from the end of the delay."""
    await asyncio.sleep(delay_s)
    began_s = time.perf_counter()
    try:
        await join
    except Unavailable:
        return JoinResult(time.perf_counter() - began_s, is_refused=True)
    return JoinResult(time.perf_counter() - began_s, is_refused=False)


async def measure(
    processes: list[Stores], join: JoinVariant, joins: int, over_s: float
) -> tuple[float, list[JoinResult]]:
    """Returns the seconds until all joins to a new community have a result, and the results.

    Raises: AssertionError, if the count of members is wrong.
    """
    org = new_id()
    users = [User(f"u{number}", f"u{number}", "User", org, (), 0, 0) for number in range(joins + 1)]
    community = await processes[0].communities.create(NewCommunity(org, "Hills", ""), users.pop(), None)
    began_s = time.perf_counter()
    results = await asyncio.gather(
        *(
            time_join(join(processes[number % len(processes)], community, user), over_s * number / joins)
            for number, user in enumerate(users)
        )
    )
    seconds = time.perf_counter() - began_s
    members = await processes[0].mongo[MEMBERSHIPS].count_documents({"community": community.id})
    assert (await processes[0].communities.get(org, community.id)).member_count == members
    assert members > sum(not result.is_refused for result in results)
    return seconds, results


def percentile_ms(results: list[JoinResult], share: float) -> str:
    """Returns a percentile of the latencies in milliseconds. `share` is 0.5 for p50."""
    ordered = sorted(result.seconds for result in results)
    return f"{ordered[min(int(share * len(ordered)), len(ordered) - 1)] * 1000:,.0f}"


async def run(loads: list[tuple[int, float]], console: Console) -> None:
    """Measures both variants under every load, and prints the table."""
    table = Table(title="Joins to one community, two processes' stores")
    for column in ("joins", "over s", "variant", "all done s", "p50 ms", "p99 ms", "refused"):
        table.add_column(column, justify="left" if column == "variant" else "right")
    async with (
        database_servers("pymongo") as servers,
        open_stores(servers.mongodb_uri, servers.redis_url, DATABASE, "pymongo") as first_process,
        open_stores(servers.mongodb_uri, servers.redis_url, DATABASE, "pymongo") as second_process,
    ):
        for joins, over_s in loads:
            for variant, join in VARIANTS.items():
                seconds, results = await measure([first_process, second_process], join, joins, over_s)
                latency = percentile_ms(results, 0.5), percentile_ms(results, 0.99)
                refused = sum(result.is_refused for result in results)
                table.add_row(f"{joins:,}", f"{over_s:g}", variant, f"{seconds:.1f}", *latency, f"{refused:,}")
    console.print(table)


@app.command()
def main(
    joins: Annotated[
        int, typer.Option(min=1, help="Number of joins of the even load and of the largest burst.")
    ] = 1000,
    over_s: Annotated[float, typer.Option(help="Seconds over which the even load is spread.")] = 10.0,
) -> None:
    """Measures an even load and bursts of a tenth, a fifth and all of the joins."""
    import uvloop

    loads = [(joins, over_s), (joins // 10, 0.0), (joins // 5, 0.0), (joins, 0.0)]
    uvloop.run(run(loads, Console(width=120)))


if __name__ == "__main__":
    app()

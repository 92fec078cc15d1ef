"""`noroshi calls ...`: checks stored phone numbers."""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from server.commands.database import DataDir, Org, open_database

if TYPE_CHECKING:
    from storage.calls.number_check import StoredNumber

calls_app = typer.Typer(help="Outbound calls.", no_args_is_help=True)


@calls_app.command()
def check_numbers(org: Org, data_dir: DataDir = None) -> None:
    """List stored numbers that no operator has assigned, and exit with 1 when there are any. Nothing is changed."""
    if asyncio.run(_list_doubtful_numbers(org, data_dir)):
        raise typer.Exit(1)


async def _list_doubtful_numbers(org: str, data_dir: Path | None) -> int:
    from storage.calls.number_check import NumberCheck

    count = doubtful = 0
    async with open_database(data_dir) as mongo:
        async for number in NumberCheck(mongo).numbers(org):
            count += 1
            if number.is_doubtful:
                doubtful += 1
                typer.echo(f"{number.phone_number}  {_place(number)}")
    typer.echo(f"{count} numbers, {doubtful} not assigned.")
    return doubtful


def _place(number: "StoredNumber") -> str:
    job = number.job
    return "do-not-call list" if job is None else f"job {job['_id']} ({job['name']}), row {number.row}"

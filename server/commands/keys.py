"""`noroshi key ...`: creates, lists, rotates and revokes service keys, on MongoDB alone."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from server.commands.database import DataDir, Org, open_database
from storage.ids import stored_id

if TYPE_CHECKING:
    from storage.identity.keys.records import ServiceKey
    from storage.identity.keys.store import ServiceKeyStore

MAX_LISTED = 1000
MAX_NAME_CHARS = 100

key_app = typer.Typer(help="Keys by which services send requests.", no_args_is_help=True)

KeyId = Annotated[
    str,
    typer.Argument(metavar="ID", help="The key's id: the part between `nrk_` and the secret.", callback=stored_id),
]


@key_app.command()
def create(
    org: Org,
    name: Annotated[str, typer.Option(help="A name for the key and its service account.")],
    scope: Annotated[list[str], typer.Option(help="What the key may be used for; may be repeated.")],
    days: Annotated[int | None, typer.Option(min=1, help="Days until the key expires. Default: never")] = None,
    data_dir: DataDir = None,
) -> None:
    """Create a service key and print it. It is not shown again."""
    from storage.identity.audit import command_line_actor
    from storage.identity.keys.records import NewServiceKey
    from storage.mongo.text_index.visible_characters import has_visible_character

    scopes = _checked_scopes(scope)
    if len(name) > MAX_NAME_CHARS or not has_visible_character(name):
        raise typer.BadParameter(f"1 to {MAX_NAME_CHARS} characters, not only invisible ones", param_hint="--name")

    async def work(keys: "ServiceKeyStore") -> None:
        expires_at = None if days is None else await keys.now() + timedelta(days=days)
        issued = await keys.create(command_line_actor(org), NewServiceKey(name, scopes, expires_at))
        typer.echo(issued.secret)

    _run(work, data_dir)


@key_app.command("list")
def list_(org: Org, data_dir: DataDir = None) -> None:
    """List the service keys of an organization, the newest first, without their secrets."""

    async def work(keys: "ServiceKeyStore") -> None:
        for each in await keys.list_keys(org, None, MAX_LISTED):
            typer.echo(_line(each))

    _run(work, data_dir)


@key_app.command()
def rotate(
    id_: KeyId,
    org: Org,
    grace_s: Annotated[
        int, typer.Option(min=0, max=30 * 86_400, help="Seconds for which the present secret stays valid.")
    ],
    data_dir: DataDir = None,
) -> None:
    """Issue a new secret for a key and print the key. It is not shown again."""
    from storage.identity.audit import command_line_actor

    async def work(keys: "ServiceKeyStore") -> None:
        typer.echo((await keys.rotate(command_line_actor(org), id_, grace_s)).secret)

    _run(work, data_dir)


@key_app.command()
def revoke(id_: KeyId, org: Org, data_dir: DataDir = None) -> None:
    """End a key for good. Requests with it are refused within 10 seconds."""
    from storage.identity.audit import command_line_actor

    async def work(keys: "ServiceKeyStore") -> None:
        await keys.revoke(command_line_actor(org), id_)
        typer.echo(f"{id_} is revoked.")

    _run(work, data_dir)


def _checked_scopes(scopes: list[str]) -> list[str]:
    from storage.identity.keys.scopes import SCOPES

    if unknown := sorted(set(scopes) - set(SCOPES)):
        raise typer.BadParameter(
            f"There is no scope {', '.join(unknown)}; there are: {', '.join(SCOPES)}.", param_hint="--scope"
        )
    return sorted(set(scopes))


def _line(key: "ServiceKey") -> str:
    state = "active" if key.is_active else "revoked" if key.revoked_at else "expired"
    used = f"last used {_date(key.last_used_at):10}"
    return f"{key.id}  {state:8} {used}  by {key.created_by_id}  {key.name}  {' '.join(key.scopes)}"


def _date(at: datetime | None) -> str:
    return "never" if at is None else f"{at:%Y-%m-%d}"


def _run(work: "Callable[[ServiceKeyStore], Awaitable[None]]", data_dir: Path | None) -> None:
    async def run() -> None:
        from storage.identity.keys.store import ServiceKeyStore

        async with open_database(data_dir) as mongo:
            await work(ServiceKeyStore(mongo))

    asyncio.run(run())

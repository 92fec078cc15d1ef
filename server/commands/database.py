"""The database of commands that read or change stored data without the running product."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from server.processes import StartupError

if TYPE_CHECKING:
    from storage.mongo import Mongo

Org = Annotated[str, typer.Option("--org", help="The organization's id.", show_default=False)]
DataDir = Annotated[
    Path | None, typer.Option(help="Where embedded servers are kept. Default: .noroshi", show_default=False)
]


@asynccontextmanager
async def open_database(data_dir: Path | None) -> "AsyncIterator[Mongo]":
    """Opens the configured MongoDB, else the data folder's embedded one. Raises: StartupError, also for its body."""
    from pymongo.errors import PyMongoError

    from server.embedded import check_servers
    from server.embedded.running import running_mongodb
    from server.migration import check_data
    from server.settings import Settings
    from storage.errors import DomainError
    from storage.mongo import connect

    settings = Settings.from_environment(data_dir=data_dir)
    async with running_mongodb(settings.mongodb_uri, settings.data_dir, settings.embedded_mongod) as uri:
        await check_servers(uri, None)
        await check_data(settings.with_values(mongodb_uri=uri))
        mongo = connect(uri, settings.database, settings.mongo_driver)
        try:
            yield mongo
        except DomainError as error:
            raise StartupError(error.message) from error
        except PyMongoError as error:
            raise StartupError(f"MongoDB failed: {error}") from error
        finally:
            await mongo.close()

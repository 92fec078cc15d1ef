"""Checks the data before a process starts, and migrates them. Errors are one line."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from pymongo.errors import PyMongoError

from server.embedded import mongodb_failure
from server.processes import StartupError
from server.settings import Settings
from storage.errors import Unavailable
from storage.heartbeats import process_name
from storage.locks import LockLost, Locks
from storage.migrations.migrator import ShowProgress, describe, migrate
from storage.migrations.plan import DataMismatch, read_plan
from storage.migrations.start import prepare_database
from storage.mongo import Mongo, connect

RETRY_ADVICE = "run `noroshi migrate` again, which continues"


async def check_data(settings: Settings) -> None:
    """Prepares an empty database. Raises: StartupError if the data do not fit this release."""
    async with _connected(settings) as mongo:
        await prepare_database(mongo)


async def plan_migration(settings: Settings) -> list[str]:
    """Returns a line for each thing that a migration would do. Raises: StartupError."""
    async with _connected(settings) as mongo:
        return await describe(mongo, await read_plan(mongo))


async def migrate_data(settings: Settings, show: ShowProgress) -> None:
    """Brings the data to this release. An index may take hours to build. Raises: StartupError."""
    async with _connected(settings) as mongo, _connected(settings, limits_commands=False) as mongo_without_timeout:
        try:
            await migrate(mongo_without_timeout, Locks(mongo), process_name(), show)
        except LockLost:
            raise StartupError(f"The lease of the migration could not be renewed: {RETRY_ADVICE}.") from None
        except PyMongoError as error:
            raise StartupError(f"{mongodb_failure(error, settings.database)}: {RETRY_ADVICE}.") from error
        except Unavailable as error:
            raise StartupError(f"MongoDB is too busy for the migration: {RETRY_ADVICE}.") from error


@asynccontextmanager
async def _connected(settings: Settings, *, limits_commands: bool = True) -> AsyncIterator[Mongo]:
    """Connects to MongoDB. Raises: StartupError if the block raises PyMongoError or DataMismatch."""
    uri, database, driver = settings.mongodb_uri or "", settings.database, settings.mongo_driver
    mongo = connect(uri, database, driver) if limits_commands else connect(uri, database, driver, None)
    try:
        yield mongo
    except DataMismatch as error:
        raise StartupError(str(error)) from None
    except PyMongoError as error:
        raise StartupError(f"{mongodb_failure(error, settings.database)}.") from error
    finally:
        await mongo.close()

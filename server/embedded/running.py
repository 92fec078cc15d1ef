"""Runs MongoDB for a command: the configured server, or else the embedded server of the data folder."""

from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path

from server.embedded.binaries import find_mongod
from server.embedded.data_dir import lock_data_dir, prepare_data_dir
from server.embedded.mongod import Mongod
from server.embedded.private_server import stored_port
from server.processes import StartupError

MONGODB = "mongodb"
"""The folder of the embedded MongoDB in the data folder."""


def require_database(uri: str | None, data_dir: Path) -> None:
    """Raises: StartupError if no MongoDB is set, and no embedded one has stored data in the folder. Creates nothing.

    A command would otherwise work on a new, empty database, and say that all is well.
    """
    if uri is None and not any((data_dir / MONGODB / "data").glob("WiredTiger*")):
        raise StartupError(
            f"MONGODB_URI is not set, and the data folder {data_dir.absolute()} holds no database: set MONGODB_URI, or "
            "name the folder of `noroshi up` with --data-dir."
        )


@asynccontextmanager
async def running_mongodb(uri: str | None, data_dir: Path, program: str | None = None) -> AsyncIterator[str]:
    """Yields `uri`. If it is None, starts the data folder's MongoDB unless it runs, and yields its address.

    Raises: StartupError.
    """
    if uri is not None:
        yield uri
        return
    require_database(uri, data_dir)
    folder = prepare_data_dir(data_dir)
    mongod = Mongod(folder / MONGODB, find_mongod(program))
    with ExitStack() as stack:
        try:
            stack.enter_context(lock_data_dir(folder))
        except StartupError:
            # The process that holds the lock runs this MongoDB, unless it uses another one.
            if not (port := stored_port(mongod.folder)):
                raise
            mongod.port = port
            yield mongod.uri
            return
        await mongod.start()
        try:
            yield mongod.uri
        finally:
            await mongod.stop()

"""The data folder's MongoDB for a command: the one that `noroshi up` runs, or one started for as long as it takes."""

from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path

from server.embedded.binaries import find_mongod
from server.embedded.data_dir import held, prepare
from server.embedded.mongod import Mongod
from server.processes import StartupError


@asynccontextmanager
async def embedded_mongodb(uri: str | None, data_dir: Path) -> AsyncIterator[str]:
    """The address of MongoDB: the one given, else the data folder's. Raises: StartupError."""
    if uri is not None:
        yield uri
        return
    folder = prepare(data_dir)
    mongod = Mongod(folder / "mongodb", find_mongod())
    with ExitStack() as stack:
        try:
            stack.enter_context(held(folder))
        except StartupError:
            # `noroshi up` holds it, and runs what is asked for.
            mongod.port = int((mongod.folder / "port").read_text())
            yield mongod.uri
            return
        await mongod.start()
        try:
            yield mongod.uri
        finally:
            await mongod.stop()

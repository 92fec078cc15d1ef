"""`noroshi migrate`: brings the stored data to this release, with a progress bar on a terminal and lines elsewhere."""

import asyncio
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from server.embedded import check_servers
from server.embedded.running import running_mongodb
from server.migration import migrate_data, plan_migration
from server.settings import Settings
from storage.migrations.migrator import MigrationProgress, ShowProgress

LINE_EVERY_S = 30.0
PrintText = Callable[[str], None]


def run_migration(settings: Settings, say: PrintText) -> None:
    """Migrates the configured MongoDB, or else the embedded MongoDB of the data folder. Raises: StartupError."""

    async def run() -> None:
        async with running_mongodb(settings.mongodb_uri, settings.data_dir, settings.embedded_mongod) as uri:
            await check_servers(uri, None)
            with shown_progress(say) as show:
                await migrate_data(settings.with_values(mongodb_uri=uri), show)

    asyncio.run(run())
    say("The data fit this release.")


def report_pending_migration(settings: Settings, say: PrintText) -> bool:
    """Prints what a migration would do. Returns whether there is nothing to do. Raises: StartupError."""

    async def read() -> list[str]:
        async with running_mongodb(settings.mongodb_uri, settings.data_dir, settings.embedded_mongod) as uri:
            await check_servers(uri, None)
            return await plan_migration(settings.with_values(mongodb_uri=uri))

    lines = asyncio.run(read())
    for line in lines or ["The data fit this release."]:
        say(line)
    return not lines


@contextmanager
def shown_progress(say: PrintText) -> Iterator[ShowProgress]:
    """Yields a function that shows what the migration does."""
    if not sys.stdout.isatty():
        yield ProgressPrinter(say).show
        return
    from rich.progress import Progress as Bar

    with Bar() as bar:
        task = bar.add_task("Migration", total=None)
        yield lambda progress: bar.update(
            task, description=progress.title, completed=progress.done, total=progress.total or None
        )


class ProgressPrinter:
    """Prints the title of each part of the migration when it begins, and the progress of a long part every 30 s."""

    def __init__(self, say: PrintText) -> None:
        self._say = say
        self._title = ""
        self._printed_at = 0.0

    def show(self, progress: MigrationProgress) -> None:
        """Prints a line for a new title, and for the same title if its last line is 30 s old."""
        if progress.title == self._title and time.monotonic() - self._printed_at < LINE_EVERY_S:
            return
        self._title, self._printed_at = progress.title, time.monotonic()
        self._say(f"{progress.title}: {progress.done / progress.total:.0%}" if progress.total else progress.title)

"""Instructions of the web process for each page, query and post: this checkout compared with another one.

Valgrind's callgrind counts the instructions. Unlike times, they hardly depend on the speed and the load of the machine.
Both checkouts run with this interpreter and its packages, one after the other, on the same data and with the same load.
The other checkout needs no setup. The instructions of an idle web process in the same time are subtracted.
"""

import asyncio
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Awaitable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import typer

from benchmarks.before_after import AFTER, BEFORE, medians
from benchmarks.load import post_request
from benchmarks.posting import POST, TEXT
from benchmarks.screens import ROLES, SIZES, connection, screen_requests
from benchmarks.servers import FOLDER_PREFIX, DatabaseServers, WebProcesses, database_servers, web_process
from benchmarks.tables import print_table
from benchmarks.timeline_data import timeline_data
from server.auth.tokens import mint
from storage.stores import open_stores
from tests.databases import CREDENTIAL_KEYS
from tests.product import NOROSHI
from tests.resolvers.people import CREATE_POST, SignIn
from tests.screens.data import VIEWER, fill_screens

ROOT = Path(__file__).parents[1]
SCREENS_ORGANIZATION = "screens"
"""Another organization than that of the pages, whose topics would be in the sidebar otherwise."""

TIMED_SCREENS = {"sidebar: trending"}
"""Topics leave this list as time passes, so the checkout that is measured later would have less to do."""

NEWEST_READERS, RANDOM_READERS, POSTERS = 16, 4, 20
RANDOM_REQUESTS = 500
PART = "part"
COLUMNS = ["operation", BEFORE, AFTER, "change", "counted before", "counted after"]

Operation = Sequence[Sequence[bytes]]
"""The requests of each connection, which repeats them, one after each answer."""

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@dataclass(frozen=True)
class Durations:
    """Seconds in which each operation is repeated before and while it is counted, and in which nothing is sent."""

    warm_up_s: float
    counted_s: float
    idle_s: float


@dataclass
class Counts:
    """Millions of instructions for each operation in every start, and operations counted, by name and checkout."""

    millions: dict[tuple[str, str], list[float]] = field(default_factory=lambda: defaultdict(list))
    operations: dict[tuple[str, str], int] = field(default_factory=lambda: defaultdict(int))
    refused: set[str] = field(default_factory=set)
    """Operations that one of the checkouts answers with errors."""

    def add(self, name: str, variant: str, instructions: float, operations: int) -> None:
        """Adds the instructions of some operations."""
        self.millions[name, variant].append(instructions / operations / 1e6)
        self.operations[name, variant] += operations

    def rows(self) -> Iterator[list[str]]:
        """Yields a row for each operation that both checkouts answer."""
        for row in medians({key: each for key, each in self.millions.items() if key[0] not in self.refused}):
            yield [*row, *(f"{self.operations[row[0], variant]:,}" for variant in (BEFORE, AFTER))]


class Callgrind:
    """Controls a process in callgrind, which writes profiles into a folder."""

    def __init__(self, pid: int, folder: Path) -> None:
        self._pid, self._folder = pid, folder

    async def count(self, work: Awaitable[int], profile: str) -> tuple[int, int, float]:
        """Returns the instructions during the work, its result, and its duration. Keeps the profile under a name."""
        self._control("-i", "on")
        self._control("-z")
        began_s = time.monotonic()
        result = await work
        took_s = time.monotonic() - began_s
        self._control("-d")
        self._control("-i", "off")
        (part,) = self._folder.glob(f"{PART}.*")
        return instructions(part.rename(self._folder / profile)), result, took_s

    def _control(self, *command: str) -> None:
        arguments = ["callgrind_control", *command, str(self._pid)]
        subprocess.run(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)


def instructions(profile: Path) -> int:
    """Returns the number of instructions of a profile."""
    (total,) = re.findall(r"^totals: (\d+)$", profile.read_text(errors="replace"), re.MULTILINE)
    return int(total)


def in_callgrind(program: Sequence[str], folder: Path) -> list[str]:
    """Returns the command that runs a program in callgrind, which counts nothing before `Callgrind.count`."""
    options = ["--quiet", "--tool=callgrind", "--instr-atstart=no", f"--callgrind-out-file={folder / PART}"]
    return ["valgrind", *options, *program]


async def fill(servers: DatabaseServers) -> Mapping[str, Operation]:
    """Stores the data of all operations. Returns the operations. Posts are added to none of the pages."""
    async with timeline_data(servers) as data:
        newest, random = data.newest_page_requests(NEWEST_READERS), data.random_page_requests(RANDOM_REQUESTS)
        variables = {"input": {"topicId": data.topics[-1].id, "text": TEXT}}
        posts = [post_request("/graphql", token, POST, variables) for token in data.tokens[:POSTERS]]
        text = {"input": {"text": TEXT}}
        feed_posts = [post_request("/graphql", token, CREATE_POST, text) for token in data.tokens[:POSTERS]]
    addresses = servers.mongodb_uri, servers.redis_url, servers.database
    async with open_stores(*addresses, credential_keys=CREDENTIAL_KEYS) as stores:
        await fill_screens(SignIn(stores), SIZES, SCREENS_ORGANIZATION)
    viewer = mint(servers.secret, user_id=VIEWER, organization_id=SCREENS_ORGANIZATION, roles=ROLES)
    screens = screen_requests(viewer)
    return {
        f"newest page, {NEWEST_READERS} readers": [[page.encode()] for page in newest],
        f"random page, {RANDOM_READERS} readers": [
            [page.encode() for page in random[number::RANDOM_READERS]] for number in range(RANDOM_READERS)
        ],
        **{name: [[request]] for name, request in screens.items() if name not in TIMED_SCREENS},
        f"post, {POSTERS} clients": [[post.encode()] for post in posts],
        f"createPost, {POSTERS} clients": [[post.encode()] for post in feed_posts],
    }


async def is_refused(web: WebProcesses, operation: Operation) -> bool:
    """Returns whether the web process answers with errors, such as those of a query of a later release."""
    async with connection(web) as sender:
        return b'"errors"' in await sender.answer(operation[0][0])


async def repeat(web: WebProcesses, operation: Operation, seconds: float) -> int:
    """Sends the requests of an operation in a closed loop. Returns the number of answers."""

    async def send(requests: Sequence[bytes]) -> int:
        async with connection(web) as sender:
            answers = 0
            while time.monotonic() < ends_at_s:
                await sender.send(requests[answers % len(requests)])
                answers += 1
        return answers

    ends_at_s = time.monotonic() + seconds
    return sum(await asyncio.gather(*map(send, operation)))


async def count_start(
    web: WebProcesses,
    callgrind: Callgrind,
    variant: str,
    operations: Mapping[str, Operation],
    durations: Durations,
    counts: Counts,
) -> None:
    """Counts the operations of one start of a checkout's web process."""
    counts.refused |= {name for name, operation in operations.items() if await is_refused(web, operation)}
    answered = {name: operation for name, operation in operations.items() if name not in counts.refused}
    for operation in answered.values():
        await repeat(web, operation, durations.warm_up_s)
    idle, _, idle_s = await callgrind.count(asyncio.sleep(durations.idle_s, 0), f"{variant}, idle")
    for name, operation in answered.items():
        work = repeat(web, operation, durations.counted_s)
        total, number, took_s = await callgrind.count(work, f"{variant}, {name}")
        counts.add(name, variant, total - idle * took_s / idle_s, number)
        typer.echo(f"{variant}, {name}: {counts.millions[name, variant][-1]:.3f}", err=True)


async def measure(checkouts: Mapping[str, Path], only: str, starts: int, durations: Durations, folder: Path) -> Counts:
    """Counts the operations of both checkouts whose names contain `only`. Writes profiles into the folder."""
    counts = Counts()
    async with database_servers() as servers:
        operations = {name: each for name, each in (await fill(servers)).items() if only in name}
        for variant, checkout in [*checkouts.items()] * starts:
            program = ["env", f"PYTHONPATH={checkout}", "PYTHONHASHSEED=0", *in_callgrind(NOROSHI, folder)]
            with web_process(servers, program) as web:
                await count_start(web, Callgrind(web.pid, folder), variant, operations, durations, counts)
    return counts


def require_valgrind() -> None:
    """Exits unless valgrind is installed."""
    missing = [program for program in ("valgrind", "callgrind_control") if not shutil.which(program)]
    if missing:
        sys.exit(
            f"The benchmark counts instructions with valgrind; not found: {', '.join(missing)}. "
            "Install it: `apt-get install valgrind`."
        )


@app.command()
def main(
    before: Annotated[Path, typer.Option(exists=True, file_okay=False, help="Folder of the other checkout.")],
    starts: Annotated[int, typer.Option(min=1, help="Starts of each checkout's web process.")] = 1,
    seconds: Annotated[float, typer.Option(min=0.1, help="Seconds in which each operation is counted.")] = 18.0,
    warm_up_s: Annotated[float, typer.Option("--warm-up", help="Seconds of each operation before.")] = 3.0,
    idle_s: Annotated[
        float, typer.Option("--idle", min=0.1, help="Seconds in which the idle process is counted.")
    ] = 12,
    only: Annotated[str, typer.Option(help="Text in the names of the operations to count.")] = "",
    profiles: Annotated[
        Path | None, typer.Option(help="Folder that keeps the profiles of the last start, for callgrind_annotate.")
    ] = None,
) -> None:
    """Counts instructions, and prints a table."""
    require_valgrind()
    checkouts, durations = {BEFORE: before.absolute(), AFTER: ROOT}, Durations(warm_up_s, seconds, idle_s)
    with tempfile.TemporaryDirectory(prefix=FOLDER_PREFIX) as temporary:
        folder = profiles.absolute() if profiles else Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        counts = asyncio.run(measure(checkouts, only, starts, durations, folder))
    title = f"Million instructions of the web process for each operation, starts of each checkout: {starts}"
    print_table(title, COLUMNS, counts.rows())
    if counts.refused:
        typer.echo(f"Not compared, because a checkout answers with errors: {', '.join(sorted(counts.refused))}.")


if __name__ == "__main__":
    app()

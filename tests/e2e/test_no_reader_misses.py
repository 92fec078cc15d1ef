"""Many writer processes, readers that page by `oldest`, and elections: no reader misses a message.

With writers that allocate a timestamp first and insert later, the same harness must find missed messages.
"""

import asyncio
import itertools
import random
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

import orjson
import pytest
from pymongo.errors import PyMongoError

from storage.errors import Unavailable
from storage.mongo import Driver
from storage.stores import open_stores
from storage.timeline import timeline_range
from tests.databases import fresh_database
from tests.e2e.writer import Task
from tests.replica_set import TEST_COMMANDS, ReplicaSet, replica_set
from tests.storage.topic_scenario import TopicScenario, create_topic_scenario

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(300)]

ROOT = Path(__file__).parents[2]
WRITERS = 8
READERS = 4


@dataclass
class Reader:
    """A reader that pages from the end of its last page."""

    scenario: TopicScenario
    read: list[int] = field(default_factory=list)

    async def read_on(self) -> bool:
        """Reads the next page, and returns whether it held messages."""
        limit = random.choice([1, 3, 10, 50, 999])
        asked = timeline_range(oldest=self.read[-1] if self.read else 0, limit=limit, inclusive=False)
        try:
            page = await self.scenario.stores.messages.page(self.scenario.topic.id, asked)
        except (Unavailable, PyMongoError):
            return True
        self.read += [message.timestamp for message in page.items]
        return bool(page.items)

    async def read_while(self, writing: asyncio.Future[None]) -> None:
        while not writing.done() or await self.read_on():
            await self.read_on()
            await asyncio.sleep(random.uniform(0, 0.01))


@dataclass(frozen=True)
class Verdict:
    """The messages a reader saw, compared with those stored at the end."""

    missed: set[int]
    vanished: set[int]
    rises: bool


def verdict(read: list[int], final: list[int]) -> Verdict:
    rises = all(earlier < later for earlier, later in itertools.pairwise(read))
    return Verdict(set(final) - set(read), set(read) - set(final), rises)


@dataclass
class Run:
    """A topic, its writers and its readers."""

    members: ReplicaSet
    redis_url: str
    driver: Driver
    folder: Path
    database: str
    scenario: TopicScenario
    acknowledged: list[int] = field(default_factory=list)

    async def write(self, count: int, writers: int = WRITERS, careless: bool = False) -> None:
        """Runs `count` writers until each has posted its share."""
        uri, topic_id = self.members.uri, self.scenario.topic.id
        common = (uri, self.redis_url, self.database, self.driver, topic_id)
        tasks = [Task(*common, f"writer{number}", count, careless) for number in range(writers)]
        processes = [self.start(task) for task in tasks]
        try:
            await until(lambda: all("ready" in self.lines(task) for task in tasks))
            for process in processes:
                assert process.stdin is not None
                process.stdin.write(b"go\n")
                process.stdin.close()
            await until(lambda: all(process.poll() is not None for process in processes))
        finally:
            for process in processes:
                process.kill()
                process.wait()
        for task in tasks:
            self.collect(task)

    def start(self, task: Task) -> subprocess.Popen[bytes]:
        arguments = orjson.dumps(asdict(task)).decode()
        with self.file(task, "out").open("wb") as out, self.file(task, "err").open("wb") as err:
            command = [sys.executable, "-m", "tests.e2e.writer", arguments]
            return subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=out, stderr=err)

    def collect(self, task: Task) -> None:
        acknowledged = [line.split() for line in self.lines(task) if line.startswith(task.writer)]
        assert len(acknowledged) == task.count, self.file(task, "err").read_text()[-2000:]
        self.acknowledged += [int(timestamp) for _, _, timestamp in acknowledged]

    def lines(self, task: Task) -> list[str]:
        """Returns the lines that a writer printed; its log is among them."""
        return self.file(task, "out").read_text().splitlines()

    def file(self, task: Task, kind: str) -> Path:
        return self.folder / f"{task.topic_id}-{task.writer}.{kind}"

    async def final(self) -> list[int]:
        return [row["_id"]["ts"] for row in await self.scenario.messages()]


async def until(look: Callable[[], bool]) -> None:
    while not look():
        await asyncio.sleep(0.05)


async def faults(run: Run, total: int) -> None:
    """Forces elections while the writers post; the first one rolls back unacknowledged writes."""
    await until_written(run, total // 20)
    await run.members.lose_writes(during_s=0.5)
    for written in range(total // 5, total, total // 5):
        await until_written(run, written)
        await run.members.step_down()


async def until_written(run: Run, count: int) -> None:
    n = 0
    while n < count:
        await asyncio.sleep(0.05)
        with suppress(PyMongoError):
            n = (await run.scenario.stores.events.head(run.scenario.stream)).n


async def assert_nothing_missed(run: Run, count: int) -> None:
    writing = asyncio.ensure_future(run.write(count))
    readers = [Reader(run.scenario) for _ in range(READERS)]
    reading = (reader.read_while(writing) for reader in readers)
    await asyncio.gather(writing, faults(run, WRITERS * count), *reading)
    final = await run.final()
    assert [verdict(reader.read, final) for reader in readers] == [Verdict(set(), set(), True)] * READERS
    assert sorted(run.acknowledged) == final, "every acknowledged message is there, once"
    assert len(final) == len(set(final)) == WRITERS * count


@pytest.fixture
async def run(tmp_path: Path, redis_url: str, mongo_driver: Driver) -> AsyncIterator[Run]:
    async with replica_set(tmp_path / "members", TEST_COMMANDS) as members:
        with fresh_database(members.uri, redis_url) as database:
            async with open_stores(members.uri, redis_url, database, mongo_driver) as stores:
                scenario = await create_topic_scenario(stores)
                yield Run(members, redis_url, mongo_driver, tmp_path, database, scenario)


async def test_reader_during_elections_misses_no_message(run: Run) -> None:
    await assert_nothing_missed(run, 120)
    await assert_careless_writers_are_caught(run)


@pytest.mark.soak
async def test_reader_of_4000_messages_misses_none_in_elections(run: Run) -> None:
    await assert_nothing_missed(run, 500)


async def assert_careless_writers_are_caught(run: Run) -> None:
    """Checks the harness on known-bad writers: it would be blind if no reader missed a message.

    A reader that lags behind the writers misses nothing for a while, so they post until each reader missed one.
    """
    careless = replace(run, scenario=await create_topic_scenario(run.scenario.stores), acknowledged=[])
    readers = [Reader(careless.scenario) for _ in range(READERS)]
    for _ in range(20):
        writing = asyncio.ensure_future(careless.write(40, writers=4, careless=True))
        await asyncio.gather(writing, *(reader.read_while(writing) for reader in readers))
        final = await careless.final()
        assert sorted(careless.acknowledged) == final
        if all(verdict(reader.read, final).missed for reader in readers):
            return
    pytest.fail("some reader never missed what careless writers wrote")

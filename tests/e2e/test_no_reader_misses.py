"""Readers that page by `oldest` during elections miss no message of many writer processes.

To show that it can fail, the first test also runs with an unsafe writer, and finds missed messages. An unsafe writer
allocates a message's timestamp some time before it inserts the message.
"""

import asyncio
import itertools
import math
import random
import subprocess
import sys
from collections.abc import AsyncIterator
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
from tests.e2e.writer import UnsafeWriter, WriterArguments, post_all
from tests.replica_set import TEST_COMMANDS, ReplicaSet, replica_set
from tests.storage.topic_scenario import TopicScenario, create_topic_scenario
from tests.waiting import until

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(300)]

ROOT = Path(__file__).parents[2]
READERS = 2


@dataclass
class PageReader:
    """A reader who requests each page from the end of the previous page."""

    topic_scenario: TopicScenario
    timestamps: list[int] = field(default_factory=list)

    async def read_next_page(self) -> bool:
        """Reads the next page. Returns False if no newer message exists, and True after an error."""
        limit = random.choice([1, 3, 10, 50, 999])
        page_range = timeline_range(oldest=self.timestamps[-1] if self.timestamps else 0, limit=limit, inclusive=False)
        try:
            page = await self.topic_scenario.stores.messages.page(self.topic_scenario.topic.id, page_range)
        except (Unavailable, PyMongoError):
            return True
        self.timestamps += [message.timestamp for message in page.items]
        return bool(page.items)

    async def read_while(self, writing: asyncio.Future[None]) -> None:
        """Reads until the writing is done and no newer message exists."""
        while not writing.done() or await self.read_next_page():
            await self.read_next_page()
            await asyncio.sleep(random.uniform(0, 0.02))


@dataclass(frozen=True)
class ReaderComparison:
    """A comparison of the messages that a reader received with the messages that are stored at the end."""

    missed: set[int]
    vanished: set[int]
    is_ascending: bool


def compare(received: list[int], stored: list[int]) -> ReaderComparison:
    is_ascending = all(earlier < later for earlier, later in itertools.pairwise(received))
    return ReaderComparison(set(stored) - set(received), set(received) - set(stored), is_ascending)


@dataclass
class ElectionScenario:
    """A topic on a replica set, and the processes that write to it."""

    members: ReplicaSet
    redis_url: str
    driver: Driver
    folder: Path
    database: str
    topic_scenario: TopicScenario
    acknowledged: list[int] = field(default_factory=list)

    async def write(self, count: int, writers: int) -> None:
        """Runs the writer processes until each has posted `count` messages."""
        all_arguments = [self.writer_arguments(f"writer{number}", count) for number in range(writers)]
        processes = [self.start(arguments) for arguments in all_arguments]
        try:
            await until(lambda: all("ready" in self.lines(arguments) for arguments in all_arguments), math.inf, 0.1)
            for process in processes:
                assert process.stdin is not None
                process.stdin.write(b"go\n")
                process.stdin.close()
            await until(lambda: all(process.poll() is not None for process in processes), math.inf, 0.1)
        finally:
            for process in processes:
                process.kill()
                process.wait()
        for arguments in all_arguments:
            self.collect_acknowledged(arguments)

    def writer_arguments(self, writer: str, count: int) -> WriterArguments:
        topic_id = self.topic_scenario.topic.id
        return WriterArguments(self.members.uri, self.redis_url, self.database, self.driver, topic_id, writer, count)

    def start(self, arguments: WriterArguments) -> subprocess.Popen[bytes]:
        encoded = orjson.dumps(asdict(arguments)).decode()
        with self.file(arguments, "out").open("wb") as out, self.file(arguments, "err").open("wb") as err:
            command = [sys.executable, "-m", "tests.e2e.writer", encoded]
            return subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=out, stderr=err)

    def collect_acknowledged(self, arguments: WriterArguments) -> None:
        acknowledged = [line.split() for line in self.lines(arguments) if line.startswith(arguments.writer)]
        assert len(acknowledged) == arguments.count, self.file(arguments, "err").read_text()[-2000:]
        self.acknowledged += [int(timestamp) for _, _, timestamp in acknowledged]

    def lines(self, arguments: WriterArguments) -> list[str]:
        """Returns the lines that a writer printed, including its log."""
        return self.file(arguments, "out").read_text().splitlines()

    def file(self, arguments: WriterArguments, kind: str) -> Path:
        return self.folder / f"{arguments.topic_id}-{arguments.writer}.{kind}"

    async def stored_timestamps(self) -> list[int]:
        return [message["_id"]["ts"] for message in await self.topic_scenario.messages()]


async def force_elections(scenario: ElectionScenario, total: int) -> None:
    """Forces elections while the writers post. The first election rolls back unacknowledged writes."""
    await wait_until_written(scenario, total // 20)
    await scenario.members.lose_writes(during_s=0.5)
    for written in range(total // 3, total, total // 3):
        await wait_until_written(scenario, written)
        await scenario.members.step_down()


async def wait_until_written(scenario: ElectionScenario, count: int) -> None:
    written = 0
    while written < count:
        await asyncio.sleep(0.05)
        with suppress(PyMongoError):
            written = (await scenario.topic_scenario.stores.events.head(scenario.topic_scenario.stream)).n


async def assert_nothing_missed(scenario: ElectionScenario, count: int, writers: int) -> None:
    writing = asyncio.ensure_future(scenario.write(count, writers))
    readers = [PageReader(scenario.topic_scenario) for _ in range(READERS)]
    reading = (reader.read_while(writing) for reader in readers)
    await asyncio.gather(writing, force_elections(scenario, writers * count), *reading)
    stored = await scenario.stored_timestamps()
    assert [compare(reader.timestamps, stored) for reader in readers] == [
        ReaderComparison(set(), set(), True)
    ] * READERS
    assert sorted(scenario.acknowledged) == stored, "Each acknowledged message must be stored once."
    assert len(stored) == len(set(stored)) == writers * count


@pytest.fixture
async def election_scenario(tmp_path: Path, redis_url: str, mongo_driver: Driver) -> AsyncIterator[ElectionScenario]:
    async with replica_set(tmp_path / "members", TEST_COMMANDS) as members:
        with fresh_database(members.uri, redis_url) as database:
            async with open_stores(members.uri, redis_url, database, mongo_driver) as stores:
                topic_scenario = await create_topic_scenario(stores)
                yield ElectionScenario(members, redis_url, mongo_driver, tmp_path, database, topic_scenario)


async def test_reader_during_elections_misses_no_message(election_scenario: ElectionScenario) -> None:
    await assert_nothing_missed(election_scenario, 120, writers=2)
    await assert_unsafe_writers_are_detected(election_scenario)


@pytest.mark.soak
async def test_reader_of_4000_messages_misses_none_in_elections(election_scenario: ElectionScenario) -> None:
    await assert_nothing_missed(election_scenario, 500, writers=8)


async def assert_unsafe_writers_are_detected(scenario: ElectionScenario) -> None:
    """Asserts that this test detects missed messages when a writer is unsafe.

    A reader that lags behind the writer misses nothing. The writer continues until each reader has missed a message.
    """
    topic_scenario = await create_topic_scenario(scenario.topic_scenario.stores)
    unsafe_scenario = replace(scenario, topic_scenario=topic_scenario)
    writer = UnsafeWriter(unsafe_scenario.writer_arguments("unsafe", 60), topic_scenario.stores)
    readers = [PageReader(topic_scenario) for _ in range(READERS)]
    for _ in range(40):
        writing = asyncio.ensure_future(post_all(writer))
        await asyncio.gather(writing, *(reader.read_while(writing) for reader in readers))
        stored = await unsafe_scenario.stored_timestamps()
        if all(compare(reader.timestamps, stored).missed for reader in readers):
            return
    pytest.fail("A reader missed no message of an unsafe writer.")

"""Slow readers affect no other reader: they are closed in time, cost little memory, and miss nothing."""

import asyncio
import subprocess
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.client import Client, client
from tests.e2e.chat_topic import ChatTopic, create_chat_topic, join, post
from tests.e2e.readers import Reader, percentile
from tests.serving import WebProcess, web_process

GONE_WITHIN_S = 30
PEOPLE = 20
# 12 KB each, so that the backlog of a stalled reader soon exceeds a mebibyte.
TEXT = "狼" * 3_900
TRY_AGAIN_LATER = 1013
LISTENING = "0A"
MEBIBYTE = 1 << 20

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(not Path("/proc/self/net/tcp").exists(), reason="Counts a process's sockets in /proc."),
]


@dataclass(frozen=True)
class Size:
    """The number of readers, how many of them stall, and the messages per second."""

    readers: int
    stalled: int
    rate: float
    steady_s: float


SIZES = [
    pytest.param(Size(400, 40, rate=6, steady_s=4), id="40 of 400"),
    pytest.param(
        Size(2_000, 200, rate=2, steady_s=20), id="200 of 2000", marks=[pytest.mark.soak, pytest.mark.timeout(400)]
    ),
]


@pytest.fixture
def web(tmp_path: Path, mongodb_uri: str, redis_url: str) -> Iterator[WebProcess]:
    with web_process(tmp_path, mongodb_uri, redis_url) as web:
        yield web


def sockets(web: WebProcess) -> int:
    """Returns the number of accepted connections that the process keeps."""
    port = f":{urlsplit(web.url).port:04X}"
    rows = [line.split() for line in Path(f"/proc/{web.process.pid}/net/tcp").read_text().splitlines()]
    # A closed connection whose data the kernel still sends belongs to no process: its inode is 0.
    return sum(row[1].endswith(port) and row[3] != LISTENING and row[9] != "0" for row in rows)


def memory_mib(web: WebProcess) -> float:
    shown = subprocess.run(["ps", "-o", "rss=", "-p", str(web.process.pid)], capture_output=True, text=True, check=True)
    return int(shown.stdout) / 1024


@asynccontextmanager
async def reading(web: WebProcess, chat: ChatTopic, count: int) -> AsyncIterator[list[Reader]]:
    """Opens all readers and waits until they are subscribed."""
    readers = [Reader(web.url, web.token(f"user{n % PEOPLE}"), chat.topic) for n in range(count)]
    tasks: list[asyncio.Task[None]] = []
    for start in range(0, count, 50):
        group = readers[start : start + 50]
        tasks += [asyncio.create_task(reader.visit()) for reader in group]
        async with asyncio.timeout(90):
            await asyncio.gather(*(reader.ready.wait() for reader in group))
    try:
        yield readers
    finally:
        for reader in readers:
            reader.cut()
        await asyncio.gather(*tasks)


@asynccontextmanager
async def talking(chat: ChatTopic, author: Client, rate: float) -> AsyncIterator[list[int]]:
    """Posts messages at the given rate, and appends each posted one to the list."""
    posted: list[int] = []

    async def talk() -> None:
        while True:
            await post(chat, author, TEXT)
            posted.append(len(posted) + 1)
            await asyncio.sleep(1 / rate)

    task = asyncio.create_task(talk())
    try:
        yield posted
        assert not task.done()
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def all_at(readers: list[Reader], n: int, deadline_s: float = 60) -> None:
    async with asyncio.timeout(deadline_s):
        while min(reader.n for reader in readers) < n:
            await asyncio.sleep(0.05)


@pytest.mark.timeout(240)
@pytest.mark.parametrize("size", SIZES)
async def test_stalled_readers_are_closed_within_30_s_unnoticed(web: WebProcess, size: Size) -> None:
    async with client(web.url, web.token()) as ann:
        chat = await create_chat_topic(ann)
        for n in range(PEOPLE):
            async with client(web.url, web.token(f"user{n}")) as person:
                await join(chat, person)
        async with reading(web, chat, size.readers) as readers, talking(chat, ann, size.rate) as posted:
            stalled, healthy = readers[: size.stalled], readers[size.stalled :]
            await asyncio.sleep(size.steady_s)
            memory_before_mib, steady = memory_mib(web), lags_s(healthy)
            all_there = sockets(web)
            assert all_there >= size.readers

            for reader in stalled:
                assert reader.ws is not None
                reader.ws.transport.pause_reading()
            gone_after_s, most_mib = await gone(web, all_there - size.stalled)
            hindered = lags_s(healthy)[len(steady) :]
            last = len(posted)
            await all_at(healthy, last)

            for reader in healthy:
                assert reader.now.gap() is None
                assert reader.now.code is None
            await assert_memory_returns(web, memory_before_mib)
            await assert_back(stalled, last)
    print(
        f"\n{size.stalled} of {size.readers} stalled, gone after {gone_after_s:.1f} s; "
        f"p99 {1000 * percentile(steady, 0.99):.0f} ms before, {1000 * percentile(hindered, 0.99):.0f} ms meanwhile; "
        f"memory {memory_before_mib:.0f} MiB, at most {most_mib:.0f}, then {memory_mib(web):.0f}"
    )
    assert gone_after_s < GONE_WITHIN_S
    # A mebibyte and one batch per reader, plus Python's own overhead.
    assert most_mib - memory_before_mib < 1.5 * size.stalled + 50


def lags_s(readers: list[Reader]) -> list[float]:
    """Returns the delays of all received events, by event number."""
    columns = zip(*(reader.now.lags_s for reader in readers), strict=False)
    return [lag_s for column in columns for lag_s in column]


async def gone(web: WebProcess, left: int) -> tuple[float, float]:
    """Returns the seconds until at most `left` sockets remain, and the peak memory until then."""
    began_s, most_mib = time.monotonic(), 0.0
    while sockets(web) > left and time.monotonic() - began_s < 2 * GONE_WITHIN_S:
        most_mib = max(most_mib, memory_mib(web))
        await asyncio.sleep(0.1)
    return time.monotonic() - began_s, most_mib


async def assert_memory_returns(web: WebProcess, before_mib: float) -> None:
    """Asserts that the memory of closed readers was released, apart from what Python keeps for reuse."""
    async with asyncio.timeout(60):
        while memory_mib(web) > before_mib + 40:
            await asyncio.sleep(0.2)


async def assert_back(stalled: list[Reader], last: int) -> None:
    """Lets stalled readers read what reached them, find the closed socket, resume, and miss nothing."""
    for reader in stalled:
        assert reader.ws is not None
        reader.ws.transport.resume_reading()
    async with asyncio.timeout(60):
        while any(reader.now.code is None for reader in stalled):
            await asyncio.sleep(0.05)
    assert {reader.now.code for reader in stalled} <= {TRY_AGAIN_LATER, 1006}
    back = [asyncio.create_task(reader.visit()) for reader in stalled]
    await all_at(stalled, last)
    for reader in stalled:
        assert reader.now.resumed == [True]
        assert [visit.gap() for visit in reader.visits] == [None, None]
        reader.cut()
    await asyncio.gather(*back)

"""Stalled readers delay no other reader. They are closed in time, cost little memory, and miss nothing on resume."""

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
from tests.e2e.readers import TopicReader, percentile
from tests.serving import WebProcess, web_process

CLOSED_WITHIN_S = 30
USERS = 20
# A text of 12 KB: the backlog of a stalled reader soon exceeds a mebibyte.
TEXT = "狼" * 3_900
TRY_AGAIN_LATER = 1013
TCP_LISTEN = "0A"
MEBIBYTE = 1 << 20

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(not Path("/proc/self/net/tcp").exists(), reason="Counts a process's sockets in /proc."),
]


@dataclass(frozen=True)
class StallPlan:
    """The numbers of readers and of stalled readers, the messages per second, and the time before the stall."""

    readers: int
    stalled: int
    messages_per_s: float
    before_stall_s: float


PLANS = [
    pytest.param(StallPlan(30, 5, messages_per_s=40, before_stall_s=1), id="5 of 30"),
    pytest.param(
        StallPlan(2_000, 200, messages_per_s=2, before_stall_s=20),
        id="200 of 2000",
        marks=[pytest.mark.soak, pytest.mark.timeout(400)],
    ),
]


@pytest.fixture
def web(tmp_path: Path, mongodb_uri: str, redis_url: str, database: str) -> Iterator[WebProcess]:
    with web_process(tmp_path, mongodb_uri, redis_url, database=database) as web:
        yield web


def open_sockets(web: WebProcess) -> int:
    """Returns the number of accepted connections that the process holds open."""
    port = f":{urlsplit(web.url).port:04X}"
    rows = [line.split() for line in Path(f"/proc/{web.process.pid}/net/tcp").read_text().splitlines()]
    # The kernel may still send data of a closed connection. Such a connection has the inode 0.
    return sum(row[1].endswith(port) and row[3] != TCP_LISTEN and row[9] != "0" for row in rows)


def memory_mib(web: WebProcess) -> float:
    completed = subprocess.run(
        ["ps", "-o", "rss=", "-p", str(web.process.pid)], capture_output=True, text=True, check=True
    )
    return int(completed.stdout) / 1024


@asynccontextmanager
async def subscribed_readers(web: WebProcess, chat: ChatTopic, count: int) -> AsyncIterator[list[TopicReader]]:
    """Opens all readers and waits until they are subscribed."""
    readers = [TopicReader(web.url, web.token(f"user{n % USERS}"), chat.topic) for n in range(count)]
    tasks: list[asyncio.Task[None]] = []
    for start in range(0, count, 50):
        group = readers[start : start + 50]
        tasks += [asyncio.create_task(reader.subscribe()) for reader in group]
        async with asyncio.timeout(90):
            await asyncio.gather(*(reader.ready.wait() for reader in group))
    try:
        yield readers
    finally:
        for reader in readers:
            reader.disconnect()
        await asyncio.gather(*tasks)


@asynccontextmanager
async def background_posts(chat: ChatTopic, author: Client, messages_per_s: float) -> AsyncIterator[list[int]]:
    """Posts `messages_per_s` messages per second, and appends the number of each posted message to the list."""
    posted: list[int] = []

    async def post_forever() -> None:
        while True:
            await post(chat, author, TEXT)
            posted.append(len(posted) + 1)
            await asyncio.sleep(1 / messages_per_s)

    task = asyncio.create_task(post_forever())
    try:
        yield posted
        assert not task.done()
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def wait_for_position(readers: list[TopicReader], position: int, deadline_s: float = 60) -> None:
    async with asyncio.timeout(deadline_s):
        while min(reader.position for reader in readers) < position:
            await asyncio.sleep(0.05)


@pytest.mark.timeout(240)
@pytest.mark.parametrize("plan", PLANS)
async def test_stalled_readers_are_closed_and_delay_no_other_reader(web: WebProcess, plan: StallPlan) -> None:
    async with client(web.url, web.token()) as ann:
        chat = await create_chat_topic(ann)
        for n in range(USERS):
            async with client(web.url, web.token(f"user{n}")) as person:
                await join(chat, person)
        async with (
            subscribed_readers(web, chat, plan.readers) as readers,
            background_posts(chat, ann, plan.messages_per_s) as posted,
        ):
            stalled, healthy = readers[: plan.stalled], readers[plan.stalled :]
            await asyncio.sleep(plan.before_stall_s)
            memory_before_mib, lags_before_s = memory_mib(web), lags_s(healthy)
            sockets_before = open_sockets(web)
            assert sockets_before >= plan.readers

            for reader in stalled:
                assert reader.ws is not None
                reader.ws.transport.pause_reading()
            closed_after_s, peak_mib = await wait_until_closed(web, sockets_before - plan.stalled)
            lags_during_s = lags_s(healthy)[len(lags_before_s) :]
            last_number = len(posted)
            await wait_for_position(healthy, last_number)

            for reader in healthy:
                assert reader.current.sequence_error() is None
                assert reader.current.close_code is None
            await assert_memory_returns(web, memory_before_mib)
            await assert_resumed(stalled, last_number)
    print(
        f"\n{plan.stalled} of {plan.readers} stalled, closed after {closed_after_s:.1f} s; "
        f"p99 {1000 * percentile(lags_before_s, 0.99):.0f} ms before the stall, "
        f"{1000 * percentile(lags_during_s, 0.99):.0f} ms during the stall; "
        f"memory {memory_before_mib:.0f} MiB, at most {peak_mib:.0f}, afterwards {memory_mib(web):.0f}"
    )
    assert closed_after_s < CLOSED_WITHIN_S
    # Each stalled reader may hold a mebibyte and one batch; Python adds its own overhead.
    assert peak_mib - memory_before_mib < 1.5 * plan.stalled + 50


def lags_s(readers: list[TopicReader]) -> list[float]:
    """Returns the delays of all received events, by event number."""
    columns = zip(*(reader.current.lags_s for reader in readers), strict=False)
    return [lag_s for column in columns for lag_s in column]


async def wait_until_closed(web: WebProcess, remaining: int) -> tuple[float, float]:
    """Waits until at most `remaining` sockets are open. Returns the duration in seconds, and the peak memory in MiB."""
    began_s, peak_mib = time.monotonic(), 0.0
    while open_sockets(web) > remaining and time.monotonic() - began_s < 2 * CLOSED_WITHIN_S:
        peak_mib = max(peak_mib, memory_mib(web))
        await asyncio.sleep(0.1)
    return time.monotonic() - began_s, peak_mib


async def assert_memory_returns(web: WebProcess, before_mib: float) -> None:
    """Asserts that the memory of closed readers is released. Python may keep 40 MiB for reuse."""
    async with asyncio.timeout(60):
        while memory_mib(web) > before_mib + 40:
            await asyncio.sleep(0.2)


async def assert_resumed(stalled: list[TopicReader], last_number: int) -> None:
    """Asserts that stalled readers notice the closed socket, resume after their last event, and miss nothing."""
    for reader in stalled:
        assert reader.ws is not None
        reader.ws.transport.resume_reading()
    async with asyncio.timeout(60):
        while any(reader.current.close_code is None for reader in stalled):
            await asyncio.sleep(0.05)
    assert {reader.current.close_code for reader in stalled} <= {TRY_AGAIN_LATER, 1006}
    resubscriptions = [asyncio.create_task(reader.subscribe()) for reader in stalled]
    await wait_for_position(stalled, last_number)
    for reader in stalled:
        assert reader.current.resumed == [True]
        assert [subscription.sequence_error() for subscription in reader.subscriptions] == [None, None]
        reader.disconnect()
    await asyncio.gather(*resubscriptions)

"""Workers that are killed by kill -9 while they push or mail: nothing is lost, and nothing is shown twice."""

import asyncio
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest

from storage.notifications.channels import CHANNELS
from storage.notifications.settings import DigestPeriod
from tests.jobs.notifications.conftest import OfflineScenario
from tests.twins.mail_server import STEPS, MailServer, mail_server
from tests.twins.push_service import SubscribedBrowser

pytestmark = pytest.mark.anyio

DEADLINE_S = 60.0
KILLED_AT = STEPS[2:]
"""Steps of SMTP at which workers are killed. At the earlier ones, a worker is in the same state as at the first."""


@pytest.fixture
async def twin() -> AsyncIterator[MailServer]:
    async with mail_server() as server:
        yield server


StartWorker = Callable[[], Awaitable[Process]]


@pytest.fixture
async def start_worker(
    offline: OfflineScenario, twin: MailServer, mongodb_uri: str, redis_url: str, database: str, tmp_path: Path
) -> AsyncIterator[StartWorker]:
    """A function that starts a worker, which waits for a line before it sends."""
    module, certificate = "tests.jobs.notifications.killed_worker", tmp_path / "certificate.pem"
    command = ("-m", module, mongodb_uri, redis_url, database, twin.url, offline.vapid_key, str(certificate))

    async def start() -> Process:
        process = await asyncio.create_subprocess_exec(sys.executable, *command, stdin=PIPE, stdout=PIPE)
        stack.push_async_callback(kill, process)
        return process

    async with AsyncExitStack() as stack:
        yield start


async def kill(process: Process) -> None:
    """Kills a process by SIGKILL, and waits until it has ended."""
    if process.returncode is None:
        process.kill()
    await process.wait()


async def say_ready(process: Process) -> None:
    assert process.stdout is not None
    assert await process.stdout.readline() == b"ready\n"


async def go(process: Process) -> bytes:
    """Lets a worker send. Returns the rest of its output, which is empty if it was killed."""
    assert process.stdout is not None
    assert process.stdin is not None
    process.stdin.write(b"go\n")
    async with asyncio.timeout(DEADLINE_S):
        return await process.stdout.read()


@asynccontextmanager
async def killed_at(twin: MailServer, step: str, process: Process) -> AsyncIterator[None]:
    async def on_step(reached: str) -> None:
        if reached == step:
            twin.on_step = None
            await kill(process)

    twin.on_step = on_step
    yield
    assert twin.on_step is None, f"The worker has not reached {step}."


async def test_digest_is_sent_once_however_its_worker_is_killed(
    offline: OfflineScenario, twin: MailServer, start_worker: StartWorker
) -> None:
    """The worker is killed at each step of SMTP. Another worker then sends the digest, unless it has arrived."""
    chat = offline.chat
    await offline.choose_digests(chat.bob, DigestPeriod.HOURLY)
    workers = [await start_worker() for _ in KILLED_AT]
    await asyncio.gather(*map(say_ready, workers))
    for step, worker in zip(KILLED_AT, workers, strict=True):
        await offline.end_waiting()
        await chat.ann.post(chat.topic, f"killed at {step} @bob")
        await offline.find()
        await offline.end_waiting()
        async with killed_at(twin, step, worker):
            assert await go(worker) == b""
        await offline.end_waiting()
        await asyncio.gather(*(offline.mail(twin) for _ in range(2)))
    contents = [offline.text_of(mail) for mail in twin.to("bob@example.org")]
    for step, content in zip(KILLED_AT, contents, strict=True):
        assert [each for each in KILLED_AT if f"killed at {each} @bob" in content] == [step]


async def test_push_is_shown_once_if_its_worker_is_killed(offline: OfflineScenario, start_worker: StartWorker) -> None:
    """The worker is killed after the push service has taken the push, and before the worker has recorded it."""
    browser = await offline.add_browser(offline.chat.bob)
    worker = await start_worker()
    await say_ready(worker)
    await offline.chat.ann.post(offline.chat.topic, "Look @bob")
    await offline.find()

    async def on_push(_: SubscribedBrowser) -> None:
        offline.service.on_push = None
        await kill(worker)

    offline.service.on_push = on_push
    assert await go(worker) == b""
    channel = await offline.jobs.stores.mongo[CHANNELS].find_one({})
    assert channel is not None
    assert "claim" in channel, "The killed worker has recorded the push."
    await offline.end_waiting()
    await asyncio.gather(*(offline.push() for _ in range(3)))
    assert browser.titles == ["ann mentioned you"] * 2
    assert len(browser.shown) == len(set(browser.topics)) == 1
    await offline.end_waiting()
    assert await offline.push() == 0

"""Workers that are killed by kill -9 while they push or mail: nothing is lost, and nothing is shown twice."""

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from storage.notifications.channels import CHANNELS
from storage.notifications.settings import DigestPeriod
from tests.jobs.notifications.conftest import OfflineScenario, RunningService
from tests.jobs.notifications.killed_worker import send
from tests.jobs.notifications.test_publication_summaries import (
    fail_post,
    make_due,
    make_operator,
    pass_night,
    send_summaries,
)
from tests.preloaded import PreloadedProcess
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


class KillableWorker:
    """Processes that send what is due, one at a time."""

    def __init__(self, *arguments: object) -> None:
        self._arguments = arguments
        self._process: PreloadedProcess | None = None
        self._has_ended = asyncio.Event()

    async def send(self) -> int:
        """Runs a process that sends what is due. Returns its exit code, which is negative if a signal killed it."""
        self._has_ended.clear()
        self._process = PreloadedProcess(send, *self._arguments)
        exit_code = await asyncio.to_thread(self._process.wait, DEADLINE_S)
        self._has_ended.set()
        return exit_code

    async def kill(self) -> None:
        """Kills the process that is sending by SIGKILL, and waits until it has ended."""
        assert self._process is not None
        self._process.kill()
        await self._has_ended.wait()


@pytest.fixture
def worker(
    offline: OfflineScenario,
    running_service: RunningService,
    twin: MailServer,
    mongodb_uri: str,
    redis_url: str,
    database: str,
) -> KillableWorker:
    servers = (mongodb_uri, redis_url, database)
    return KillableWorker(servers, twin.url, offline.vapid_key, str(running_service.certificate))


@asynccontextmanager
async def killed_at(twin: MailServer, step: str, worker: KillableWorker) -> AsyncIterator[None]:
    async def on_step(reached: str) -> None:
        if reached == step:
            twin.on_step = None
            await worker.kill()

    twin.on_step = on_step
    yield
    assert twin.on_step is None, f"The worker has not reached {step}."


async def test_digest_is_sent_once_however_its_worker_is_killed(
    offline: OfflineScenario, twin: MailServer, worker: KillableWorker
) -> None:
    """The worker is killed at each step of SMTP. Another worker then sends the digest, unless it has arrived."""
    chat = offline.chat
    await offline.choose_digests(chat.bob, DigestPeriod.HOURLY)
    for step in KILLED_AT:
        await offline.end_waiting()
        await chat.ann.post(chat.topic, f"killed at {step} @bob")
        await offline.find()
        await offline.end_waiting()
        async with killed_at(twin, step, worker):
            assert await worker.send() == -signal.SIGKILL
        await offline.end_waiting()
        await asyncio.gather(*(offline.mail(twin) for _ in range(2)))
    contents = [offline.text_of(mail) for mail in twin.to("bob@example.org")]
    for step, content in zip(KILLED_AT, contents, strict=True):
        assert [each for each in KILLED_AT if f"killed at {each} @bob" in content] == [step]


async def test_summary_is_sent_once_however_its_worker_is_killed(
    offline: OfflineScenario, twin: MailServer, worker: KillableWorker
) -> None:
    """The worker is killed at each step of SMTP, each on another day. Another worker then finishes the day."""
    await make_operator(offline, offline.chat.bob)
    for step in KILLED_AT:
        await fail_post(offline, f"killed at {step}")
        await pass_night(offline)
        await make_due(offline)
        async with killed_at(twin, step, worker):
            assert await worker.send() == -signal.SIGKILL
        await send_summaries(offline, twin, workers=2)
    contents = [offline.text_of(mail) for mail in twin.to("bob@example.org")]
    assert [f"killed at {step}" in content for step, content in zip(KILLED_AT, contents, strict=True)] == [True] * 4


async def test_push_is_shown_once_if_its_worker_is_killed(offline: OfflineScenario, worker: KillableWorker) -> None:
    """The worker is killed after the push service has taken the push, and before the worker has recorded it."""
    browser = await offline.add_browser(offline.chat.bob)
    await offline.chat.ann.post(offline.chat.topic, "Look @bob")
    await offline.find()

    async def on_push(_: SubscribedBrowser) -> None:
        offline.service.on_push = None
        await worker.kill()

    offline.service.on_push = on_push
    assert await worker.send() == -signal.SIGKILL
    channel = await offline.jobs.stores.mongo[CHANNELS].find_one({})
    assert channel is not None
    assert "claim" in channel, "The killed worker has recorded the push."
    await offline.end_waiting()
    await asyncio.gather(*(offline.push() for _ in range(3)))
    assert browser.titles == ["ann mentioned you"] * 2
    assert len(browser.shown) == len(set(browser.topics)) == 1
    await offline.end_waiting()
    assert await offline.push() == 0

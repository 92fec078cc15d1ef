"""The worker process runs jobs, drains on SIGTERM, and survives restarts of its servers."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from jobs import FUNCTIONS, SWEEPERS
from server.embedded import Mongod, Valkey, find_mongod, find_valkey
from server.worker import NICENESS
from storage.chat.records import Message
from storage.publishing.records import PublicationState
from storage.redis.queue import PREVIEWS, QUEUES
from storage.stores import Stores, open_stores
from tests.jobs.providers.stub_server import StubResponse, StubServer, respond, stub_server
from tests.serving import ServerProcess, worker_process
from tests.storage.faulty_proxy import faulty_proxy
from tests.storage.publishing.scenario import create_publishing_scenario
from tests.storage.topic_scenario import TopicScenario, create_topic_scenario
from tests.waiting import poll_until_true

PAGE = b'<meta property="og:title" content="The Mountain"><meta property="og:site_name" content="Hills">'

pytestmark = pytest.mark.anyio


@dataclass(frozen=True)
class SharedWorker:
    """A worker shared by many tests, and its database."""

    worker: ServerProcess
    database: str


@pytest.fixture(scope="module")
def shared_worker(
    tmp_path_factory: pytest.TempPathFactory, mongodb_uri: str, redis_url: str, shared_database: str
) -> Iterator[SharedWorker]:
    with worker_process(tmp_path_factory.mktemp("worker"), mongodb_uri, redis_url, shared_database) as worker:
        yield SharedWorker(worker, shared_database)


@pytest.fixture
async def scenario(shared_worker: SharedWorker, shared_stores: Stores) -> TopicScenario:
    """Returns a topic in the shared worker's database."""
    assert shared_worker.worker.process.poll() is None
    return await create_topic_scenario(shared_stores)


@asynccontextmanager
async def own_valkey(folder: Path) -> AsyncIterator[Valkey]:
    """Yields a Valkey that a test may break."""
    valkey = Valkey(folder / "redis", find_valkey())
    await valkey.start()
    yield valkey
    await valkey.stop(0)


@asynccontextmanager
async def scenario_with_worker(
    folder: Path, mongodb_uri: str, redis_url: str, database: str
) -> AsyncIterator[tuple[TopicScenario, ServerProcess]]:
    """Yields a topic, and a worker on the same database."""
    async with open_stores(mongodb_uri, redis_url, database) as stores:
        with worker_process(folder / "worker", mongodb_uri, redis_url, database) as worker:
            yield await create_topic_scenario(stores), worker


async def post(scenario: TopicScenario, link: str) -> Message:
    """Posts a link and enqueues its preview, as the API does."""
    message = await scenario.post(f"look {link}")
    await enqueue_preview(scenario, message)
    return message


async def enqueue_preview(scenario: TopicScenario, message: Message) -> None:
    await scenario.stores.queue.enqueue(PREVIEWS, "chat.preview_link", message.topic_id, message.timestamp)


def has_preview(scenario: TopicScenario, message: Message) -> Callable[[], Coroutine[Any, Any, bool]]:
    """Returns a function that returns whether the message has its preview."""

    async def check() -> bool:
        current = await scenario.stores.messages.get(message.key)
        return current.link_preview is not None

    return check


def respond_after(release: asyncio.Event) -> StubResponse:
    """Responds with PAGE once `release` is set."""

    async def answer(writer: asyncio.StreamWriter) -> None:
        await release.wait()
        await respond(PAGE)(writer)

    return answer


async def is_requested(stub: StubServer, path: str) -> bool:
    return path in stub.paths()


async def test_enqueued_job_runs(scenario: TopicScenario) -> None:
    async with stub_server() as stub:
        stub.answers["/page"] = respond(PAGE)
        message = await post(scenario, stub.url("/page"))
        assert await poll_until_true(has_preview(scenario, message))
        assert stub.paths() == ["/page"]


async def test_sigterm_releases_claims_and_lets_jobs_finish(
    tmp_path: Path, mongodb_uri: str, redis_url: str, database: str
) -> None:
    """A worker that kept its claims would publish posts that become due while it waits for a job."""
    release = asyncio.Event()
    async with (
        stub_server() as stub,
        scenario_with_worker(tmp_path, mongodb_uri, redis_url, database) as (scenario, worker),
    ):
        stub.answers["/slow"] = respond_after(release)
        publishing = await create_publishing_scenario(scenario.stores)
        publication = await publishing.publication(await publishing.schedule(in_s=6))

        async def is_claimed() -> bool:
            return "claim" in await publishing.stored_document(publication)

        async def is_released_or_published() -> bool:
            stored = await publishing.stored_document(publication)
            return "wake_at" not in stored or bool(stored["wake_at"] < stored["due"])

        assert await poll_until_true(is_claimed)
        message = await post(scenario, stub.url("/slow"))
        assert await poll_until_true(lambda: is_requested(stub, "/slow"))
        worker.process.send_signal(signal.SIGTERM)
        assert await poll_until_true(is_released_or_published)
        # A worker that does not wait for its jobs would end within this time.
        await asyncio.sleep(0.5)
        assert worker.process.poll() is None, "The worker did not wait for its job."
        release.set()
        assert await poll_until_true(lambda: has_ended(worker))
        assert worker.process.returncode == 0
        assert "Traceback" not in worker.log_text
        assert (await publishing.stored_document(publication))["state"] == PublicationState.SCHEDULED.value
        assert await has_preview(scenario, message)(), "The publication was released only after the job had ended."


async def test_sigterm_without_jobs_ends_worker_at_once(
    tmp_path: Path, mongodb_uri: str, redis_url: str, database: str
) -> None:
    with worker_process(tmp_path, mongodb_uri, redis_url, database) as worker:
        started_at = asyncio.get_running_loop().time()
        assert worker.terminate() == 0
    assert asyncio.get_running_loop().time() - started_at < 10
    assert "Traceback" not in worker.log_text


async def test_worker_survives_loss_of_redis_and_its_data(tmp_path: Path, mongodb_uri: str, database: str) -> None:
    async with stub_server() as stub, own_valkey(tmp_path) as valkey:
        stub.answers |= {"/held": respond_after(asyncio.Event()), "/after": respond(PAGE)}
        async with scenario_with_worker(tmp_path, mongodb_uri, valkey.url, database) as (scenario, worker):
            await post(scenario, stub.url("/held"))
            assert await poll_until_true(lambda: is_requested(stub, "/held"))
            valkey.kill()
            await valkey.wait()
            assert worker.wait_for_log("loop_restarted")
            (valkey.data / "appendonlydir").rename(tmp_path / "lost")
            await valkey.restart()
            message = await scenario.post(f"look {stub.url('/after')}")

            async def has_preview_after_enqueue() -> bool:
                await enqueue_preview(scenario, message)
                return await has_preview(scenario, message)()

            assert await poll_until_true(has_preview_after_enqueue, 60)
            assert worker.process.poll() is None


async def test_worker_replaces_silent_redis_connections(
    tmp_path: Path, mongodb_uri: str, redis_url: str, database: str
) -> None:
    with ExitStack() as stack:
        async with faulty_proxy(redis_url) as proxy, open_stores(mongodb_uri, redis_url, database) as stores:
            starting = worker_process(tmp_path / "worker", mongodb_uri, proxy.redis_url, database)
            # The proxy runs in this thread's event loop, which must not be blocked.
            await asyncio.to_thread(stack.enter_context, starting)
            await stores.queue.enqueue(PREVIEWS, "chat.preview_link", "none", 1)
            assert await poll_until_true(lambda: queue_is_empty(stores))
            proxy.drop_traffic_of_open_connections()
            await stores.queue.enqueue(PREVIEWS, "chat.preview_link", "none", 2)
            assert await poll_until_true(lambda: queue_is_empty(stores))


async def queue_is_empty(stores: Stores) -> bool:
    return await stores.redis.zcard(stores.keys.queue(PREVIEWS)) == 0


async def test_worker_survives_mongodb_restart(tmp_path: Path, redis_url: str, database: str) -> None:
    mongod = Mongod(tmp_path / "mongodb", find_mongod())
    await mongod.start()
    try:
        async with (
            stub_server() as stub,
            scenario_with_worker(tmp_path, mongod.uri, redis_url, database) as (scenario, worker),
        ):
            stub.answers["/after"] = respond(PAGE)
            mongod.kill()
            await mongod.wait()
            assert worker.wait_for_log("loop_restarted")
            await mongod.restart()
            message = await post(scenario, stub.url("/after"))
            assert await poll_until_true(has_preview(scenario, message), 60)
            assert worker.process.poll() is None
    finally:
        await mongod.stop(0)


async def test_pickle_in_queue_is_not_executed(
    tmp_path: Path, scenario: TopicScenario, shared_worker: SharedWorker
) -> None:
    created_file = tmp_path / "created"
    async with stub_server() as stub:
        stub.answers["/page"] = respond(PAGE)
        await enqueue_payload(scenario.stores, pickle_that_creates(created_file))
        assert await poll_until_true(lambda: is_dequeued(scenario.stores, "evil"))
        assert await poll_until_true(has_preview(scenario, await post(scenario, stub.url("/page"))))
        assert not created_file.exists()
        assert shared_worker.worker.process.poll() is None


def pickle_that_creates(file: Path) -> bytes:
    """Returns a pickle that creates the file when it is loaded."""
    return b"cposix\nsystem\n(V" + f"touch {file}".encode() + b"\ntR."


async def enqueue_payload(stores: Stores, payload: bytes) -> None:
    """Enqueues a job as an attacker with access to Redis could."""
    await stores.redis.set("arq:job:evil", payload, px=60_000)
    await stores.redis.zadd(stores.keys.queue(PREVIEWS), {"evil": 1})


async def is_dequeued(stores: Stores, job_id: str) -> bool:
    return await stores.redis.zscore(stores.keys.queue(PREVIEWS), job_id) is None


async def has_ended(worker: ServerProcess) -> bool:
    return worker.process.poll() is not None


async def test_worker_has_a_lower_priority(shared_worker: SharedWorker) -> None:
    pid = shared_worker.worker.process.pid
    assert os.getpriority(os.PRIO_PROCESS, pid) == os.getpriority(os.PRIO_PROCESS, 0) + NICENESS


async def test_queues_have_functions_and_sweepers_unique_names() -> None:
    assert set(FUNCTIONS) == set(QUEUES), "FUNCTIONS in jobs/__init__.py and QUEUES in storage/redis/queue.py differ."
    assert all(FUNCTIONS.values()), "A queue has no function in jobs/__init__.py."
    names = [sweeper.name for sweeper in SWEEPERS]
    assert len(set(names)) == len(names), "Two sweepers in jobs/__init__.py have the same name."
    assert all(sweeper.every_s > 0 for sweeper in SWEEPERS)


async def test_job_results_are_not_kept() -> None:
    keeping_results = [each.name for functions in FUNCTIONS.values() for each in functions if each.keep_result_s != 0]
    assert not keeping_results, f"Register with keep_result=0 in jobs/__init__.py: {', '.join(keeping_results)}."


async def test_two_workers_run_job_once(
    tmp_path: Path, mongodb_uri: str, redis_url: str, scenario: TopicScenario, shared_worker: SharedWorker
) -> None:
    async with stub_server() as stub:
        with worker_process(tmp_path / "second", mongodb_uri, redis_url, shared_worker.database):
            links = [stub.url(f"/{n}") for n in range(20)]
            stub.answers |= {f"/{n}": respond(PAGE) for n in range(20)}
            messages = await asyncio.gather(*(post(scenario, link) for link in links))
            for message in messages:
                assert await poll_until_true(has_preview(scenario, message))
            assert sorted(stub.paths()) == sorted(f"/{n}" for n in range(20))

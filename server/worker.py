"""The worker process: one arq worker for each queue, background loops and sweepers. SIGTERM drains running jobs.

An arq worker ends when Redis goes away, so each loop is restarted after a growing pause.
"""

import asyncio
import gc
import os
import signal
import sys
from collections.abc import Awaitable, Callable
from functools import partial

import structlog
from arq.connections import ArqRedis
from arq.worker import Worker
from pymongo.errors import PyMongoError
from setproctitle import setproctitle

from jobs import FUNCTIONS, LOOPS, SWEEPERS, Sweeper
from jobs.context import JobContext, WebhookTools
from jobs.providers.egress import Egress
from jobs.providers.event_webhooks import WebhookSender
from jobs.providers.mailer import Mailer
from jobs.providers.social.oauth.registry import credential_renewers
from jobs.providers.social.registry import all_networks
from jobs.providers.social.verification import AccountVerifier
from jobs.providers.web_push import WebPush
from jobs.publishing.publisher import PostPublisher
from resolvers.context import Context
from schema.root import schema
from server.settings import Settings
from server.stores import open_stores_for
from server.telephony import make_telephony
from server.webhook_payloads import WebhookPayloads
from storage.heartbeats import WorkerHeartbeat, process_name
from storage.publishing.sandbox import SandboxStore
from storage.redis.queue import arq_client, deserialize, serialize
from storage.secrets.download_urls import media_urls
from storage.secrets.image_urls import ImageUrls
from storage.secrets.shared_secrets import shared_secret
from storage.secrets.vapid_keys import vapid_key
from storage.stores import Stores
from storage.stores.dead_workers import release_leases_of

MIN_PAUSE_S, MAX_PAUSE_S = 0.2, 5.0
STABLE_AFTER_S = 30.0
DRAIN_S = 10.0
MAX_JOBS = 50
NICENESS = 5
RELEASE_DEADLINE_S = 5.0

# With Motor, answers of MongoDB arrive in threads. While the event loop is busy, a thread waits up to this long for the
# GIL after each answer. A commit needs many answers, and Python's default of 5 ms would delay each of them.
SWITCH_INTERVAL_S = 0.001
GC_THRESHOLDS = 10_000, 20, 10

log = structlog.get_logger(__name__)


def run_worker(settings: Settings, queues: tuple[str, ...] = (), name: str = "") -> None:
    """Runs the jobs of the queues, by default all, until SIGTERM or SIGINT. Running jobs then have 10 s to finish.

    The last process of the same name must have ended: the worker begins with what that process has left. A worker
    without a name waits until leases have ended.
    """
    import uvloop

    # People wait for web processes. A worker on the same machine must not delay them.
    os.nice(NICENESS)
    uvloop.run(_run(settings, queues or tuple(FUNCTIONS), name))


def run_standby(settings: Settings, queues: tuple[str, ...], name_fd: int) -> None:
    """Waits until the supervisor writes the name of a worker to a pipe, and runs as this worker.

    Ends if the supervisor closes the pipe.
    """
    log.info("standby_ready")
    with open(name_fd, encoding="ascii") as pipe:
        name = pipe.readline().strip()
    if name:
        setproctitle("noroshi worker")
        run_worker(settings, queues, name)


async def _run(settings: Settings, queues: tuple[str, ...], name: str) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    egress = Egress(settings.egress_allow)
    async with open_stores_for(settings, name) as stores:
        if name:
            await _release_leases(stores, name)
        jobs = await _job_context(settings, stores, egress)
        heartbeat = WorkerHeartbeat(stores.mongo, process_name())
        loops = [_arq_loop(jobs, settings.redis_url or "", queue) for queue in queues]
        loops += [_supervise(loop.name, partial(loop.run, jobs)) for loop in LOOPS]
        loops += [_sweep_loop(jobs, each, heartbeat) for each in SWEEPERS]
        tasks = [asyncio.create_task(loop) for loop in [*loops, heartbeat.run()]]
        tune_interpreter()
        log.info("worker_ready", queues=queues)
        await stop.wait()
        for task in tasks:
            task.cancel()
        # The publisher is closed while jobs finish, so that claimed publications begin no more calls to networks.
        closing = asyncio.create_task(jobs.publisher.close())
        await asyncio.gather(*tasks, return_exceptions=True)
        if jobs.telephony is not None:
            await jobs.telephony.aclose()
        await closing
    await egress.aclose()


async def _release_leases(stores: Stores, name: str) -> None:
    """Releases the leases of the last process of this name. If this fails, they end when their time is over."""
    try:
        async with asyncio.timeout(RELEASE_DEADLINE_S):
            released = await release_leases_of(stores, name)
    except (PyMongoError, TimeoutError) as error:
        log.warning("leases_not_released", error=repr(error))
        return
    if released:
        log.info("leases_released", count=released)


def tune_interpreter() -> None:
    """Shortens the switch interval of threads, and excludes all present objects from garbage collection."""
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    gc.collect()
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLDS)


async def _job_context(settings: Settings, stores: Stores, egress: Egress) -> JobContext:
    urls = await media_urls(stores.mongo, settings.base_url)
    sign_media = None if settings.public_url is None else urls.sign_until
    networks = all_networks(egress, SandboxStore(stores.mongo))
    publisher = PostPublisher(stores, networks, sign_media)
    mailer = Mailer(settings.smtp_url, settings.mail_from, settings.data_dir / "mail")
    telephony = make_telephony(settings, stores)
    if telephony is None:
        log.info("calls_disabled", reason="NOROSHI_TELEPHONY is not set")
    report = settings.bounce_alarm_percent, settings.bounce_report_to
    web_push = _web_push(settings, egress)
    payloads = WebhookPayloads(schema, await _context_factory(settings, stores))
    return JobContext(
        stores,
        egress,
        telephony,
        publisher,
        mailer,
        *report,
        web_push=web_push,
        push_delay_s=settings.push_delay_s,
        digest_delay_s=settings.digest_delay_s,
        webhooks=WebhookTools(WebhookSender(egress.transport), payloads),
        webhook_retry_s=settings.webhook_retry_s,
        base_url=settings.base_url,
        credential_renewers=credential_renewers(egress, settings.oauth_apps),
        account_verifier=AccountVerifier(networks),
    )


async def _context_factory(settings: Settings, stores: Stores) -> Callable[..., Context]:
    """Returns a function that makes the contexts in which events are written."""
    image_urls = ImageUrls(settings.base_url, await shared_secret(stores.mongo, "image_urls"))
    return partial(Context, stores, image_urls.sign, base_url=settings.base_url)


def _web_push(settings: Settings, egress: Egress) -> WebPush | None:
    if settings.vapid_key is None:
        return None
    contact = settings.vapid_contact or settings.base_url
    return WebPush(egress.transport, vapid_key(settings.vapid_key), contact)


async def _arq_loop(jobs: JobContext, redis_url: str, queue: str) -> None:
    async def work() -> None:
        async with arq_client(redis_url) as client:
            await _run_arq_worker(_arq_worker(jobs, client, queue))

    await _supervise(f"queue {queue}", work)


def _arq_worker(jobs: JobContext, client: ArqRedis, queue: str) -> Worker:
    return Worker(
        functions=FUNCTIONS[queue],
        queue_name=jobs.stores.keys.queue(queue),
        redis_pool=client,
        ctx={"jobs": jobs},
        handle_signals=False,
        poll_delay=0.1,
        max_jobs=MAX_JOBS,
        queue_read_limit=40 * MAX_JOBS,
        health_check_interval=10,
        job_serializer=serialize,
        job_deserializer=deserialize,
    )


async def _run_arq_worker(worker: Worker) -> None:
    try:
        await worker.async_run()
    except asyncio.CancelledError:
        if worker.tasks:
            await asyncio.wait(worker.tasks.values(), timeout=DRAIN_S)
        raise
    finally:
        # Errors are ignored: closing fails when Redis is gone.
        await asyncio.gather(worker.close(), return_exceptions=True)


async def _sweep_loop(jobs: JobContext, sweeper: Sweeper, heartbeat: WorkerHeartbeat) -> None:
    async def work() -> None:
        while True:
            found = await sweeper.run(jobs)
            heartbeat.add_sweep(sweeper.name, found)
            if found:
                log.info("sweep_finished", sweeper=sweeper.name, found=found)
            await asyncio.sleep(sweeper.every_s)

    await _supervise(sweeper.name, work)


async def _supervise(name: str, work: Callable[[], Awaitable[None]]) -> None:
    """Runs `work` forever, and restarts it after a growing pause whenever it ends."""
    pause_s = MIN_PAUSE_S
    loop = asyncio.get_running_loop()
    while True:
        started = loop.time()
        try:
            await work()
        except Exception as error:
            log.warning("loop_restarted", loop=name, error=repr(error))
        is_stable = loop.time() - started > STABLE_AFTER_S
        pause_s = MIN_PAUSE_S if is_stable else min(pause_s * 2, MAX_PAUSE_S)
        await asyncio.sleep(pause_s)

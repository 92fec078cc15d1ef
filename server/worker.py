"""The worker process: an arq worker for each queue and the sweepers, all supervised; SIGTERM drains.

arq ends itself when Redis goes away, so each of its workers is started again with a growing pause.
"""

import asyncio
import gc
import signal
import sys
from collections.abc import Awaitable, Callable
from functools import partial

import structlog
from arq.connections import RedisSettings
from arq.worker import Worker

from jobs import FUNCTIONS, LOOPS, SWEEPERS, Sweeper
from jobs.calls.broker_pool import process_name
from jobs.context import JobContext
from jobs.providers.egress import Egress
from jobs.providers.mailer import Mailer
from jobs.providers.social.registry import all_networks
from jobs.publishing.publisher import PostPublisher
from server.settings import Settings
from server.telephony import make_telephony
from storage.heartbeats import Heartbeat
from storage.publishing.sandbox import SandboxStore
from storage.queue import deserialize, redis_settings, serialize
from storage.secrets.versioned_keys import versioned_keys
from storage.stores import Stores, open_stores

RESTART_S = (0.2, 5.0)
DRAIN_S = 10.0
MAX_JOBS = 50

# MongoDB's driver works in threads. While the loop is busy, as when a thousand posts are due, each of them waits up to
# so long for the interpreter whenever an answer has come, many times a commit. The default is 5 ms.
SWITCH_INTERVAL_S = 0.001
GC_THRESHOLDS = 10_000, 20, 10

log = structlog.get_logger(__name__)


def run_worker(settings: Settings, queues: tuple[str, ...] = ()) -> None:
    """Works until SIGTERM or SIGINT; then running jobs may finish for 10 s. No queues given means all."""
    import uvloop

    uvloop.run(_run(settings, queues or tuple(FUNCTIONS)))


async def _run(settings: Settings, queues: tuple[str, ...]) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    egress = Egress(settings.egress_allow)
    async with open_stores(
        settings.mongodb_uri or "",
        settings.redis_url or "",
        settings.database,
        settings.mongo_driver,
        settings.fan_out_max_followers,
        versioned_keys(settings.credential_keys or ""),
        settings.keys_of_addresses,
    ) as stores:
        jobs = _job_context(settings, stores, egress)
        heartbeat = Heartbeat(stores.mongo, process_name())
        loops = [_arq_loop(jobs, redis_settings(settings.redis_url or ""), queue) for queue in queues]
        loops += [_supervise(loop.name, partial(loop.run, jobs)) for loop in LOOPS]
        loops += [_sweep_loop(jobs, each, heartbeat) for each in SWEEPERS]
        tasks = [asyncio.create_task(loop) for loop in [*loops, heartbeat.beat()]]
        tune_interpreter()
        log.info("worker_ready", queues=queues)
        await stop.wait()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await jobs.telephony.aclose()
        await jobs.publisher.close()
    await egress.aclose()


def tune_interpreter() -> None:
    """Lets threads take turns more often, and spares the garbage collector what is there by now and stays."""
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    gc.collect()
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLDS)


def _job_context(settings: Settings, stores: Stores, egress: Egress) -> JobContext:
    publisher = PostPublisher(stores, all_networks(egress, SandboxStore(stores.mongo)))
    mailer = Mailer(settings.smtp_url, settings.mail_from, settings.data_dir / "mail")
    telephony = make_telephony(settings, stores)
    report = settings.bounce_alarm_percent, settings.bounce_report_to
    return JobContext(stores, egress, telephony, publisher, mailer, *report)


async def _arq_loop(jobs: JobContext, redis: RedisSettings, queue: str) -> None:
    async def work() -> None:
        worker = Worker(
            functions=FUNCTIONS[queue],
            queue_name=jobs.stores.keys.queue(queue),
            redis_settings=redis,
            ctx={"jobs": jobs},
            handle_signals=False,
            poll_delay=0.1,
            max_jobs=MAX_JOBS,
            queue_read_limit=40 * MAX_JOBS,
            health_check_interval=10,
            job_serializer=serialize,
            job_deserializer=deserialize,
        )
        try:
            await worker.async_run()
        except asyncio.CancelledError:
            if worker.tasks:
                await asyncio.wait(worker.tasks.values(), timeout=DRAIN_S)
            raise
        finally:
            # What it raises is of no interest: the server may be the very thing that is gone.
            await asyncio.gather(worker.close(), return_exceptions=True)

    await _supervise(f"queue {queue}", work)


async def _sweep_loop(jobs: JobContext, sweeper: Sweeper, heartbeat: Heartbeat) -> None:
    async def work() -> None:
        while True:
            found = await sweeper.run(jobs)
            heartbeat.swept(sweeper.name, found)
            if found:
                log.info("swept", sweeper=sweeper.name, found=found)
            await asyncio.sleep(sweeper.every_s)

    await _supervise(sweeper.name, work)


async def _supervise(name: str, work: Callable[[], Awaitable[None]]) -> None:
    """Runs the work for ever; after a failure again, with a growing pause."""
    pause_s = RESTART_S[0]
    loop = asyncio.get_running_loop()
    while True:
        started = loop.time()
        try:
            await work()
        except Exception as error:
            log.warning("restarting", loop=name, error=repr(error))
        pause_s = RESTART_S[0] if loop.time() - started > 30 else min(pause_s * 2, RESTART_S[1])
        await asyncio.sleep(pause_s)

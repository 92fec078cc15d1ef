"""The manager of a worker process: gives every organization with work a broker, here or wherever its lock is held.

It looks each minute, when something is told, and when a lock that another process holds would run out: so the
brokers of a process that died are taken over at once. Looking twice, or in many processes, is harmless.
"""

import asyncio
import os
import socket
from collections.abc import Callable

import structlog

from jobs.calls.broker import Broker
from jobs.context import JobContext
from storage.calls.limiter import Superseded
from storage.locks import LockLost
from storage.metrics import BROKERS

TICK_S = 60.0
AFTER_EXPIRY_S = 0.1
RESTART_S = 1.0

log = structlog.get_logger(__name__)


def lock_name(organization_id: str) -> str:
    """The process lock of an organization's broker."""
    return f"call_broker:{organization_id}"


def process_name() -> str:
    """This process, for people who look."""
    return f"{socket.gethostname()}/{os.getpid()}"


async def run_broker_pool(jobs: JobContext) -> None:
    """Manages until it is cancelled; then brokers finish what they hand over, and give their locks back."""
    pool = BrokerPool(jobs)
    listening = asyncio.create_task(jobs.stores.call_wake_ups.listen(pool.wake, pool.wake_all), name="call wakes")
    try:
        await pool.run()
    finally:
        await asyncio.shield(pool.stop())
        listening.cancel()
        await asyncio.gather(listening, return_exceptions=True)


class BrokerPool:
    """The brokers of this process."""

    def __init__(self, jobs: JobContext, make_broker: Callable[[str], Broker] | None = None) -> None:
        """`make_broker` is for tests that watch one."""
        self._jobs = jobs
        self._make = make_broker or (lambda org: Broker(jobs.stores.calls, jobs.telephony, org))
        self._brokers: dict[str, Broker] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._news = asyncio.Event()
        self._elsewhere: set[str] = set()
        self._stopping = False

    def wake(self, organization_id: str, released: bool = False) -> None:
        """Something changed for the organization: its broker looks, and where it may have none the manager does."""
        broker = self._brokers.get(organization_id)
        if broker is not None:
            broker.wake()
        elif released or organization_id not in self._elsewhere:
            self._news.set()

    def wake_all(self) -> None:
        """Anything may have changed for anybody."""
        for broker in self._brokers.values():
            broker.wake()
        self._news.set()

    async def run(self) -> None:
        """Until it is cancelled."""
        while True:
            self._news.clear()
            wait_s = await self.look()
            try:
                async with asyncio.timeout(wait_s):
                    await self._news.wait()
            except TimeoutError:
                continue

    async def look(self) -> float:
        """Starts brokers where there is work and nobody holds the lock; in how many seconds to look again."""
        organizations = await self._jobs.stores.calls.organizations_with_work()
        missing = [each for each in organizations if each not in self._tasks]
        leases_s = await self._jobs.stores.locks.leases_s([lock_name(each) for each in missing])
        self._elsewhere = {each for each in missing if lock_name(each) in leases_s}
        for organization_id in missing:
            if organization_id not in self._elsewhere:
                self._start(organization_id)
        return min([TICK_S, *(left_s + AFTER_EXPIRY_S for left_s in leases_s.values())])

    async def stop(self) -> None:
        """Brokers start nothing new, finish what they hand over, and give their locks back."""
        self._stopping = True
        for broker in self._brokers.values():
            broker.stop()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)

    def _start(self, organization_id: str) -> None:
        if not self._stopping:
            task = asyncio.create_task(self._serve(organization_id), name=f"broker {organization_id}")
            self._tasks[organization_id] = task

    async def _serve(self, organization_id: str) -> None:
        """One broker from taking its lock to giving it back; nothing when the lock is another's."""
        was_ours = False
        try:
            async with self._jobs.stores.locks.held(lock_name(organization_id), process_name()) as lock:
                if lock is None:
                    return
                was_ours = True
                await self._run(organization_id, lock.fence)
        except (LockLost, Superseded):
            log.warning("broker_superseded", organization=organization_id)
        except Exception as error:
            log.warning("broker_failed", organization=organization_id, error=repr(error))
            await asyncio.sleep(RESTART_S)
        finally:
            self._ended(organization_id, was_ours)

    def _ended(self, organization_id: str, was_ours: bool) -> None:
        self._tasks.pop(organization_id, None)
        if was_ours:
            # Others may begin, or we again: for what was launched since it last looked.
            self._jobs.stores.call_wake_ups.wake(organization_id, released=True)
        else:
            # Somebody was faster: look when their lease ends.
            self._news.set()

    async def _run(self, organization_id: str, fence: int) -> None:
        broker = self._brokers[organization_id] = self._make(organization_id)
        if self._stopping:
            broker.stop()
        BROKERS.inc()
        try:
            await broker.run(fence)
        finally:
            BROKERS.dec()
            self._brokers.pop(organization_id, None)

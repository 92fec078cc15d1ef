"""The broker pool of a worker process: every organization with work gets a broker, here or in another process.

The pool looks for work every minute, after wake-ups, and when a lock of another process expires. The organizations of
a dead process therefore get a new broker at once. Several processes may find the same work; the lock admits one.
"""

import asyncio
from collections.abc import Callable

import structlog

from jobs.calls.broker import Broker
from jobs.context import JobContext
from storage.calls.limiter import BrokerSuperseded
from storage.heartbeats import process_name
from storage.locks import LockLost
from storage.metrics import ACTIVE_BROKERS

TICK_S = 60.0
"""The longest time between two searches for work."""

AFTER_EXPIRY_S = 0.1
"""How long after the expiry of another process's lock the pool looks for work."""

RESTART_S = 1.0
"""The pause after a broker failed."""

log = structlog.get_logger(__name__)


def lock_name(organization_id: str) -> str:
    """Returns the name of the process lock that an organization's broker holds."""
    return f"call_broker:{organization_id}"


async def run_broker_pool(jobs: JobContext) -> None:
    """Runs the pool until it is cancelled. Its brokers then finish their requests and release their locks."""
    if jobs.telephony is None:
        # Calls wait until a worker with a provider starts them.
        await asyncio.Event().wait()
    pool = BrokerPool(jobs)
    listening = asyncio.create_task(jobs.stores.call_wake_ups.listen(pool.wake, pool.wake_all), name="call wake-ups")
    try:
        await pool.run()
    finally:
        await asyncio.shield(pool.stop())
        listening.cancel()
        await asyncio.gather(listening, return_exceptions=True)


class BrokerPool:
    """The brokers of this process."""

    def __init__(self, jobs: JobContext, make_broker: Callable[[str], Broker] | None = None) -> None:
        """`make_broker` creates the broker of an organization; tests pass another function."""
        self._jobs = jobs
        self._make_broker = make_broker or self._new_broker
        self._brokers: dict[str, Broker] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._woken = asyncio.Event()
        self._held_elsewhere: set[str] = set()
        self._is_stopping = False

    def wake(self, organization_id: str, released: bool = False) -> None:
        """Wakes the organization's broker. Without a broker here, wakes the pool, unless another process has the lock.

        `released` means that the lock has just been released.
        """
        broker = self._brokers.get(organization_id)
        if broker is not None:
            broker.wake()
        elif released or organization_id not in self._held_elsewhere:
            self._woken.set()

    def wake_all(self) -> None:
        """Wakes every broker and the pool."""
        for broker in self._brokers.values():
            broker.wake()
        self._woken.set()

    async def run(self) -> None:
        """Starts brokers for organizations with work, until it is cancelled."""
        while True:
            self._woken.clear()
            wait_s = await self.start_brokers()
            try:
                async with asyncio.timeout(wait_s):
                    await self._woken.wait()
            except TimeoutError:
                continue

    async def start_brokers(self) -> float:
        """Starts brokers where there is work and no lock is held. Returns in how many seconds to look again."""
        organizations = await self._jobs.stores.calls.organizations_with_work()
        missing = [each for each in organizations if each not in self._tasks]
        leases_s = await self._jobs.stores.locks.remaining_leases_s([lock_name(each) for each in missing])
        self._held_elsewhere = {each for each in missing if lock_name(each) in leases_s}
        for organization_id in missing:
            if organization_id not in self._held_elsewhere:
                self._create_task(organization_id)
        return min([TICK_S, *(left_s + AFTER_EXPIRY_S for left_s in leases_s.values())])

    async def stop(self) -> None:
        """Stops the brokers, which finish their requests to the service and release their locks."""
        self._is_stopping = True
        for broker in self._brokers.values():
            broker.stop()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)

    def _new_broker(self, organization_id: str) -> Broker:
        assert self._jobs.telephony is not None, "without a provider no pool runs"
        return Broker(self._jobs.stores.calls, self._jobs.telephony, organization_id)

    def _create_task(self, organization_id: str) -> None:
        if not self._is_stopping:
            task = asyncio.create_task(self._run_under_lock(organization_id), name=f"broker {organization_id}")
            self._tasks[organization_id] = task

    async def _run_under_lock(self, organization_id: str) -> None:
        """Runs one broker while its lock is held. Does nothing when another process holds the lock."""
        had_lock = False
        try:
            async with self._jobs.stores.locks.held(lock_name(organization_id), process_name()) as lock:
                if lock is None:
                    return
                had_lock = True
                await self._run_broker(organization_id, lock.fence)
        except (LockLost, BrokerSuperseded):
            log.warning("broker_superseded", organization=organization_id)
        except Exception as error:
            log.warning("broker_failed", organization=organization_id, error=repr(error))
            await asyncio.sleep(RESTART_S)
        finally:
            self._forget_task(organization_id, had_lock)

    def _forget_task(self, organization_id: str, had_lock: bool) -> None:
        """Removes the ended task, and makes this pool search for work, or all pools if the lock was held here."""
        self._tasks.pop(organization_id, None)
        if had_lock:
            # A job may have been launched since the broker's last plan, so every process may start a broker now.
            self._jobs.stores.call_wake_ups.wake(organization_id, is_lock_released=True)
        else:
            # Another process was faster. This pool searches again, to learn when that process's lease expires.
            self._woken.set()

    async def _run_broker(self, organization_id: str, fence: int) -> None:
        broker = self._brokers[organization_id] = self._make_broker(organization_id)
        if self._is_stopping:
            broker.stop()
        ACTIVE_BROKERS.inc()
        try:
            await broker.run(fence)
        finally:
            ACTIVE_BROKERS.dec()
            self._brokers.pop(organization_id, None)

"""Keeping a lease while something takes long, and stopping what holds it no longer."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import structlog

from storage.errors import DomainError
from storage.publishing.transitions import ClaimLost

Renew = Callable[[], Awaitable[bool]]

log = structlog.get_logger(__name__)


@asynccontextmanager
async def keep_renewing(renew: Renew, every_s: float) -> AsyncIterator[None]:
    """Renews at once and every so often meanwhile, until it is told that the lease is somebody else's."""

    async def run() -> None:
        while await renew():  # noqa: ASYNC110 - waits for time
            await asyncio.sleep(every_s)

    task = asyncio.create_task(run(), name="lease")
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def loop_time_s() -> float:
    """The loop's clock, from which leases are measured: it goes on while a process is stopped."""
    return asyncio.get_running_loop().time()


@dataclass(slots=True)
class ClaimLease:
    """A lease that was stored at `since_s` or later, by the loop's clock. Work in `kept` has it, or is stopped."""

    renew: Renew
    lease_s: float
    since_s: float
    _scope: asyncio.Timeout = field(default_factory=lambda: asyncio.timeout(None))
    _renewing: asyncio.Task[None] | None = None

    @property
    def _every_s(self) -> float:
        return self.lease_s / 3

    @asynccontextmanager
    async def kept(self) -> AsyncIterator[None]:
        """Renews meanwhile; cancels what is inside once the lease is somebody else's, or may be. Raises: ClaimLost.

        What is over soon costs a timer, and no write.
        """
        if loop_time_s() > self.since_s + self._every_s:
            # Whoever was stopped in between has to ask before it acts.
            await self._renew()
        loop, owner = asyncio.get_running_loop(), asyncio.current_task()
        assert owner is not None
        later = loop.call_later(self._every_s, self._start, owner)
        try:
            async with self._scope:
                self._scope.reschedule(self.since_s + self.lease_s)
                yield
        except TimeoutError:
            if not self._scope.expired():
                raise
            raise ClaimLost("Its lease has ended.") from None
        finally:
            later.cancel()
            if self._renewing is not None:
                self._renewing.cancel()
                await asyncio.gather(self._renewing, return_exceptions=True)

    def _start(self, owner: asyncio.Task[None]) -> None:
        self._renewing = asyncio.create_task(self._run(owner), name="lease")

    async def _run(self, owner: asyncio.Task[None]) -> None:
        # A lease is not kept for whoever is gone.
        while not owner.done() and not self._scope.expired():
            try:
                await self._renew()
                self._scope.reschedule(self.since_s + self.lease_s)
            except ClaimLost:
                self._scope.reschedule(loop_time_s())
                return
            except DomainError as error:
                # The next try may come in time; if none does, the work is stopped when the lease ends.
                log.warning("lease_not_renewed", error=repr(error))
            await asyncio.sleep(self._every_s)

    async def _renew(self) -> None:
        asked_s = loop_time_s()
        if not await self.renew():
            raise ClaimLost("It is somebody else's by now.")
        self.since_s = asked_s

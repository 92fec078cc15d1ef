"""Renews the lease of a claim during long work, and cancels the work once the lease may be lost."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import structlog

from storage.errors import DomainError
from storage.publishing.transitions import ClaimLost

RenewLease = Callable[[], Awaitable[bool]]
"""Renews a lease. Returns False when another worker holds it."""

log = structlog.get_logger(__name__)


@asynccontextmanager
async def keep_renewing(renew: RenewLease, every_s: float) -> AsyncIterator[None]:
    """Renews at once and then every `every_s` seconds inside the block, until `renew` returns False."""

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
    """Returns the event loop's time, which measures leases. This clock also advances while the process is stopped."""
    return asyncio.get_running_loop().time()


@dataclass(slots=True)
class ClaimLease:
    """A stored lease that began at `began_at_s` or later, by the loop's clock. `hold` runs work under the lease."""

    renew: RenewLease
    lease_s: float
    began_at_s: float
    _scope: asyncio.Timeout = field(default_factory=lambda: asyncio.timeout(None))
    _renewing: asyncio.Task[None] | None = None

    @property
    def _renew_every_s(self) -> float:
        return self.lease_s / 3

    @asynccontextmanager
    async def hold(self) -> AsyncIterator[None]:
        """Renews the lease while the block runs; cancels the block once the lease may be lost. Raises: ClaimLost.

        A short block costs one timer and no write.
        """
        if loop_time_s() > self.began_at_s + self._renew_every_s:
            # The process may have been stopped since the lease began, so the lease is verified before the block runs.
            await self._renew()
        loop, owner = asyncio.get_running_loop(), asyncio.current_task()
        assert owner is not None
        first_renewal = loop.call_later(self._renew_every_s, self._start_renewing, owner)
        try:
            async with self._scope:
                self._scope.reschedule(self.began_at_s + self.lease_s)
                yield
        except TimeoutError:
            if not self._scope.expired():
                raise
            raise ClaimLost("The lease on the publication has expired.") from None
        finally:
            first_renewal.cancel()
            if self._renewing is not None:
                self._renewing.cancel()
                await asyncio.gather(self._renewing, return_exceptions=True)

    def _start_renewing(self, owner: asyncio.Task[None]) -> None:
        self._renewing = asyncio.create_task(self._renew_until_done(owner), name="lease")

    async def _renew_until_done(self, owner: asyncio.Task[None]) -> None:
        # An owner that ended without clean-up has no use for the lease, so the renewals must stop.
        while not owner.done() and not self._scope.expired():
            try:
                await self._renew()
                self._scope.reschedule(self.began_at_s + self.lease_s)
            except ClaimLost:
                self._scope.reschedule(loop_time_s())
                return
            except DomainError as error:
                # A later renewal may still succeed. If none does, the scope cancels the block when the lease ends.
                log.warning("lease_renewal_failed", error=repr(error))
            await asyncio.sleep(self._renew_every_s)

    async def _renew(self) -> None:
        requested_at_s = loop_time_s()
        if not await self.renew():
            raise ClaimLost("Another worker has claimed the publication.")
        self.began_at_s = requested_at_s

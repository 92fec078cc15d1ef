"""Limits the cost of what is executed at a time in this process: one viewer's operations, and lookups of addresses.

Without this limit, the answers of one viewer's concurrent operations could fill the memory of the process. Executions
over the limit wait for earlier ones, in the order of their arrival. One that costs more than the limit is executed
alone (docs/limits.md).
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Hashable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from prometheus_client import Counter, Gauge

from storage.errors import RateLimited

MAX_WAITING = 1_000
"""Operations of one viewer that wait at a time."""

MAX_WAIT_S = 5.0

WAITING_OPERATIONS = Gauge(
    "noroshi_waiting_operations", "Operations that wait for earlier operations of the same viewer, and waiting lookups."
)
REFUSALS = Counter(
    "noroshi_refused_operations",
    "Operations refused because too many operations of the same viewer waited, or because they waited too long.",
)


def count_refusal(reason: str = "Too many of your operations are executed at the same time.") -> RateLimited:
    """Counts the refusal of an operation, and returns it as an error."""
    REFUSALS.inc()
    return RateLimited(reason, 1000)


@dataclass(slots=True, eq=False)
class _WaitingOperation:
    cost: int
    admitted: asyncio.Future[None]


@dataclass(slots=True)
class _ViewerOperations:
    cost: int = 0
    """Total cost of the operations that are executed now."""
    waiting: deque[_WaitingOperation] = field(default_factory=deque)


class ConcurrencyLimiter:
    """The operations of each viewer that are executed or wait."""

    def __init__(
        self,
        max_waiting: int = MAX_WAITING,
        max_wait_s: float = MAX_WAIT_S,
        refuse: Callable[[], RateLimited] = count_refusal,
    ) -> None:
        """`refuse` counts a refusal and returns its error."""
        self._max_waiting, self._max_wait_s, self._refuse = max_waiting, max_wait_s, refuse
        self._viewers: dict[Hashable, _ViewerOperations] = {}

    @asynccontextmanager
    async def execution(self, viewer_key: Hashable, cost: int, max_cost: int) -> AsyncIterator[None]:
        """Waits until the viewer's running operations and this one cost at most `max_cost`. Then runs the block.

        The operation counts as running until the block ends.

        Raises: RateLimited, if too many operations of the viewer wait, or after `max_wait_s` seconds.
        """
        cost = min(max(cost, 1), max_cost)
        viewer = self._viewers.setdefault(viewer_key, _ViewerOperations())
        if viewer.waiting or viewer.cost + cost > max_cost:
            await self._wait(viewer_key, viewer, cost, max_cost)
        else:
            viewer.cost += cost
        try:
            yield
        finally:
            self._release(viewer_key, viewer, cost, max_cost)

    async def _wait(self, viewer_key: Hashable, viewer: _ViewerOperations, cost: int, max_cost: int) -> None:
        if len(viewer.waiting) >= self._max_waiting:
            raise self._refuse()
        waiting = _WaitingOperation(cost, asyncio.get_running_loop().create_future())
        viewer.waiting.append(waiting)
        try:
            with WAITING_OPERATIONS.track_inprogress():
                async with asyncio.timeout(self._max_wait_s):
                    await waiting.admitted
        except BaseException as error:
            is_admitted = not waiting.admitted.cancelled()
            if waiting in viewer.waiting:
                viewer.waiting.remove(waiting)
            self._release(viewer_key, viewer, cost if is_admitted else 0, max_cost)
            if isinstance(error, TimeoutError):
                raise self._refuse() from None
            raise

    def _release(self, viewer_key: Hashable, viewer: _ViewerOperations, cost: int, max_cost: int) -> None:
        """Subtracts the cost of an operation. Then admits waiting operations in their order, up to `max_cost`."""
        viewer.cost -= cost
        while viewer.waiting and (not viewer.cost or viewer.cost + viewer.waiting[0].cost <= max_cost):
            first = viewer.waiting.popleft()
            # A cancelled operation stays in the queue until its task runs again.
            if not first.admitted.cancelled():
                viewer.cost += first.cost
                first.admitted.set_result(None)
        if not viewer.cost:
            self._viewers.pop(viewer_key, None)

    def __len__(self) -> int:
        """Returns the number of viewers with operations."""
        return len(self._viewers)

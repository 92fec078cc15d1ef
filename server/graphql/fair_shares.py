"""Shares the event loop between viewers: a viewer who has used much of its time waits for other viewers (ADR 58).

The event loop executes the operations of all viewers. Its time is measured in each step of an operation, from one
`await` to the next: for parsing, validation, execution, errors and JSON. A viewer who has recently used more than a
share of the time waits before each operation, root field, part of a large list, and event. A viewer waits only for
others who have used less than half of the waiting viewer's time, and who have recently begun an operation. Time that a
viewer uses while no other viewer is active does not count.
"""

import asyncio
import math
import time
from collections.abc import Awaitable, Coroutine, Generator, Hashable
from contextlib import nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from cachetools import LRUCache

from resolvers.limits.concurrency import MAX_WAIT_S, count_refusal
from server.graphql.protocols import Viewer

SHARE = 0.1
"""The part of the event loop's time that a viewer may use permanently without waiting."""

BURST_S = 0.1
"""The time above the share that a viewer may use before waiting."""

MAX_TURN_WAIT_S = 0.5
"""A viewer has the next turn after this time at the latest."""

MAX_USED_S = 0.15
"""The time above the share that is remembered. It is forgotten down to `BURST_S` within `MAX_TURN_WAIT_S`."""

ACTIVE_S = 0.5
"""A viewer is active for this time after the beginning of an operation."""

POLL_S = 0.005
MAX_SHARES = 100_000

Result = TypeVar("Result")


@dataclass(slots=True, eq=False)
class LoopShare:
    """The event loop's time that one viewer has used lately."""

    shares: "FairShares"
    burst_s: float
    active_at_s: float = 0.0
    waiting: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held by the viewer's operation that is the first to wait. Later ones wait for the lock, in order of arrival."""
    events: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held by the execution of an event for this viewer alone, so that the viewer's subscriptions take turns."""
    _used_s: float = 0.0
    _counted_at_s: float = 0.0

    def used_s(self, now_s: float) -> float:
        """Returns the time that the viewer has used lately, above the share."""
        return max(self._used_s - (now_s - self._counted_at_s) * SHARE, 0.0)

    def spend(self, seconds: float, now_s: float) -> None:
        """Adds time that the viewer has used while other viewers were active."""
        shares = self.shares
        if now_s > (shares.others_active_until_s if shares.newest is self else shares.newest_active_until_s):
            return
        # Repeats `used_s` without calling it, since no function is called more often while a page is executed.
        left_s = self._used_s - (now_s - self._counted_at_s) * SHARE
        self._used_s = min(left_s + seconds if left_s > 0 else seconds, MAX_USED_S)
        self._counted_at_s = now_s

    async def wait_for_turn(self) -> None:
        """Waits while the share is used up and other viewers are active, at most 0.5 s after the viewer's last turn."""
        if self.must_wait():
            async with self.waiting:
                ends_at_s = time.perf_counter() + MAX_TURN_WAIT_S
                # No event says that the share has refilled, or that other viewers are no longer active.
                while self._is_over_share() and time.perf_counter() < ends_at_s:  # noqa: ASYNC110
                    await asyncio.sleep(POLL_S)

    def must_wait(self) -> bool:
        """Returns whether `wait_for_turn` waits."""
        return self.waiting.locked() or self._is_over_share()

    def _is_over_share(self) -> bool:
        now_s = time.perf_counter()
        used_s = self.used_s(now_s)
        return used_s > self.burst_s and self.shares.has_active(used_s / 2, now_s)


class FairShares:
    """The shares of this process."""

    def __init__(self, active_s: float = ACTIVE_S) -> None:
        self._active_s = active_s
        self._shares: LRUCache[Hashable, LoopShare] = LRUCache(MAX_SHARES)
        self._active: dict[LoopShare, None] = {}
        """Shares in the order in which their last operations began."""
        self.newest: LoopShare | None = None
        """The share whose operation began last."""
        self.newest_active_until_s = self.others_active_until_s = -math.inf
        """When the newest share, and the last of the others, stop being active."""

    def of(self, viewer: Viewer | None, *, is_service: bool = False) -> LoopShare:
        """Returns the viewer's share. All clients without a token have one share. Services never wait."""
        key = None if viewer is None else (viewer.organization_id, viewer.id, is_service)
        share = self._shares.get(key)
        if share is None:
            share = self._shares[key] = LoopShare(self, math.inf if is_service else BURST_S)
        return share

    async def begin(self, share: LoopShare) -> None:
        """Waits for the turn of an operation. The time of the current task and of its tasks then counts for the share.

        Raises: RateLimited after 5 s, which at least ten waiting operations of the same viewer take.
        """
        if share.must_wait():
            try:
                async with asyncio.timeout(MAX_WAIT_S):
                    await share.wait_for_turn()
            except TimeoutError:
                raise count_refusal("Too many of your operations wait for their turn.") from None
        attribute_time_to(share)
        self.mark_active(share)

    def mark_active(self, share: LoopShare) -> None:
        """Notes that the viewer begins an operation."""
        self._active.pop(share, None)
        share.active_at_s = time.perf_counter()
        self._note_newest(share)
        self._active[share] = None
        oldest = next(iter(self._active))
        if share.active_at_s - oldest.active_at_s > self._active_s:
            del self._active[oldest]

    def _note_newest(self, share: LoopShare) -> None:
        """Stores when the share, and the last of the other shares, stop being active."""
        last_other = next(reversed(self._active), None)
        self.others_active_until_s = -math.inf if last_other is None else last_other.active_at_s + self._active_s
        self.newest, self.newest_active_until_s = share, share.active_at_s + self._active_s

    def has_active(self, below_s: float, now_s: float) -> bool:
        """Returns whether viewers who have used less than `below_s` have begun operations lately."""
        for each in reversed(self._active):
            if now_s - each.active_at_s > self._active_s:
                return False
            if each.used_s(now_s) < below_s:
                return True
        return False


_SHARE: ContextVar[LoopShare | None] = ContextVar("share", default=None)
_ROOT_FIELDS: ContextVar[asyncio.Lock | None] = ContextVar("root_fields", default=None)
_is_measuring = False
"""Whether a step is being measured. Coroutines that the step awaits are measured as parts of the step."""


def attribute_time_to(share: LoopShare | None) -> None:
    """Counts the time of the current task, and of tasks that it creates afterwards, for the share. None: for nobody."""
    _SHARE.set(share)


def execute_root_fields_singly() -> None:
    """Makes the root fields of the current task's operation wait for each other."""
    _ROOT_FIELDS.set(asyncio.Lock())


async def wait_for_turn() -> None:
    """Waits in the current task while its viewer's share is used up and other viewers are active."""
    share = _SHARE.get()
    if share is not None:
        await share.wait_for_turn()


class MeasuredAwaitable(Generic[Result]):
    """An awaitable whose steps count for the share of the task's viewer."""

    __slots__ = ("_awaitable",)

    def __init__(self, awaitable: Awaitable[Result]) -> None:
        self._awaitable = awaitable

    def __await__(self) -> Generator[Any, Any, Result]:
        """Yields what the awaitable yields, and forwards exceptions to it."""
        global _is_measuring
        steps = self._awaitable.__await__()
        if _is_measuring:
            return (yield from steps)
        error: BaseException | None = None
        while True:
            _is_measuring, began_s = True, time.perf_counter()
            try:
                awaited = next(steps) if error is None else steps.throw(error)
            except StopIteration as stop:
                result: Result = stop.value
                return result
            finally:
                # An error would otherwise refer to itself by its traceback and this frame.
                error, _is_measuring, now_s = None, False, time.perf_counter()
                if (share := _SHARE.get()) is not None:
                    share.spend(now_s - began_s, now_s)
            try:
                yield awaited
            except BaseException as thrown:
                error = thrown

    def __del__(self) -> None:
        """Closes a coroutine that was cancelled before its first step."""
        if isinstance(self._awaitable, Coroutine):
            self._awaitable.close()


async def await_in_turn(root_field: "MeasuredAwaitable[Result]") -> Result:
    """Awaits a root field when it is the turn of the field and of the viewer."""
    async with _ROOT_FIELDS.get() or nullcontext():
        await wait_for_turn()
        return await root_field

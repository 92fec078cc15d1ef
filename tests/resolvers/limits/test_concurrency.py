"""The limit of the operations that one viewer executes at a time."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from resolvers.limits.concurrency import ConcurrencyLimiter
from storage.errors import RateLimited

pytestmark = pytest.mark.anyio


class HeldOperations:
    """Running operations, which end on request."""

    def __init__(self, limiter: ConcurrencyLimiter) -> None:
        self._limiter = limiter
        self.running: list[str] = []

    @asynccontextmanager
    async def start(self, name: str, cost: int, viewer: str = "ann") -> AsyncIterator[asyncio.Event]:
        """Starts an operation, which ends when the event is set. After the block, ends or cancels the operation."""
        end = asyncio.Event()
        task = asyncio.create_task(self.run(name, cost, viewer, end))
        await self.let_tasks_proceed()
        try:
            yield end
        finally:
            end.set()
            if name not in self.running:
                task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def let_tasks_proceed(self) -> None:
        """Lets all tasks proceed."""
        for _ in range(10):
            await asyncio.sleep(0)

    async def run(self, name: str, cost: int, viewer: str, end: asyncio.Event) -> None:
        """Runs an operation until the event is set."""
        async with self._limiter.execution(viewer, cost, 100):
            self.running.append(name)
            await end.wait()
        self.running.remove(name)


async def test_operations_over_limit_wait_in_order() -> None:
    executions = HeldOperations(ConcurrencyLimiter())
    async with (
        executions.start("first", 60) as first,
        executions.start("large", 60),
        executions.start("small", 10),
        executions.start("second large", 60),
        executions.start("of another viewer", 100, "ben"),
    ):
        assert executions.running == ["first", "of another viewer"]
        first.set()
        await executions.let_tasks_proceed()
        assert executions.running == ["of another viewer", "large", "small"]


async def test_limit_holds_for_operations_after_others_have_waited() -> None:
    executions = HeldOperations(ConcurrencyLimiter())
    async with executions.start("first", 100) as first, executions.start("waiting", 60):
        first.set()
        await executions.let_tasks_proceed()
        async with executions.start("late", 60):
            assert executions.running == ["waiting"]


async def test_limit_holds_while_one_of_two_operations_has_ended() -> None:
    executions = HeldOperations(ConcurrencyLimiter())
    async with executions.start("first", 60), executions.start("second", 40) as second:
        second.set()
        await executions.let_tasks_proceed()
        async with executions.start("third", 60):
            assert executions.running == ["first"]


async def test_operation_without_cost_counts_as_one() -> None:
    executions = HeldOperations(ConcurrencyLimiter())
    async with executions.start("first", 99), executions.start("free", 0), executions.start("second free", 0):
        assert executions.running == ["first", "free"]


async def test_service_operation_starts_after_member_operation_ends() -> None:
    """Operations of one viewer have the larger limit under the role SERVICE."""
    limiter = ConcurrencyLimiter()
    async with asyncio.timeout(30):
        async with limiter.execution("ann", 100, 100):
            waiting = asyncio.create_task(limiter.execution("ann", 150, 200).__aenter__())
            await asyncio.sleep(0)
        await waiting


async def test_operation_larger_than_limit_is_executed_alone() -> None:
    executions = HeldOperations(ConcurrencyLimiter())
    async with executions.start("largest", 200_000) as largest, executions.start("small", 0):
        assert executions.running == ["largest"]
        largest.set()
        await executions.let_tasks_proceed()
        assert executions.running == ["small"]


async def test_operation_that_waits_too_long_is_refused() -> None:
    limiter = ConcurrencyLimiter(max_wait_s=0.01)
    async with HeldOperations(limiter).start("first", 100), asyncio.timeout(30):
        with pytest.raises(RateLimited):
            await limiter.execution("ann", 1, 100).__aenter__()


async def test_operation_over_limit_of_waiting_operations_is_refused() -> None:
    limiter = ConcurrencyLimiter(max_waiting=1, max_wait_s=600)
    executions = HeldOperations(limiter)
    async with executions.start("first", 100) as first, executions.start("second", 1), asyncio.timeout(30):
        try:
            with pytest.raises(RateLimited) as refused:
                await limiter.execution("ann", 1, 100).__aenter__()
        finally:
            first.set()
    assert refused.value.extensions["retryAfterMs"] == 1000


async def test_cancelled_operation_leaves_its_place() -> None:
    executions = HeldOperations(ConcurrencyLimiter())
    limiter = executions._limiter
    async with executions.start("first", 60) as first:
        waiting = asyncio.create_task(limiter.execution("ann", 100, 100).__aenter__())
        await executions.let_tasks_proceed()
        async with executions.start("small", 40):
            waiting.cancel()
            await executions.let_tasks_proceed()
            assert executions.running == ["first", "small"]
            async with executions.start("late", 1):
                assert executions.running == ["first", "small"]
            first.set()
            await executions.let_tasks_proceed()
            assert executions.running == ["small"]
    assert limiter._viewers == {}


async def test_operation_cancelled_as_it_is_admitted_leaves_nothing() -> None:
    limiter = ConcurrencyLimiter()

    async def execute() -> None:
        async with limiter.execution("ann", 100, 100):
            raise AssertionError("A cancelled operation was executed.")

    async with limiter.execution("ann", 100, 100):
        waiting = asyncio.create_task(execute())
        await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    assert waiting.cancelled()
    assert len(limiter) == 0


async def test_release_passes_over_operation_that_was_just_cancelled() -> None:
    executions = HeldOperations(ConcurrencyLimiter())
    async with executions.start("first", 100) as first:
        cancelled = asyncio.create_task(executions.run("cancelled", 100, "ann", asyncio.Event()))
        await executions.let_tasks_proceed()
        async with executions.start("next", 100):
            # The first operation ends before the cancelled one can leave the queue.
            first.set()
            cancelled.cancel()
            await executions.let_tasks_proceed()
            assert executions.running == ["next"]
    await asyncio.gather(cancelled, return_exceptions=True)

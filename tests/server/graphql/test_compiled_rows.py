"""Awaiting several fields at once: a failure or a cancellation leaves no field running."""

import asyncio

import pytest

from server.graphql.compiled.leaves import NotCompilable
from server.graphql.compiled.rows import await_all

pytestmark = pytest.mark.anyio


class EndlessFields:
    """Fields that run until they are cancelled. `ended` counts the fields that have ended."""

    def __init__(self) -> None:
        self.ended = 0

    async def wait(self) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            self.ended += 1


async def fail_to_compile() -> None:
    await asyncio.sleep(0)
    raise NotCompilable


async def test_await_all_waits_for_every_field() -> None:
    finished = []

    async def field(name: str, ticks: int) -> None:
        for _ in range(ticks):
            await asyncio.sleep(0)
        finished.append(name)

    await await_all([field("a", 2), field("b", 5), field("c", 0)])
    assert finished == ["c", "a", "b"]


async def test_failure_cancels_other_fields_before_it_is_raised() -> None:
    fields = EndlessFields()
    with pytest.raises(NotCompilable):
        await await_all([fail_to_compile(), fields.wait(), fields.wait()])
    assert fields.ended == 2


async def test_cancelled_await_all_leaves_no_task() -> None:
    fields = EndlessFields()
    task = asyncio.create_task(await_all([fields.wait(), fields.wait()]))
    await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert fields.ended == 2

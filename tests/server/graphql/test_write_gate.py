"""The gate at which senders wait while a client does not read."""

import asyncio

import pytest

from server.graphql.write_gate import WriteGate

pytestmark = pytest.mark.anyio


async def test_open_gate_lets_callers_pass() -> None:
    gate = WriteGate()
    assert gate.is_set()
    await gate.wait()


async def test_closed_gate_holds_all_callers_until_it_opens() -> None:
    gate = WriteGate()
    gate.clear()
    gate.clear()
    waiting = [asyncio.create_task(gate.wait()) for _ in range(3)]
    await asyncio.sleep(0)
    assert not gate.is_set()
    assert not any(each.done() for each in waiting)
    gate.set()
    await asyncio.gather(*waiting)
    assert gate.is_set()


async def test_cancelled_caller_does_not_keep_others_waiting() -> None:
    gate = WriteGate()
    gate.clear()
    cancelled, waiting = (asyncio.create_task(gate.wait()) for _ in range(2))
    await asyncio.sleep(0)
    cancelled.cancel()
    gate.set()
    await asyncio.wait([cancelled, waiting])
    assert cancelled.cancelled()
    assert waiting.done()

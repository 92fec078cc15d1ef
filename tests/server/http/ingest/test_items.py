"""Items of bodies: lines and elements by their index, in batches between which other tasks run."""

import asyncio

import pytest

from server.http.ingest.items import BATCH, MAX_ITEMS, Item, item_batches
from storage.errors import BadUserInput

pytestmark = pytest.mark.anyio


async def items_of(body: bytes) -> list[Item]:
    return [item async for batch in item_batches(body) for item in batch]


async def test_blank_lines_count_for_index() -> None:
    assert await items_of(b"\na\r\n \n\nb") == [(1, b"a\r"), (4, b"b")]
    assert await items_of(b"") == []


async def test_elements_of_any_type_are_split() -> None:
    body = b' [ {"a": ["]", "\\\\"]},1 ,\n"x,]" , [[]], null ] '
    assert [text for _, text in await items_of(body)] == [b'{"a": ["]", "\\\\"]}', b"1", b'"x,]"', b"[[]]", b"null"]
    assert await items_of(b"[]") == []


@pytest.mark.parametrize("body", [b"[", b"[1", b"[1,]", b"[,1]", b"[1] 2", b"[1 2]", b"[\xff]", b"[" * 100_000])
async def test_malformed_array_is_refused(body: bytes) -> None:
    with pytest.raises(BadUserInput):
        await items_of(body)


@pytest.mark.parametrize("body", [b"\n" * (MAX_ITEMS + 1), b"[" + b"1," * MAX_ITEMS + b"1]"], ids=["lines", "array"])
async def test_too_many_items_are_refused(body: bytes) -> None:
    with pytest.raises(BadUserInput, match="at most 250,000"):
        await items_of(body)


async def test_other_tasks_run_while_array_is_split() -> None:
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    task = asyncio.create_task(count())
    await anext(item_batches(b"[" + b"1," * (20 * BATCH) + b"1]"))
    task.cancel()
    assert turns >= 20

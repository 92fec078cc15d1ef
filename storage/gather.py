"""Batched look-ups: what is asked for in one turn of the event loop is read in one query. No cache, so never stale."""

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Mapping, Sequence
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")
Load = Callable[[Sequence[Key]], Awaitable[Mapping[Key, Value]]]

MAX_KEYS = 1000


class Gather(Generic[Key, Value]):
    """Turns many single look-ups into few. One for each process and kind of look-up."""

    def __init__(self, load: Load[Key, Value]) -> None:
        """`load` gets distinct keys, at most 1000, and gives the values of those that exist."""
        self._load = load
        self._waiting: dict[Key, asyncio.Future[Value | None]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def get(self, key: Key) -> Value | None:
        """The value of a key; None where there is none."""
        future = self._waiting.get(key)
        if future is None:
            loop = asyncio.get_running_loop()
            if not self._waiting:
                loop.call_soon(self._start)
            future = self._waiting[key] = loop.create_future()
        # One that stops waiting must not take the value from those who asked for the same key.
        return await asyncio.shield(future)

    async def get_many(self, keys: Sequence[Key]) -> list[Value]:
        """The values of the keys that exist, in their order."""
        found = await asyncio.gather(*map(self.get, keys))
        return [value for value in found if value is not None]

    def _start(self) -> None:
        waiting, self._waiting = self._waiting, {}
        keys = list(waiting)
        for start in range(0, len(keys), MAX_KEYS):
            part = {key: waiting[key] for key in keys[start : start + MAX_KEYS]}
            task = asyncio.create_task(self._run(part))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _run(self, waiting: dict[Key, asyncio.Future[Value | None]]) -> None:
        try:
            found = await self._load(list(waiting))
        except Exception as error:
            for future in waiting.values():
                if not future.done():
                    future.set_exception(error)
                    future.exception()  # marked as seen: whoever waited may be gone
        else:
            for key, future in waiting.items():
                if not future.done():
                    future.set_result(found.get(key))

"""Batched look-ups: what is asked for while a read is under way, or in one turn of the event loop, is one query.

No cache, so never stale: whoever asks gets what was read after they asked.
"""

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from storage.mongo.commands import UNINTERRUPTED

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")
Load = Callable[[Sequence[Key]], Awaitable[Mapping[Key, Value]]]

MAX_KEYS = 1000
PATIENCE_S = 0.02
"""So long the next read waits for the one under way, while more is asked for; then it no longer does."""


@dataclass(slots=True)
class _Moment(Generic[Key, Value]):
    """What is asked for until the next read begins, and who waits for it."""

    start: asyncio.Handle
    keys: set[Key] = field(default_factory=set)
    # One for each: who stops waiting must not take the values from the others, and a shield costs three times as much.
    waiting: list[asyncio.Future[Mapping[Key, Value]]] = field(default_factory=list)


class Gather(Generic[Key, Value]):
    """Turns many single look-ups into few. One for each process and kind of look-up."""

    def __init__(self, load: Load[Key, Value], max_keys: int = MAX_KEYS) -> None:
        """`load` gets distinct keys, at most `max_keys`, and gives the values of those that exist."""
        self._load = load
        self._max_keys = max_keys
        self._moment: _Moment[Key, Value] | None = None
        self._reads: set[asyncio.Task[None]] = set()

    async def get(self, key: Key) -> Value | None:
        """The value of a key; None where there is none."""
        return (await self.find((key,))).get(key)

    async def get_many(self, keys: Sequence[Key]) -> list[Value]:
        """The values of the keys that exist, in their order."""
        found = await self.find(keys)
        return [value for value in map(found.get, keys) if value is not None]

    async def find(self, keys: Iterable[Key]) -> Mapping[Key, Value]:
        """The values of those that exist, and perhaps of other keys, by key."""
        loop = asyncio.get_running_loop()
        if self._moment is None:
            start = loop.call_later(PATIENCE_S, self._start) if self._reads else loop.call_soon(self._start)
            self._moment = _Moment(start)
        found: asyncio.Future[Mapping[Key, Value]] = loop.create_future()
        self._moment.keys.update(keys)
        self._moment.waiting.append(found)
        return await found

    def _start(self) -> None:
        moment, self._moment = self._moment, None
        if moment is not None:
            moment.start.cancel()
            read = asyncio.create_task(self._run(moment))
            self._reads.add(read)
            read.add_done_callback(self._end)

    def _end(self, read: asyncio.Task[None]) -> None:
        self._reads.discard(read)
        # Only the end of the whole process calls reads off.
        if not read.cancelled():
            self._start()

    async def _run(self, moment: _Moment[Key, Value]) -> None:
        UNINTERRUPTED.set(True)
        try:
            found = await self._read(list(moment.keys))
        except Exception as error:
            for each in moment.waiting:
                if not each.done():
                    each.set_exception(error)
        else:
            for each in moment.waiting:
                if not each.done():
                    each.set_result(found)

    async def _read(self, keys: Sequence[Key]) -> Mapping[Key, Value]:
        if len(keys) <= self._max_keys:
            return await self._load(keys) if keys else {}
        parts = [keys[start : start + self._max_keys] for start in range(0, len(keys), self._max_keys)]
        read = await asyncio.gather(*map(self._load, parts))
        return {key: value for part in read for key, value in part.items()}

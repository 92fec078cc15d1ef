"""Batched lookups: keys that are requested while a lookup is in progress share the next lookup.

Nothing is cached. Each caller gets data that was read after its call.
"""

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from storage.errors import RateLimited
from storage.metrics import REFUSED_LOOKUPS

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")
LoadValues = Callable[[Sequence[Key]], Awaitable[Mapping[Key, Value]]]

MAX_KEYS = 1000
MAX_ID_CHARS = 1000
"""Keys with longer ids are not looked up, because no id is that long. A query with several of them could exceed
MongoDB's limit of 16 MB, and would then fail for all callers."""

MAX_WAITING_KEYS = 100_000
"""Maximum number of keys in one loader: those that are being looked up, and those that wait for a lookup. While a
loader has so many, it refuses callers."""

MAX_WAIT_S = 0.02
"""How long a batch waits at most for the lookup in progress."""


STEPS_BEFORE_LOOKUP = 5
"""Steps of the event loop that a batch collects keys for. The fields of one level of a query start within few steps,
depending on how many tasks are between the field and its lookup."""


@dataclass(slots=True)
class _Batch(Generic[Key, Value]):
    """Keys collected for the next lookup, and the futures of their callers."""

    start: asyncio.Handle
    """The latest start of the lookup."""

    keys: set[Key] = field(default_factory=set)
    # Each caller has a future, so that a cancelled caller does not cancel the others. A common future behind
    # asyncio.shield takes three times as long.
    callers: list[asyncio.Future[Mapping[Key, Value]]] = field(default_factory=list)

    def resolve(self, values: Mapping[Key, Value]) -> None:
        for caller in self.callers:
            if not caller.done():
                caller.set_result(values)

    def fail(self, error: Exception) -> None:
        for caller in self.callers:
            if not caller.done():
                caller.set_exception(error)


class BatchLoader(Generic[Key, Value]):
    """Combines concurrent lookups by key into few queries. A process needs one loader for each kind of lookup."""

    def __init__(self, load: LoadValues[Key, Value], max_keys: int = MAX_KEYS) -> None:
        """`load` receives at most `max_keys` distinct keys and returns the values of the keys that exist."""
        self._load = load
        self._max_keys = max_keys
        self._batch: _Batch[Key, Value] | None = None
        self._lookups: set[asyncio.Task[None]] = set()
        self._waiting_keys = 0

    async def get(self, key: Key) -> Value | None:
        """Returns the value of a key, or None if it does not exist."""
        return (await self.find((key,))).get(key)

    async def get_many(self, keys: Sequence[Key]) -> list[Value]:
        """Returns the values of the keys that exist, in the order of the keys."""
        values = await self.find(keys)
        return [value for value in map(values.get, keys) if value is not None]

    async def find(self, keys: Iterable[Key]) -> Mapping[Key, Value]:
        """Returns the values of those keys that exist, by key.

        The lookup is shared, and the result is not: it never holds the keys of other callers, who may have other
        rights. Raises: RateLimited if too many keys wait.
        """
        own_keys = list(keys)
        if not own_keys:
            return {}
        loop = asyncio.get_running_loop()
        if self._waiting_keys >= MAX_WAITING_KEYS:
            REFUSED_LOOKUPS.inc()
            raise RateLimited("The server looks up too many objects at the moment. Try again later.", 1000)
        if self._batch is None:
            self._batch = _Batch(loop.call_later(MAX_WAIT_S, self._start))
            if not self._lookups:
                self._start_after(STEPS_BEFORE_LOOKUP, self._batch)
        answer: asyncio.Future[Mapping[Key, Value]] = loop.create_future()
        key_count_before = len(self._batch.keys)
        self._batch.keys.update(key for key in own_keys if not _has_long_id(key))
        self._waiting_keys += len(self._batch.keys) - key_count_before
        self._batch.callers.append(answer)
        values = await answer
        return {key: values[key] for key in own_keys if key in values}

    def _start_after(self, steps: int, batch: _Batch[Key, Value]) -> None:
        if self._batch is not batch:
            return
        if steps:
            asyncio.get_running_loop().call_soon(self._start_after, steps - 1, batch)
        else:
            self._start()

    def _start(self) -> None:
        batch, self._batch = self._batch, None
        if batch is not None:
            batch.start.cancel()
            lookup = asyncio.create_task(self._run(batch))
            self._lookups.add(lookup)
            lookup.add_done_callback(self._on_lookup_done)

    def _on_lookup_done(self, lookup: asyncio.Task[None]) -> None:
        self._lookups.discard(lookup)
        # Lookups are cancelled only when the process ends.
        if not lookup.cancelled():
            self._start()

    async def _run(self, batch: _Batch[Key, Value]) -> None:
        try:
            batch.resolve(await self._look_up(list(batch.keys)))
        except Exception as error:
            batch.fail(error)
        finally:
            self._waiting_keys -= len(batch.keys)

    async def _look_up(self, keys: Sequence[Key]) -> Mapping[Key, Value]:
        if len(keys) <= self._max_keys:
            return await self._load(keys) if keys else {}
        chunks = [keys[start : start + self._max_keys] for start in range(0, len(keys), self._max_keys)]
        results = await asyncio.gather(*map(self._load, chunks))
        return {key: value for values in results for key, value in values.items()}


def _has_long_id(key: object) -> bool:
    ids = key if isinstance(key, tuple) else (key,)
    return any(isinstance(id_, str) and len(id_) > MAX_ID_CHARS for id_ in ids)

"""Cancellation of a coroutine at one of its awaits."""

import asyncio
from collections.abc import Generator
from typing import Any


class CancelledAwait:
    """An awaitable that runs a coroutine and throws CancelledError into it at await `await_number`.

    Only awaits that suspend count.
    """

    def __init__(self, work: Any, await_number: int) -> None:
        self.work, self.await_number, self.awaits = work, await_number, 0

    def __await__(self) -> Generator[Any, Any, Any]:
        inner = self.work.__await__()
        value: Any = None
        error: BaseException | None = None
        while True:
            try:
                waited = inner.throw(error) if error is not None else inner.send(value)
            except StopIteration as stop:
                return stop.value
            self.awaits += 1
            value, error = None, None
            if self.awaits == self.await_number:
                # The awaited operation goes on, as it does when a task is cancelled during a driver's call.
                error = asyncio.CancelledError()
                if hasattr(waited, "_asyncio_future_blocking"):
                    waited._asyncio_future_blocking = False
                continue
            try:
                value = yield waited
            except BaseException as thrown:
                error = thrown

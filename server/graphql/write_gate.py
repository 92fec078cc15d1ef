"""Whether a connection may write, with a tenth of the memory of asyncio.Event, since each idle socket has one."""

import asyncio


class WriteGate:
    """Open at first. Callers wait while it is closed."""

    __slots__ = ("_waiters",)

    def __init__(self) -> None:
        self._waiters: list[asyncio.Future[None]] | None = None
        """The callers that wait; None while the gate is open."""

    def is_set(self) -> bool:
        """Returns whether the gate is open."""
        return self._waiters is None

    def set(self) -> None:
        """Opens the gate, and wakes all callers."""
        waiters, self._waiters = self._waiters, None
        for waiter in waiters or ():
            if not waiter.done():
                waiter.set_result(None)

    def clear(self) -> None:
        """Closes the gate."""
        if self._waiters is None:
            self._waiters = []

    async def wait(self) -> None:
        """Returns at once while the gate is open, otherwise when it is opened."""
        if self._waiters is not None:
            waiter = asyncio.get_running_loop().create_future()
            self._waiters.append(waiter)
            await waiter

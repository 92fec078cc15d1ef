"""Counts the commands that a block of code sends to MongoDB, and how many of them follow each other.

Commands that are sent without an answer in between are one round trip, whatever the speed of the machine: no answer is
delivered before the event loop is idle, that is before no further command can be sent without an answer.
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import bson
from pymongo.network_layer import PyMongoProtocol

IDLE_STEPS = 100
"""After this number of steps of the event loop without a command, it counts as idle."""

_HEADER_BYTES = 21
"""The bytes of a message before its command: header, flags and the kind of the section."""


class RoundTrips:
    """The commands of a block, with the collection of each, in the order of their round trips."""

    def __init__(self) -> None:
        self.trips: list[list[str]] = []
        self._sent: list[str] = []
        self._steps_idle = 0
        self._answers_due = 0
        self._delivery: asyncio.Task[None] | None = None

    @property
    def commands(self) -> list[str]:
        """All commands, such as "find topics"."""
        return [command for trip in self.trips for command in trip]

    def record(self, message: bytes) -> bool:
        """Records the command of a message. Returns False for a command of the driver itself."""
        command = bson.decode(message[_HEADER_BYTES : _HEADER_BYTES + int.from_bytes(message[21:25], "little")])
        if command["$db"] == "admin":
            return False
        name, subject = next(iter(command.items()))
        self._sent.append(f"{name} {command['collection'] if name == 'getMore' else subject}")
        self._steps_idle = 0
        return True

    async def wait_for_delivery(self) -> None:
        """Waits until the answers to all commands of the round trip are delivered."""
        if self._delivery is None:
            self._delivery = asyncio.create_task(self._when_idle())
        await asyncio.shield(self._delivery)
        self._answers_due += 1

    def note_answer(self) -> None:
        """Notes that an awaited answer has arrived."""
        self._answers_due -= 1
        self._steps_idle = 0

    async def _when_idle(self) -> None:
        self._steps_idle = 0
        while self._steps_idle < IDLE_STEPS:
            await asyncio.sleep(0)
            self._steps_idle = 0 if self._answers_due else self._steps_idle + 1
        self.trips.append(self._sent)
        self._sent, self._delivery = [], None


_RECORDING: ContextVar[RoundTrips | None] = ContextVar("recording", default=None)


@contextmanager
def recorded_round_trips() -> Iterator[RoundTrips]:
    """Records the round trips of the block's task and of the tasks that it creates. Needs PyMongo's own driver."""
    write, read = PyMongoProtocol.write, PyMongoProtocol.read
    awaited: set[PyMongoProtocol] = set()

    async def recording_write(self: PyMongoProtocol, message: bytes) -> None:
        recording = _RECORDING.get()
        if recording is not None and recording.record(message):
            awaited.add(self)
        await write(self, message)

    async def delayed_read(self: PyMongoProtocol, *arguments: Any) -> tuple[bytes, int]:
        recording = _RECORDING.get()
        if recording is None or self not in awaited:
            return await read(self, *arguments)
        awaited.remove(self)
        await recording.wait_for_delivery()
        try:
            return await read(self, *arguments)
        finally:
            recording.note_answer()

    recording = RoundTrips()
    token = _RECORDING.set(recording)
    PyMongoProtocol.write, PyMongoProtocol.read = recording_write, delayed_read  # type: ignore[assignment, method-assign]
    try:
        yield recording
    finally:
        PyMongoProtocol.write, PyMongoProtocol.read = write, read  # type: ignore[method-assign]
        _RECORDING.reset(token)

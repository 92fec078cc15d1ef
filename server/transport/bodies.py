"""Limits on request bodies: the size of each, and the bytes of all bodies that a process holds at a time."""

from collections.abc import Iterator
from contextlib import contextmanager

from prometheus_client import Counter, Gauge
from starlette.types import Message, Receive

from storage.errors import BadUserInput, RateLimited

MAX_BODY_BYTES = 1_000_000
MAX_LIST_BODY_BYTES = 16_000_000
MAX_HELD_BYTES = 128 * 1024 * 1024
MAX_DISCARDED_BYTES = 2 * MAX_LIST_BODY_BYTES

HELD_BODY_BYTES = Gauge("noroshi_request_body_bytes", "Bytes of the bodies of requests that are received or executed.")
REFUSALS = Counter("noroshi_refused_bodies", "Requests refused because other requests' bodies took all the memory.")


class BodyTooLarge(BadUserInput):
    """The request's body is over the limit."""

    def __init__(self) -> None:
        super().__init__("body", f"at most {MAX_BODY_BYTES:,} bytes, or {MAX_LIST_BODY_BYTES:,} for lists of calls")


class RequestBodies:
    """The bodies that this process holds."""

    def __init__(self, max_held_bytes: int = MAX_HELD_BYTES) -> None:
        self._max_held_bytes = max_held_bytes
        self._held_bytes = 0

    @contextmanager
    def limited(self, receive: Receive, max_bytes: int = MAX_BODY_BYTES) -> Iterator[Receive]:
        """Yields a `receive` that counts the body. The body counts as held until the block ends.

        The `receive` raises BodyTooLarge once the body has more than `max_bytes` bytes. It raises RateLimited if the
        process would hold too many bytes of all bodies together. Either way it first reads the rest of the body.
        """
        read_bytes = 0

        async def receive_counted() -> Message:
            nonlocal read_bytes
            message = await receive()
            chunk_bytes = len(message.get("body", b""))
            try:
                self._add(chunk_bytes, max_bytes - read_bytes)
            except (BodyTooLarge, RateLimited):
                await _discard_rest(message, receive)
                raise
            read_bytes += chunk_bytes
            return message

        try:
            yield receive_counted
        finally:
            self._change_held(-read_bytes)

    def _add(self, chunk_bytes: int, allowed_bytes: int) -> None:
        if chunk_bytes > allowed_bytes:
            raise BodyTooLarge
        if self._held_bytes + chunk_bytes > self._max_held_bytes:
            REFUSALS.inc()
            raise RateLimited("The server receives too many large requests at the moment. Try again later.", 1000)
        self._change_held(chunk_bytes)

    def _change_held(self, by_bytes: int) -> None:
        self._held_bytes += by_bytes
        HELD_BODY_BYTES.set(self._held_bytes)


async def _discard_rest(message: Message, receive: Receive) -> None:
    """Reads the rest of a refused body. A proxy may close the connection of a client that it answers while it sends."""
    discarded_bytes = 0
    while message.get("more_body") and discarded_bytes < MAX_DISCARDED_BYTES:
        message = await receive()
        discarded_bytes += len(message.get("body", b""))


PROCESS_BODIES = RequestBodies()
"""The bodies of this process."""

"""Limits on request bodies: the size of each, the bytes of all that a process holds, and the rest of refused ones."""

from collections.abc import Awaitable
from http import HTTPStatus

from prometheus_client import Counter, Gauge
from starlette.requests import ClientDisconnect, Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from server.transport.compression import decode
from storage.errors import BadUserInput, RateLimited

MAX_BODY_BYTES = 1_000_000
MAX_LIST_BODY_BYTES = 16_000_000
MAX_HELD_BYTES = 128 * 1024 * 1024
MAX_DISCARDED_BYTES = 2 * MAX_LIST_BODY_BYTES

HELD_BODY_BYTES = Gauge("noroshi_request_body_bytes", "Bytes of the bodies of requests that are received or executed.")
REFUSALS = Counter("noroshi_refused_bodies", "Requests refused because other requests' bodies took all the memory.")


class BodyTooLarge(BadUserInput):
    """The request's body is over the limit. Without `max_bytes`, the error names the limits of GraphQL requests."""

    def __init__(self, max_bytes: int | None = None) -> None:
        lists = f"{MAX_BODY_BYTES:,} bytes, or {MAX_LIST_BODY_BYTES:,} for lists of calls"
        super().__init__("body", f"at most {lists if max_bytes is None else f'{max_bytes:,} bytes'}")


class RequestBodies:
    """The bodies that this process holds."""

    def __init__(self, max_held_bytes: int = MAX_HELD_BYTES) -> None:
        self._max_held_bytes = max_held_bytes
        self.held_bytes = 0

    def hold(self, receive: Receive, max_bytes: int = MAX_BODY_BYTES) -> "HeldBody":
        """Returns a context manager for one body, which counts as held until the block ends."""
        return HeldBody(self, receive, max_bytes)

    def add(self, chunk_bytes: int) -> None:
        """Counts a part of a body. Raises: RateLimited if the process would hold too many bytes."""
        if self.held_bytes + chunk_bytes > self._max_held_bytes:
            REFUSALS.inc()
            raise RateLimited("The server receives too many large requests at the moment. Try again later.", 1000)
        self.held_bytes += chunk_bytes


class HeldBody:
    """The body of one request."""

    __slots__ = ("_bodies", "_bytes", "_max_bytes", "_receive")

    def __init__(self, bodies: RequestBodies, receive: Receive, max_bytes: int) -> None:
        self._bodies, self._receive, self._max_bytes, self._bytes = bodies, receive, max_bytes, 0

    def __enter__(self) -> "HeldBody":
        return self

    def __exit__(self, *_error: object) -> None:
        self._bodies.held_bytes -= self._bytes

    async def read(self, encoding: str = "identity") -> bytes:
        """Returns the whole body without its Content-Encoding. The limit holds before and after decoding.

        Raises: BodyTooLarge, RateLimited, ClientDisconnect; BadUserInput if it cannot be decoded.
        """
        body = await self._read()
        if encoding == "identity":
            return body
        decoded = decode(body, encoding.lower(), self._max_bytes)
        if len(decoded) > self._max_bytes:
            raise self._too_large()
        self._bodies.add(len(decoded))
        self._bytes += len(decoded)
        return decoded

    async def _read(self) -> bytes:
        chunks, has_more = [], True
        while has_more:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                raise ClientDisconnect
            chunks.append(self._count(message.get("body", b"")))
            has_more = message.get("more_body", False)
        return b"".join(chunks)

    def _count(self, chunk: bytes) -> bytes:
        if self._bytes + len(chunk) > self._max_bytes:
            raise self._too_large()
        self._bodies.add(len(chunk))
        self._bytes += len(chunk)
        return chunk

    def _too_large(self) -> BodyTooLarge:
        is_of_graphql = self._max_bytes in (MAX_BODY_BYTES, MAX_LIST_BODY_BYTES)
        return BodyTooLarge(None if is_of_graphql else self._max_bytes)


PROCESS_BODIES = RequestBodies()
"""The bodies of this process."""

HELD_BODY_BYTES.set_function(lambda: PROCESS_BODIES.held_bytes)


async def read_body(request: Request, max_bytes: int) -> bytes:
    """Returns the body of a request. Raises: BadUserInput if it has more than `max_bytes` bytes."""
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > max_bytes:
            raise BadUserInput("body", f"at most {max_bytes} bytes")
    return bytes(body)


class RefusalsAfterBodies:
    """ASGI middleware that reads the rest of a request's body before an error is answered.

    A proxy may close the connection of a client that it answers while the client sends.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        """Returns the awaitable of a request, or that of the next application for a socket."""
        return (self._serve_request if scope["type"] == "http" else self._app)(scope, receive, send)

    async def _serve_request(self, scope: Scope, receive: Receive, send: Send) -> None:
        has_more = True

        async def receive_watched() -> Message:
            nonlocal has_more
            message = await receive()
            has_more = message.get("more_body", False)
            return message

        async def send_after_body(message: Message) -> None:
            if has_more and message["type"] == "http.response.start" and message["status"] >= HTTPStatus.BAD_REQUEST:
                await _discard_body(receive)
            await send(message)

        await self._app(scope, receive_watched, send_after_body)


async def _discard_body(receive: Receive) -> None:
    discarded_bytes, has_more = 0, True
    while has_more and discarded_bytes < MAX_DISCARDED_BYTES:
        message = await receive()
        discarded_bytes += len(message.get("body", b""))
        has_more = message.get("more_body", False)

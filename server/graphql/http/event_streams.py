"""GraphQL over server-sent events: one operation on each stream ("distinct connections" of npm graphql-sse, ADR 107).

A stream ends with `complete` when its operation has ended. It ends without `complete` when the client should ask again:
its access must be checked, it reads too slowly, or the process stops. The client then sends the id of its last event.
"""

import asyncio
from collections.abc import Awaitable, Sequence
from contextlib import suppress

import orjson
from graphql import GraphQLError
from starlette.datastructures import Headers
from starlette.requests import HTTPConnection
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from schema.errors import to_client_error
from server.graphql.documents import OperationRefused, PreparedOperation
from server.graphql.fair_shares import FairShares, MeasuredAwaitable
from server.graphql.frames import STREAM_END, stream_event
from server.graphql.http.responses import STREAM_HEADERS, refusal_response
from server.graphql.protocols import Application, OperationContext, Session
from server.graphql.session_watch import SessionWatch
from server.graphql.socket_writer import MAX_WAITING_BYTES, MAX_WAITING_EVENTS
from server.graphql.subscriptions import Subscriptions
from server.transport.http_protocol import UNACKNOWLEDGED_S, limit_acknowledgement
from storage.errors import DomainError

KEEP_ALIVE_S = UNACKNOWLEDGED_S / 3
"""A stream without events gets a comment after this time.

Proxies close idle connections, and TCP notices a vanished client only by what it does not acknowledge.
"""

KEEP_ALIVE = b":\n\n"
LAST_EVENT_ID = "last-event-id"

RAW_HEADERS = [(name.lower().encode(), value.encode()) for name, value in STREAM_HEADERS.items()]


class EventStream:
    """The events that wait to be sent to one client, in bounded memory."""

    def __init__(self) -> None:
        self.refusal: Exception | None = None
        """Why the operation was refused before its first event."""
        self._waiting: list[bytes] = []
        self._waiting_bytes = self._waiting_events = 0
        self._has_begun = self._is_ended = False
        self._has_changed, self._has_room = asyncio.Event(), asyncio.Event()
        self._has_room.set()

    def write_events(self, frames: bytes, events: int) -> None:
        """Adds complete events. Cuts the stream if too many earlier ones wait."""
        if self._is_ended:
            return
        if self._waiting_bytes > MAX_WAITING_BYTES or self._waiting_events >= MAX_WAITING_EVENTS:
            self.cut()
            return
        self._waiting.append(frames)
        self._waiting_bytes += len(frames)
        self._waiting_events += events
        self._has_begun = True
        self._has_room.clear()
        self._has_changed.set()

    async def wait_for_room(self) -> None:
        """Waits until the connection has taken all events. It buffers few of them."""
        while not self._has_room.is_set():
            await self._has_room.wait()

    def complete(self, errors: Sequence[Exception] = ()) -> None:
        """Ends the operation, with the errors that ended it."""
        if not self._is_ended:
            self._waiting += [*([_failure(errors)] if errors else []), STREAM_END]
            self._end()

    def fail(self, error: Exception) -> None:
        """Ends the operation with an error, or refuses it before its first event."""
        if self._has_begun:
            self.complete([error])
        elif not self._is_ended:
            self.refusal = error
            self._end()

    def cut(self) -> None:
        """Ends the stream like a lost connection, after which clients ask again."""
        if not self._is_ended:
            self._waiting.clear()
            self._end()

    def _end(self) -> None:
        self._is_ended = True
        self._has_changed.set()
        self._has_room.set()

    async def next_chunk(self) -> bytes | None:
        """Returns all events that wait, or a comment after a time without events; None at the end of the stream.

        The last chunk must have been sent.
        """
        if not self._waiting:
            self._has_room.set()
        while not (self._waiting or self._is_ended):
            self._has_changed.clear()
            try:
                async with asyncio.timeout(KEEP_ALIVE_S):
                    await self._has_changed.wait()
            except TimeoutError:
                self._has_begun = True
                return KEEP_ALIVE
        chunk = b"".join(self._waiting)
        self._waiting.clear()
        self._waiting_bytes = self._waiting_events = 0
        return chunk or None


class OpenStreams:
    """The open event streams of a process."""

    def __init__(self) -> None:
        self._streams: set[EventStream] = set()
        self._is_closed = False

    def add(self, stream: EventStream) -> None:
        """Adds a stream. Cuts it if the process stops."""
        self._streams.add(stream)
        if self._is_closed:
            stream.cut()

    def discard(self, stream: EventStream) -> None:
        """Removes a stream that has ended."""
        self._streams.discard(stream)

    def close(self) -> None:
        """Cuts all streams, also those that are added later. Their clients continue at another process."""
        self._is_closed = True
        for stream in self._streams:
            stream.cut()


PROCESS_STREAMS = OpenStreams()
"""The open event streams of this process."""


class StreamedSubscriptions:
    """Answers subscriptions by event streams."""

    def __init__(self, application: Application, subscriptions: Subscriptions, shares: FairShares) -> None:
        self._application, self._subscriptions, self._shares = application, subscriptions, shares

    def answer(
        self,
        connection: HTTPConnection,
        session: Session | None,
        operation: PreparedOperation,
        context: OperationContext,
    ) -> Response:
        """Returns the response that serves the subscription. The id of the client's last event is its cursor."""
        stream, since = EventStream(), connection.headers.get(LAST_EVENT_ID) or None
        share = self._shares.of(context.viewer, is_service=context.is_service)
        served = self._subscriptions.serve(operation, context, stream, None, share, since)
        watched = None if session is None else _WatchedStream(self._application, stream, session, connection.headers)
        return _SubscriptionResponse(stream, MeasuredAwaitable(served), watched)


class _WatchedStream:
    """A stream that is cut when its viewer loses access."""

    def __init__(self, application: Application, stream: EventStream, session: Session, headers: Headers) -> None:
        self._application, self._stream, self._session, self._headers = application, stream, session, headers

    def watch(self) -> SessionWatch:
        """Begins to watch the viewer's session."""
        return SessionWatch(self._application, self._session, self._authenticate, self._cut)

    async def _authenticate(self) -> Session | None:
        session = None
        # The answer to the client's next request says what is wrong.
        with suppress(Exception):
            session = await self._application.session_of_request(self._headers, is_use=False)
        if session is None:
            self._stream.cut()
        return session

    async def _cut(self, _reason: str) -> None:
        self._stream.cut()


class _SubscriptionResponse(Response):
    """Sends what a subscription writes, until it ends or the client disconnects."""

    def __init__(
        self, stream: EventStream, served: Awaitable[DomainError | None], watched: _WatchedStream | None
    ) -> None:
        self._stream, self._served, self._watched = stream, served, watched

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Sends the events. Frees everything afterwards."""
        tasks = [asyncio.create_task(self._serve()), asyncio.create_task(_cut_at_disconnect(self._stream, receive))]
        watch = None if self._watched is None else self._watched.watch()
        PROCESS_STREAMS.add(self._stream)
        try:
            await self._send(scope, receive, send)
        finally:
            PROCESS_STREAMS.discard(self._stream)
            if watch is not None:
                watch.stop()
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)

    async def _serve(self) -> None:
        try:
            error = await self._served
            self._stream.complete([error] if error else [])
        except OperationRefused as refused:
            self._stream.complete(refused.errors)
        except Exception as failure:
            self._stream.fail(failure)

    async def _send(self, scope: Scope, receive: Receive, send: Send) -> None:
        chunk = await self._stream.next_chunk()
        if self._stream.refusal is not None:
            await refusal_response(self._stream.refusal)(scope, receive, send)
            return
        limit_acknowledgement(scope)
        await send({"type": "http.response.start", "status": 200, "headers": RAW_HEADERS})
        while chunk is not None:
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
            chunk = await self._stream.next_chunk()
        await send({"type": "http.response.body", "body": b""})


async def _cut_at_disconnect(stream: EventStream, receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    stream.cut()


def _failure(errors: Sequence[Exception]) -> bytes:
    graphql_errors = (
        each if isinstance(each, GraphQLError) else GraphQLError(str(each), original_error=each) for each in errors
    )
    return stream_event(orjson.dumps({"errors": [to_client_error(each).formatted for each in graphql_errors]}))

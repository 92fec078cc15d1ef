"""graphql-transport-ws on Strawberry's handler: strict frames, sign-in with connection_init, close codes.

Close codes (docs/semantics.md, 3):

- 4400: the client sent a frame that is not a message of the protocol.
- 4401: connection_init has no credential, or a token or key that was never valid; or the session has ended, or the
  account is deactivated.
- 4403: the token or key has expired, before connection_init or later; or the user's roles have changed. Also for a
  socket with the cookie of a session, but without an Origin. The handshake already refuses foreign Origins with the
  status 403.
- 1013: the credential cannot be checked now, or the client reads too slowly or sends too many frames.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from json import JSONDecodeError
from typing import Any, ClassVar, cast

import orjson
import strawberry
import structlog
from graphql import GraphQLError
from starlette.requests import Request
from starlette.responses import Response
from starlette.websockets import WebSocket, WebSocketDisconnect, WebSocketState
from strawberry.asgi import ASGIWebSocketAdapter, GraphQL
from strawberry.http.exceptions import NonJsonMessageReceived, NonTextMessageReceived, WebSocketDisconnected
from strawberry.subscriptions import GRAPHQL_TRANSPORT_WS_PROTOCOL
from strawberry.subscriptions.protocols.graphql_transport_ws.handlers import BaseGraphQLTransportWSHandler, Operation
from strawberry.subscriptions.protocols.graphql_transport_ws.types import SubscribeMessage
from uvicorn.protocols.utils import ClientDisconnected

from schema.errors import to_client_error
from server.graphql.compiled.variables import is_storable
from server.graphql.documents import OperationRefused, OperationRequest, PreparedOperation, operation_request
from server.graphql.fair_shares import LoopShare, MeasuredAwaitable, attribute_time_to
from server.graphql.operations import Operations
from server.graphql.protocols import Application, OperationContext, Session
from server.graphql.session_watch import SessionWatch
from server.graphql.socket_writer import connection_of
from server.graphql.subscriptions import Subscriptions
from server.transport.json_decoding import decode_json
from storage.errors import BadUserInput, CredentialExpired, Forbidden, RateLimited, Unauthenticated

INVALID_MESSAGE = 4400
UNAUTHORIZED = 4401
FORBIDDEN = 4403
INIT_TIMEOUT = 4408
TRY_AGAIN_LATER = 1013
INIT_TIMEOUT_S = 5.0
MAX_OPERATIONS = 50
SEND_TIMEOUT_S = 10.0
MAX_REASON_BYTES = 123

SIGN_IN_HEADERS = frozenset((b"authorization", b"cookie", b"host", b"origin"))
"""The headers that `Application.session_of_socket` reads."""

log = structlog.get_logger(__name__)


class SocketAdapter(ASGIWebSocketAdapter):
    """Sends text frames, and disconnects clients that stop reading."""

    async def send_json(self, message: Mapping[str, object]) -> None:
        """Sends one frame. Closes the socket with 1013 if the frame could not be written for 10 s."""
        connection = connection_of(self.ws.scope)
        if connection is None:
            raise WebSocketDisconnected
        payload = orjson.dumps(message)
        try:
            if connection.has_room:
                connection.write_message(payload)
                return
            async with asyncio.timeout(SEND_TIMEOUT_S):
                await connection.send_message(payload)
        except TimeoutError:
            # An ordinary close would wait for the stalled client again.
            connection.drop("Reading too slowly")
            raise WebSocketDisconnected from None
        except ClientDisconnected as error:
            raise WebSocketDisconnected from error

    async def iter_json(self, *, ignore_parsing_errors: bool = False) -> AsyncGenerator[object, None]:
        """Yields each message, as Strawberry does, but without a reference to the text of the last one."""
        try:
            while self.ws.application_state != WebSocketState.DISCONNECTED:
                yield self.view.decode_json(await self.ws.receive_text())
        except JSONDecodeError as error:
            raise NonJsonMessageReceived from error
        except KeyError as error:
            raise NonTextMessageReceived from error
        except WebSocketDisconnect:
            pass

    def forget_headers(self) -> None:
        """Frees the headers of the handshake, except those with which the socket is authenticated again."""
        headers: list[tuple[bytes, bytes]] = self.ws.headers.raw
        headers[:] = [each for each in headers if each[0] in SIGN_IN_HEADERS]
        # Each further `Headers` of the scope has made a list of its own.
        self.ws.scope["headers"] = headers

    async def close(self, code: int, reason: str) -> None:
        """Closes the socket, unless it is closed. Cuts the reason to 123 bytes, the limit of a close frame."""
        with suppress(WebSocketDisconnect, RuntimeError):
            await self.ws.close(
                code=code, reason=reason.encode(errors="replace")[:MAX_REASON_BYTES].decode(errors="ignore")
            )


@dataclass(frozen=True, slots=True)
class SocketServices:
    """The services that the sockets of one endpoint share."""

    application: Application
    operations: Operations
    subscriptions: Subscriptions


class SocketHandler(BaseGraphQLTransportWSHandler[OperationContext, None]):
    """Handles one socket from its acceptance until it closes."""

    services: ClassVar[SocketServices]

    _authorization: str | None = None
    _init_timer: asyncio.TimerHandle | None = None
    _watch: SessionWatch | None = None

    def on_request_accepted(self) -> None:
        """Starts the time for connection_init, with a timer: Strawberry has a task for each socket."""
        self._init_timer = asyncio.get_running_loop().call_later(INIT_TIMEOUT_S, self._end_without_init)

    def _end_without_init(self) -> None:
        self.connection_timed_out = True
        asyncio.ensure_future(self.websocket.close(INIT_TIMEOUT, "Connection initialisation timeout"))

    async def handle_message(self, message: Any) -> None:
        """Handles a message of the protocol. Closes the socket with 4400 after any other frame.

        Empties the message, to which Strawberry's loop refers until the next one: with a subscription's text, for ever.
        """
        fault = _frame_fault(message)
        if fault is not None:
            await self.handle_invalid_message(fault)
            return
        if message["type"] == "subscribe":
            # Strawberry hands on the text only, so its place holds the whole request.
            message["payload"]["query"] = operation_request(message["payload"])
        if message["type"] == "subscribe" and self.context.viewer is not None:
            # The socket reads no further frames while its viewer must wait.
            await self._share.wait_for_turn()
            attribute_time_to(self._share)
            self.services.operations.shares.mark_active(self._share)
        await MeasuredAwaitable(super().handle_message(message))
        message.clear()

    async def handle_connection_init(self, message: Any) -> None:
        """Signs in by the first that is present: the payload's `authorization`, the handshake's header, the cookie."""
        if self.connection_init_received or self.connection_timed_out:
            await super().handle_connection_init(message)
            return
        if self._init_timer is not None:
            # The message came in time; verifying the token may take longer.
            self._init_timer.cancel()
            self._init_timer = None
        lowered = {str(name).lower(): value for name, value in (message.get("payload") or {}).items()}
        authorization = lowered.get("authorization")
        self._authorization = authorization if isinstance(authorization, str) else None
        session = await self._authenticate()
        if session is not None:
            self._sign_in(session)
            self._adapter.forget_headers()
            await super().handle_connection_init(message)

    async def _authenticate(self, *, is_use: bool = True) -> Session | None:
        """Returns the session of the credential. Closes the socket and returns None if there is no session now."""
        try:
            headers = self._adapter.ws.headers
            return await self.services.application.session_of_socket(self._authorization, headers, is_use=is_use)
        except (CredentialExpired, Forbidden) as error:
            await self.websocket.close(FORBIDDEN, error.message)
        except Unauthenticated as error:
            await self.websocket.close(UNAUTHORIZED, error.message)
        except Exception as error:
            await self.websocket.close(TRY_AGAIN_LATER, _client_error(error).message)
        return None

    def _sign_in(self, session: Session) -> None:
        """Lets the socket's operations run for the session's user, until the session ends."""
        session.sign_in(self.context)
        self._watch = SessionWatch(self.services.application, session, self._authenticate_again, self._forbid)

    async def _authenticate_again(self) -> Session | None:
        return await self._authenticate(is_use=False)

    async def _forbid(self, reason: str) -> None:
        await self.websocket.close(FORBIDDEN, reason)

    async def handle_subscribe(self, message: SubscribeMessage) -> None:
        """Starts an operation, or refuses it if the socket already runs as many operations as it may."""
        limit = self.max_subscriptions_per_connection or 0
        if self.connection_acknowledged and message["id"] not in self.operations and len(self.operations) >= limit:
            error = _client_error(RateLimited(f"A socket runs at most {limit} operations at a time.", 1000))
            await self.send_message({"id": message["id"], "type": "error", "payload": [error.formatted]})
        else:
            await super().handle_subscribe(message)

    async def run_operation(self, operation: Operation[OperationContext, None]) -> None:
        """Runs an operation until it ends, and measures it."""
        await MeasuredAwaitable(self._run_operation(operation))

    async def _run_operation(self, operation: Operation[OperationContext, None]) -> None:
        errors: Sequence[Exception]
        try:
            execution = await self._prepare(operation)
            error = await execution
            errors = () if error is None else (error,)
        except OperationRefused as refused:
            errors = refused.errors
        except WebSocketDisconnected:
            return
        except Exception as failure:
            errors = [failure]
        if errors:
            await operation.send_initial_errors([_client_error(error) for error in errors])

    async def _prepare(self, operation: Operation[OperationContext, None]) -> Awaitable[Exception | None]:
        """Returns the awaitable of an operation, whose result is the error that ends it, if any.

        Nothing refers to the text and the variables while a subscription waits for events.
        """
        request = cast("OperationRequest", operation.query)
        operation.query, operation.variables = "", None
        prepared = await self.services.operations.prepare(request, self.context)
        return self._subscribe(operation, prepared) if prepared.is_subscription else self._answer(operation, prepared)

    async def _answer(self, operation: Operation[OperationContext, None], prepared: PreparedOperation) -> None:
        """Sends the result of a query or mutation."""
        async with self.services.operations.run(prepared, self.context) as result:
            await operation.send_operation_message({"id": operation.id, "type": "next", "payload": result.formatted})
        await operation.send_operation_message({"id": operation.id, "type": "complete"})

    @property
    def _share(self) -> LoopShare:
        return self.services.operations.shares.of(self.context.viewer, is_service=self.context.is_service)

    @property
    def _adapter(self) -> SocketAdapter:
        assert isinstance(self.websocket, SocketAdapter)
        return self.websocket

    def _subscribe(
        self, operation: Operation[OperationContext, None], prepared: PreparedOperation
    ) -> Awaitable[Exception | None]:
        """Returns the awaitable that serves a subscription until it ends."""
        connection = connection_of(self._adapter.ws.scope)
        if connection is None:
            raise WebSocketDisconnected
        id_ = orjson.dumps(operation.id)[1:-1]
        return self.services.subscriptions.serve(prepared, self.context, connection, id_, self._share)

    async def shutdown(self) -> None:
        """Ends the operations, the timers of connection_init and of the token's expiry, and the checks of access."""
        if self._init_timer is not None:
            self._init_timer.cancel()
        if self._watch is not None:
            self._watch.stop()
            # The watch refers to this handler.
            self._watch = None
        await super().shutdown()

    async def handle_task_exception(self, error: Exception) -> None:
        """Logs the exception, unless it only says that the socket has disconnected."""
        if not isinstance(error, WebSocketDisconnected | NonTextMessageReceived):
            log.error("socket_task_failed", exc_info=error)


class GraphQLSockets(GraphQL[OperationContext, None]):
    """Strawberry's view, which serves only sockets here: checks the origin, accepts, and starts a handler."""

    websocket_adapter_class = SocketAdapter

    def __init__(self, schema: strawberry.Schema, services: SocketServices, allowed_origins: tuple[str, ...]) -> None:
        super().__init__(
            schema,
            graphql_ide=None,
            subscription_protocols=[GRAPHQL_TRANSPORT_WS_PROTOCOL],
            max_subscriptions_per_connection=MAX_OPERATIONS,
            allowed_origins=allowed_origins,
        )
        self._application = services.application
        # Strawberry's view passes no services to its handlers.
        self.graphql_transport_ws_handler_class = type("SocketHandler", (SocketHandler,), {"services": services})

    async def serve(self, socket: WebSocket) -> None:
        """Serves one socket until it closes."""
        await self.run(socket)

    async def get_context(self, request: Request | WebSocket, response: Response | WebSocket) -> OperationContext:
        """Returns a context without a viewer, who signs in later, with connection_init."""
        return self._application.new_context(request)

    async def create_websocket_response(self, request: WebSocket, subprotocol: str | None) -> WebSocket:
        """Accepts a socket. One without our sub-protocol gets its own, so that its client sees the close code 4406."""
        await request.accept(subprotocol=subprotocol or next(iter(request["subprotocols"]), None))
        return request

    def decode_json(self, data: str | bytes) -> object:
        """Decodes JSON, also with lone surrogates in its strings. Raises: orjson.JSONDecodeError."""
        return decode_json(data)


def _client_error(error: Exception) -> GraphQLError:
    graphql_error = error if isinstance(error, GraphQLError) else GraphQLError(str(error), original_error=error)
    return to_client_error(graphql_error)


def _frame_fault(message: Any) -> str | None:
    """Returns a sentence that says what is wrong with a frame; None for a message of the protocol."""
    if not isinstance(message, dict) or not isinstance(message.get("type"), str):
        return "A message must be an object with a type"
    payload = message.get("payload")
    if payload is not None and not isinstance(payload, dict):
        return "A payload must be an object"
    if message["type"] not in ("subscribe", "complete"):
        return None
    if not isinstance(message.get("id"), str) or not message["id"] or not is_storable(message["id"]):
        return "An id must be a string that is not empty, without lone surrogates"
    return _subscribe_fault(payload) if message["type"] == "subscribe" else None


def _subscribe_fault(payload: dict[str, Any] | None) -> str | None:
    if payload is None:
        return "A subscribe message must have a payload with a query"
    try:
        operation_request(payload)
    except BadUserInput as error:
        return error.message
    return None

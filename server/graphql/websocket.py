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
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import dataclass, field
from typing import Any, ClassVar

import orjson
import structlog
from graphql import GraphQLError
from starlette.websockets import WebSocketDisconnect
from strawberry.asgi import ASGIWebSocketAdapter
from strawberry.http.exceptions import NonTextMessageReceived, WebSocketDisconnected
from strawberry.subscriptions.protocols.graphql_transport_ws.handlers import BaseGraphQLTransportWSHandler, Operation
from strawberry.subscriptions.protocols.graphql_transport_ws.types import SubscribeMessage
from uvicorn.protocols.utils import ClientDisconnected

from resolvers.context import Context
from schema.errors import to_client_error
from server.auth.access_watch import AccessWatch
from server.auth.credentials import Credential, RequestCredentials
from server.auth.tokens import TokenExpired, TokenInvalid
from server.auth.viewers import ViewerSession
from server.graphql.broadcasts import Broadcasts
from server.graphql.compiled.variables import is_storable
from server.graphql.documents import OperationRequest
from server.graphql.event_execution import EventExecution, write_events
from server.graphql.fair_shares import FairShares, LoopShare, MeasuredAwaitable, attribute_time_to
from server.graphql.frames import SocketSubscription
from server.graphql.socket_writer import WebSocketProtocol, connection_of
from server.graphql.subscription_limits import SubscriptionLimits
from server.graphql.subscriptions import OperationRefused, SubscriptionStarter, ViewerSubscription
from storage.errors import Forbidden, RateLimited, Unauthenticated, Unavailable
from storage.identity.keys.recognition import KeyExpired
from storage.identity.roles import Role

INVALID_MESSAGE = 4400
UNAUTHORIZED = 4401
FORBIDDEN = 4403
TRY_AGAIN_LATER = 1013
SEND_TIMEOUT_S = 10.0
MAX_TIMER_S = 7 * 86_400.0
MAX_REASON_BYTES = 123

log = structlog.get_logger(__name__)


class SocketAdapter(ASGIWebSocketAdapter):
    """Sends text frames, and disconnects clients that stop reading."""

    async def send_json(self, message: Mapping[str, object]) -> None:
        """Sends one frame. Closes the socket with 1013 if the frame could not be written for 10 s."""
        connection = connection_of(self.ws.scope)
        if connection is None:
            raise WebSocketDisconnected
        try:
            async with asyncio.timeout(SEND_TIMEOUT_S):
                await connection.send_message(orjson.dumps(message))
        except TimeoutError:
            # An ordinary close would wait for the stalled client again.
            connection.drop("Reading too slowly")
            raise WebSocketDisconnected from None
        except ClientDisconnected as error:
            raise WebSocketDisconnected from error

    async def close(self, code: int, reason: str) -> None:
        """Closes the socket, unless it is closed. Cuts the reason to 123 bytes, the limit of a close frame."""
        with suppress(WebSocketDisconnect, RuntimeError):
            await self.ws.close(
                code=code, reason=reason.encode(errors="replace")[:MAX_REASON_BYTES].decode(errors="ignore")
            )


@dataclass(frozen=True, slots=True)
class SocketServices:
    """The parts of GraphQLEndpoint that its sockets use."""

    access_watch: AccessWatch
    credentials: RequestCredentials
    subscription_starter: SubscriptionStarter
    broadcasts: Broadcasts
    admit: Callable[[OperationRequest, Context], AbstractAsyncContextManager[int]]
    """Passes the admission controls of a query or mutation, and limits its time. Yields the operation's cost.

    Raises: the error of an admission control that refuses the operation; Unavailable at the deadline.
    """
    shares: FairShares
    execution_timeout_s: float
    """The time limit of the execution of one event."""
    limits: SubscriptionLimits = field(default_factory=SubscriptionLimits)


class SocketHandler(BaseGraphQLTransportWSHandler[Context, None]):
    """Handles one socket from its acceptance until it closes."""

    services: ClassVar[SocketServices]

    _authorization: str | None = None
    _credential: Credential | None = None
    _session: ViewerSession | None = None
    _expiry_timer: asyncio.TimerHandle | None = None

    async def handle_message(self, message: Any) -> None:
        """Handles a message of the protocol. Closes the socket with 4400 after any other frame."""
        fault = _frame_fault(message)
        if fault is not None:
            await self.handle_invalid_message(fault)
            return
        if message["type"] == "subscribe" and self.context.viewer is not None:
            # The socket reads no further frames while its viewer must wait.
            await self._share.wait_for_turn()
            attribute_time_to(self._share)
            self.services.shares.mark_active(self._share)
        await MeasuredAwaitable(super().handle_message(message))

    async def handle_connection_init(self, message: Any) -> None:
        """Signs in by the first that is present: the payload's `authorization`, the handshake's header, the cookie."""
        if self.connection_init_received or self.connection_timed_out:
            await super().handle_connection_init(message)
            return
        if self.connection_init_timeout_task is not None:
            # The message came in time; verifying the token may take longer.
            self.connection_init_timeout_task.cancel()
        lowered = {str(name).lower(): value for name, value in (message.get("payload") or {}).items()}
        authorization = lowered.get("authorization")
        self._authorization = authorization if isinstance(authorization, str) else None
        session = await self._authenticate()
        if session is not None:
            self._sign_in(session)
            await super().handle_connection_init(message)

    async def _authenticate(self, *, is_use: bool = True) -> ViewerSession | None:
        """Returns the session of the credential. Closes the socket and returns None if there is no session now."""
        try:
            self._credential = self._credential or self.services.credentials.of_socket(
                self._authorization, self._adapter.ws.headers
            )
            session = await self.services.access_watch.sessions.session(self._credential, is_use=is_use)
            if session is None:
                raise TokenInvalid("no token: send it as `authorization` in the payload of connection_init")
            return session
        except (TokenExpired, KeyExpired, Forbidden) as error:
            await self.websocket.close(FORBIDDEN, error.message)
        except Unauthenticated as error:
            await self.websocket.close(UNAUTHORIZED, error.message)
        except Exception as error:
            await self.websocket.close(TRY_AGAIN_LATER, _client_error(error).message)
        return None

    def _sign_in(self, session: ViewerSession) -> None:
        """Lets the socket's operations run for the session's user, until the session ends."""
        self._session = session
        session.sign_in(self.context)
        self._set_expiry_timer(session.expires_at)
        self.services.access_watch.add(session.user_key, self._check_access)
        if self._is_person:
            self.context.stores.online.connect(session.user_key)

    async def _check_access(self) -> None:
        """Closes the socket if its session has ended or its roles have changed. Otherwise adopts the session's end."""
        session = await self._authenticate(is_use=False)
        if session is None:
            return
        if session.roles != self.context.roles:
            await self.websocket.close(FORBIDDEN, "The roles of the user have changed")
        else:
            self._set_expiry_timer(session.expires_at)

    async def handle_subscribe(self, message: SubscribeMessage) -> None:
        """Starts an operation, or refuses it if the socket already runs as many operations as it may."""
        limit = self.max_subscriptions_per_connection or 0
        if self.connection_acknowledged and message["id"] not in self.operations and len(self.operations) >= limit:
            error = _client_error(RateLimited(f"A socket runs at most {limit} operations at a time.", 1000))
            await self.send_message({"id": message["id"], "type": "error", "payload": [error.formatted]})
        else:
            await super().handle_subscribe(message)

    async def run_operation(self, operation: Operation[Context, None]) -> None:
        """Runs an operation, and measures it."""
        await MeasuredAwaitable(self._run_operation(operation))

    async def _run_operation(self, operation: Operation[Context, None]) -> None:
        """Serves a subscription to an event source here. Strawberry runs every other operation."""
        connection = connection_of(self._adapter.ws.scope)
        if connection is not None and await self._subscribe(operation, connection):
            return
        try:
            async with self.services.admit(operation, self.context):
                await super().run_operation(operation)
        except (Forbidden, RateLimited, Unavailable) as error:
            await operation.send_initial_errors([_client_error(error)])

    @property
    def _is_person(self) -> bool:
        """Whether the signed-in viewer is a person, not a service."""
        viewer = self.context.viewer
        return viewer is not None and not viewer.is_service and Role.SERVICE not in self.context.roles

    @property
    def _share(self) -> LoopShare:
        return self.services.shares.of(self.context.viewer, self.context.roles)

    @property
    def _adapter(self) -> SocketAdapter:
        assert isinstance(self.websocket, SocketAdapter)
        return self.websocket

    async def _subscribe(self, operation: Operation[Context, None], connection: WebSocketProtocol) -> bool:
        """Serves the subscription until the client or the server ends it. Returns False for other operations."""
        try:
            subscription = await self.services.subscription_starter.start(
                self.context, operation.query, operation.variables, operation.operation_name
            )
            if subscription is None:
                return False
            ended = asyncio.get_running_loop().create_future()
            id_ = orjson.dumps(operation.id)[1:-1]
            listener = SocketSubscription(connection, id_, subscription.source.viewer.id, ended, self._share)
            with self.services.limits.open(subscription):
                if isinstance(subscription, ViewerSubscription):
                    execution = EventExecution(subscription.executor, self.services.execution_timeout_s)
                    await write_events(execution, subscription.source, listener)
                    return True
                broadcast = self.services.broadcasts.get(subscription.key, subscription.executor, subscription.source)
                since = subscription.source.since
                # Frees the memory of the executor: the broadcast uses only the executor of its first listener.
                del subscription
                final_error = await broadcast.serve(listener, since)
            errors: list[Exception] = [] if final_error is None else [final_error]
        except OperationRefused as refused:
            errors = [*refused.errors]
        except Exception as error:
            errors = [error]
        await operation.send_initial_errors([_client_error(error) for error in errors])
        return True

    def _set_expiry_timer(self, expires_at: float) -> None:
        """Sets the timer that checks access at the expiry, which other requests of the browser may have deferred."""
        if self._expiry_timer is not None:
            self._expiry_timer.cancel()
        # The event loop's timers overflow after some weeks.
        wait_s = min(expires_at - time.time(), MAX_TIMER_S)
        self._expiry_timer = asyncio.get_running_loop().call_later(wait_s, self._start_check)

    def _start_check(self) -> None:
        asyncio.ensure_future(self._check_access())

    async def shutdown(self) -> None:
        """Ends the operations, the timer of the token's expiry, and the checks of access."""
        if self._session is not None:
            self.services.access_watch.remove(self._session.user_key, self._check_access)
            if self._is_person:
                self.context.stores.online.disconnect(self._session.user_key)
        if self._expiry_timer is not None:
            self._expiry_timer.cancel()
        await super().shutdown()

    async def handle_task_exception(self, error: Exception) -> None:
        """Logs the exception, unless it only says that the socket has disconnected."""
        if not isinstance(error, WebSocketDisconnected | NonTextMessageReceived):
            log.error("socket_task_failed", exc_info=error)


def socket_handler(services: SocketServices) -> type[SocketHandler]:
    """Returns a handler class with these services, since Strawberry's view cannot pass them to a handler."""
    return type("SocketHandler", (SocketHandler,), {"services": services})


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
    if payload is None or not isinstance(payload.get("query"), str):
        return "A subscribe message must have a payload with a query"
    if not isinstance(payload.get("variables"), dict | None):
        return "Variables must be an object"
    if not isinstance(payload.get("extensions"), dict | None):
        return "Extensions must be an object"
    if not isinstance(payload.get("operationName"), str | None):
        return "An operationName must be a string"
    return None

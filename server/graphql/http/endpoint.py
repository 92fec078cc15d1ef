"""GraphQL over HTTP: POST with JSON only, one operation a request, every error as JSON.

Conforms to the audits of npm graphql-http: application/json always gets 200; application/graphql-response+json gets 400
if nothing was executed. A request that is refused before execution gets 400, 401, 403, 405, 413, 429 or 503.
"""

from collections.abc import Awaitable, Mapping, Sequence

import strawberry
from cachetools import LRUCache
from graphql import ExecutionResult
from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect, HTTPConnection
from starlette.responses import Response
from starlette.types import Receive, Scope, Send
from starlette.websockets import WebSocket

from schema.errors import to_client_error
from server.graphql.budgets import DEFAULT_COST_PER_MINUTE, CostPerMinute
from server.graphql.coalescing import QueryCoalescer, SharedAnswer
from server.graphql.deadlines import EXECUTION_TIMEOUT_S
from server.graphql.documents import OperationRefused, OperationRequest, PreparedOperation
from server.graphql.fair_shares import MeasuredAwaitable
from server.graphql.http.event_streams import StreamedSubscriptions
from server.graphql.http.media_types import accepts_event_stream
from server.graphql.http.requests import REQUEST_MEDIA_TYPE, media_type, parse_request
from server.graphql.http.responses import MethodNotAllowed, refusal_response, result_response
from server.graphql.limits import DocumentLimits
from server.graphql.operations import Operations
from server.graphql.protocols import Application, Session, Viewer
from server.graphql.subscriptions import Subscriptions
from server.graphql.websocket import GraphQLSockets, SocketServices
from server.transport.bodies import MAX_BODY_BYTES, MAX_LIST_BODY_BYTES, PROCESS_BODIES, BodyTooLarge
from storage.errors import BadUserInput

COST_HEADER = b"graphql-cost"
MAX_COALESCED_BYTES = 20_000
"""The largest body of a coalesced query."""

MAX_COALESCIBLE = 500


class GraphQLEndpoint:
    """ASGI application for /graphql, over HTTP and WebSocket."""

    def __init__(
        self,
        schema: strawberry.Schema,
        application: Application,
        *,
        limits: DocumentLimits | None = None,
        allowed_origins: tuple[str, ...] = (),
        execution_timeout_s: float = EXECUTION_TIMEOUT_S,
        cost_per_minute: CostPerMinute = DEFAULT_COST_PER_MINUTE,
    ) -> None:
        """Sockets of browsers need the origin of the server, or one of `allowed_origins`.

        The limits are those of `Operations`. A large body is accepted only if a selected field accepts it.
        """
        self.operations = Operations(
            schema, limits, cost_per_minute=cost_per_minute, execution_timeout_s=execution_timeout_s
        )
        self._application = application
        self._coalescer = QueryCoalescer()
        self._coalescible: LRUCache[bytes, PreparedOperation] = LRUCache(MAX_COALESCIBLE)
        """Coalescible operations by the body of their requests, which then need not be parsed again."""
        self.subscriptions = Subscriptions(self.operations)
        self._streams = StreamedSubscriptions(application, self.subscriptions, self.operations.shares)
        services = SocketServices(application, self.operations, self.subscriptions)
        self._sockets = GraphQLSockets(schema, services, allowed_origins)

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        """Returns the awaitable that answers one request, or that serves one socket until it closes."""
        if scope["type"] == "websocket":
            return self._sockets.serve(WebSocket(scope, receive=receive, send=send))
        return self._serve_request(scope, receive, send)

    async def _serve_request(self, scope: Scope, receive: Receive, send: Send) -> None:
        response = await self._respond(scope, receive)
        await response(scope, receive, send)

    async def _respond(self, scope: Scope, receive: Receive) -> Response:
        # If a header occurs several times, the first one counts.
        headers: dict[bytes, bytes] = dict(reversed(scope["headers"]))
        try:
            if scope["method"] != "POST":
                raise MethodNotAllowed
            if media_type(headers.get(b"content-type", b"")) != REQUEST_MEDIA_TYPE:
                raise BadUserInput("Content-Type", REQUEST_MEDIA_TYPE)
            session = await self._application.session_of_request(Headers(scope=scope))
            max_bytes = self._max_body_bytes(headers.get(b"content-length", b""), session)
            with PROCESS_BODIES.hold(receive, max_bytes) as body:
                return await self._answer(scope, headers, session, await body.read())
        except ClientDisconnect:
            # No client receives this response, but ASGI expects one.
            return Response(status_code=400)
        except Exception as error:
            return refusal_response(error)

    def _max_body_bytes(self, content_length: bytes, session: Session | None) -> int:
        """Returns the size limit of the body before parsing: larger for viewers who may send large bodies."""
        if session is None or not (content_length.isdigit() and int(content_length) > MAX_BODY_BYTES):
            return MAX_BODY_BYTES
        return MAX_LIST_BODY_BYTES if self._application.may_send_large_bodies(session) else MAX_BODY_BYTES

    async def _answer(
        self, scope: Scope, headers: Mapping[bytes, bytes], session: Session | None, body: bytes
    ) -> Response:
        accept, request = headers.get(b"accept", b"").decode("latin-1"), None
        if session is not None and len(body) <= MAX_COALESCED_BYTES and COST_HEADER not in headers:
            operation = self._coalescible.get(body)
            if operation is None:
                request = parse_request(body)
                operation = self._find_coalescible(request, body)
            if operation is not None:
                return await self._coalesce(operation, session, accept, body)
        return await MeasuredAwaitable(self._execute(HTTPConnection(scope), session, request, body, accept))

    def _find_coalescible(self, request: OperationRequest, body: bytes) -> PreparedOperation | None:
        """Returns the requested operation if its answer may be shared. The document must be cached."""
        document = self.operations.documents.find(request.query)
        if document is None or not document.is_coalescible:
            return None
        try:
            operation = self._coalescible[body] = self.operations.documents.operation(request)
        except OperationRefused:
            return None
        return operation

    async def _coalesce(self, operation: PreparedOperation, session: Session, accept: str, body: bytes) -> Response:
        """Returns the response that identical requests of viewers with the same rights share."""
        operation.document.require_scopes(session.scopes)
        self.operations.budgets.check(session.user, operation.cost, is_service=session.is_service)

        def execute(viewers: Sequence[Viewer]) -> Awaitable[SharedAnswer]:
            return MeasuredAwaitable(self._execute_for_all(operation, session, viewers, accept))

        key = session.user.organization_id, session.roles, accept, body
        return await self._coalescer.answer(key, session.user, execute)

    async def _execute_for_all(
        self, operation: PreparedOperation, session: Session, viewers: Sequence[Viewer], accept: str
    ) -> SharedAnswer:
        context = self._application.new_shared_context(session, viewers)
        result = await self.operations.run_for_all(operation, context, viewers)
        return SharedAnswer(result_response(result, accept), context.audience.excluded_ids)

    async def _execute(
        self,
        connection: HTTPConnection,
        session: Session | None,
        request: OperationRequest | None,
        body: bytes,
        accept: str,
    ) -> Response:
        context = self._application.new_context(connection)
        if session is not None:
            session.sign_in(context)
        # The viewer waits before a large body and the document are parsed, so that refused ones wait as well.
        await self.operations.shares.begin(self.operations.shares.of(context.viewer, is_service=context.is_service))
        try:
            operation = self.operations.documents.operation(request or parse_request(body))
        except OperationRefused as refused:
            return result_response(ExecutionResult(None, [to_client_error(each) for each in refused.errors]), accept)
        if len(body) > MAX_BODY_BYTES and not operation.document.accepts_large_body:
            raise BodyTooLarge
        if operation.is_subscription and accepts_event_stream(accept):
            return self._streams.answer(connection, session, operation, context)
        async with self.operations.run(operation, context) as result:
            if COST_HEADER.decode() in connection.headers:
                result.extensions = {"cost": {"operation": operation.cost, "left": self.operations.budget_of(context)}}
            return result_response(result, accept)

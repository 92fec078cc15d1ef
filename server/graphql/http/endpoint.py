"""GraphQL over HTTP: JSON by POST, also in batches, and queries by GET. Every error is JSON.

Conforms to the audits of npm graphql-http: application/json always gets 200; application/graphql-response+json gets 400
if nothing was executed. A request that is refused before execution gets 400, 401, 403, 405, 413, 429 or 503.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Mapping, Sequence
from contextlib import asynccontextmanager

import strawberry
from cachetools import LRUCache
from graphql import ExecutionResult
from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect, HTTPConnection
from starlette.responses import Response
from starlette.types import Receive, Scope, Send
from starlette.websockets import WebSocket

from server.graphql.budgets import DEFAULT_COST_PER_MINUTE, CostPerMinute
from server.graphql.coalescing import QueryCoalescer, SharedAnswer
from server.graphql.deadlines import EXECUTION_TIMEOUT_S
from server.graphql.documents import OperationRefused, OperationRequest, PreparedOperation
from server.graphql.fair_shares import MeasuredAwaitable
from server.graphql.http.event_streams import StreamedSubscriptions
from server.graphql.http.media_types import accepts_event_stream
from server.graphql.http.requests import REQUEST_MEDIA_TYPE, RawRequest, media_type
from server.graphql.http.responses import (
    MethodNotAllowed,
    batch_response,
    error_result,
    refusal_response,
    refused_result,
    result_response,
)
from server.graphql.limits import DocumentLimits
from server.graphql.operations import Operations
from server.graphql.persisted_documents import PersistedDocuments
from server.graphql.protocols import Application, OperationContext, Session, Viewer
from server.graphql.subscriptions import Subscriptions
from server.graphql.websocket import GraphQLSockets, SocketServices
from server.transport.bodies import MAX_BODY_BYTES, MAX_LIST_BODY_BYTES, PROCESS_BODIES, BodyTooLarge
from storage.errors import BadUserInput

COST_HEADER = b"graphql-cost"
IDENTITY = b"identity"
"""The content encoding of bodies that are not compressed."""

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
        persisted: PersistedDocuments | None = None,
    ) -> None:
        """Sockets of browsers need the origin of the server, or one of `allowed_origins`.

        The limits are those of `Operations`. A large body is accepted only if a selected field accepts it.
        """
        self.operations = Operations(
            schema,
            limits,
            cost_per_minute=cost_per_minute,
            execution_timeout_s=execution_timeout_s,
            persisted=persisted,
        )
        self._application = application
        self._coalescer = QueryCoalescer()
        self._coalescible: LRUCache[RawRequest, PreparedOperation] = LRUCache(MAX_COALESCIBLE)
        """Coalescible operations by their requests, which then need not be parsed again."""
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
        accept = headers.get(b"accept", b"").decode("latin-1")
        try:
            if scope["method"] == "GET":
                raw = RawRequest(scope["query_string"], accept, is_get=True)
                return await self._answer(scope, headers, await self._session(scope), raw)
            if scope["method"] != "POST":
                raise MethodNotAllowed("GET, POST")
            if media_type(headers.get(b"content-type", b"")) != REQUEST_MEDIA_TYPE:
                raise BadUserInput("Content-Type", REQUEST_MEDIA_TYPE)
            session = await self._session(scope)
            encoding = headers.get(b"content-encoding", IDENTITY).decode("latin-1")
            with PROCESS_BODIES.hold(receive, self._max_body_bytes(headers, session)) as body:
                content = await body.read(encoding)
                return await self._answer(scope, headers, session, RawRequest(content, accept))
        except ClientDisconnect:
            # No client receives this response, but ASGI expects one.
            return Response(status_code=400)
        except OperationRefused as refused:
            return result_response(refused_result(refused), accept)
        except Exception as error:
            return refusal_response(error)

    def _session(self, scope: Scope) -> Awaitable[Session | None]:
        """Returns the awaitable of the session. By GET too, a cookie counts only with the header of our clients."""
        return self._application.session_of_request(Headers(scope=scope))

    def _max_body_bytes(self, headers: Mapping[bytes, bytes], session: Session | None) -> int:
        """Returns the size limit of the body before parsing: larger for viewers who may send large bodies."""
        length, encoding = headers.get(b"content-length", b""), headers.get(b"content-encoding", IDENTITY)
        may_be_large = encoding != IDENTITY or (length.isdigit() and int(length) > MAX_BODY_BYTES)
        if session is None or not may_be_large or not self._application.may_send_large_bodies(session):
            return MAX_BODY_BYTES
        return MAX_LIST_BODY_BYTES

    async def _answer(
        self, scope: Scope, headers: Mapping[bytes, bytes], session: Session | None, raw: RawRequest
    ) -> Response:
        requests = None
        if session is not None and len(raw.content) <= MAX_COALESCED_BYTES and COST_HEADER not in headers:
            operation = self._coalescible.get(raw)
            if operation is None:
                requests = raw.parse()
                operation = await self._find_coalescible(requests, raw, session)
            if operation is not None:
                return await self._coalesce(operation, session, raw)
        return await MeasuredAwaitable(self._execute(HTTPConnection(scope), session, requests, raw))

    async def _find_coalescible(
        self, request: OperationRequest | list[OperationRequest], raw: RawRequest, session: Session
    ) -> PreparedOperation | None:
        """Returns the requested operation if its answer may be shared. The document must be cached."""
        if isinstance(request, list) or (request.document_id is not None and request.query):
            return None
        found = await self.operations.persisted.find(request, session.roles)
        document = self.operations.documents.find(found.query)
        if document is None or not document.is_coalescible:
            return None
        try:
            operation = self._coalescible[raw] = self.operations.documents.operation(found)
        except OperationRefused:
            return None
        return operation

    async def _coalesce(self, operation: PreparedOperation, session: Session, raw: RawRequest) -> Response:
        """Returns the response that identical requests of viewers with the same rights share."""
        self.operations.persisted.require_trusted(operation.request.query, session.roles)
        operation.document.require_scopes(session.scopes)
        self.operations.budgets.check(session.user, operation.cost, is_service=session.is_service)

        def execute(viewers: Sequence[Viewer]) -> Awaitable[SharedAnswer]:
            return MeasuredAwaitable(self._execute_for_all(operation, session, viewers, raw.accept))

        key = session.user.organization_id, session.roles, raw
        shared = await self._coalescer.answer(key, session.user, execute)
        # Middleware adds headers.
        return Response(shared.body, shared.status_code, shared.headers)

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
        requests: OperationRequest | list[OperationRequest] | None,
        raw: RawRequest,
    ) -> Response:
        context = self._context(connection, session)
        # The viewer waits before a large body and the document are parsed, so that refused ones wait as well.
        await self.operations.shares.begin(self.operations.shares.of(context.viewer, is_service=context.is_service))
        requests = requests or raw.parse()
        if isinstance(requests, list):
            return await self._execute_batch(connection, session, requests, raw)
        operation = await self.operations.prepare(requests, context)
        if len(raw.content) > MAX_BODY_BYTES and not operation.document.accepts_large_body:
            raise BodyTooLarge
        if raw.is_get and operation.is_mutation:
            raise MethodNotAllowed("POST")
        if operation.is_subscription and accepts_event_stream(raw.accept):
            return self._streams.answer(connection, session, operation, context)
        async with self._run(operation, context, connection) as result:
            return result_response(result, raw.accept)

    async def _execute_batch(
        self, connection: HTTPConnection, session: Session | None, requests: list[OperationRequest], raw: RawRequest
    ) -> Response:
        """Executes each operation as if it had come alone, at the same time as the others."""
        if len(raw.content) > MAX_BODY_BYTES:
            raise BodyTooLarge
        results = [
            MeasuredAwaitable(self._execute_item(each, self._context(connection, session), connection))
            for each in requests
        ]
        return batch_response(await asyncio.gather(*results))

    async def _execute_item(
        self, request: OperationRequest, context: OperationContext, connection: HTTPConnection
    ) -> ExecutionResult:
        """Returns the result of a batch's operation. A refused one has only errors, and leaves the others running."""
        try:
            operation = await self.operations.prepare(request, context)
            async with self._run(operation, context, connection) as result:
                return result
        except OperationRefused as refused:
            return refused_result(refused)
        except Exception as error:
            return error_result(error)

    def _context(self, connection: HTTPConnection, session: Session | None) -> OperationContext:
        context = self._application.new_context(connection)
        if session is not None:
            session.sign_in(context)
        return context

    @asynccontextmanager
    async def _run(
        self, operation: PreparedOperation, context: OperationContext, connection: HTTPConnection
    ) -> AsyncIterator[ExecutionResult]:
        """Executes an operation, and yields its result: with the cost, if the client asks for it."""
        async with self.operations.run(operation, context) as result:
            if COST_HEADER.decode() in connection.headers:
                result.extensions = {"cost": {"operation": operation.cost, "left": self.operations.budget_of(context)}}
            yield result

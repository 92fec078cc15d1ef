"""GraphQL over HTTP on Strawberry's view: POST with JSON only, one operation a request, every error as JSON.

Conforms to the audits of npm graphql-http: application/json always gets 200; application/graphql-response+json gets 400
if nothing was executed. A request that is refused before execution gets 400, 401, 403, 405, 413, 429 or 503.
"""

import math
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from datetime import timedelta
from functools import lru_cache
from typing import Any

import orjson
import strawberry
from cross_web import AsyncHTTPRequestAdapter, HTTPException
from graphql import GraphQLError, GraphQLSchema
from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect, HTTPConnection, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send
from starlette.websockets import WebSocket
from strawberry.asgi import GraphQL
from strawberry.http import GraphQLHTTPResponse, GraphQLRequestData, process_result
from strawberry.http.parse_content_type import parse_content_type
from strawberry.subscriptions import GRAPHQL_TRANSPORT_WS_PROTOCOL
from strawberry.types import ExecutionResult
from strawberry.types.graphql import OperationType

from resolvers.arguments import require_storable
from resolvers.audience import Audience
from resolvers.context import Context, RequestClient
from schema.binding import ACCEPTS_LARGE_BODY, ADMISSION
from schema.errors import to_client_error
from server.auth.access_watch import AccessWatch
from server.auth.credentials import RequestCredentials
from server.graphql.broadcasts import Broadcasts
from server.graphql.budgets import DEFAULT_COST_PER_MINUTE, CostBudgets, CostPerMinute
from server.graphql.cached_execution import CachedExecution
from server.graphql.coalescible_queries import (
    CoalescibleQueries,
    CoalescibleQuery,
    may_be_coalesced,
    prepend_message,
    read_body_start,
)
from server.graphql.coalescing import QueryCoalescer, SharedAnswer
from server.graphql.concurrency import MAX_COST, MAX_SERVICE_COST, ConcurrencyLimiter
from server.graphql.deadlines import EXECUTION_TIMEOUT_S, LARGE_BODY_TIMEOUT_S, deadline
from server.graphql.documents import DocumentCache, OperationRequest, PreparedDocument
from server.graphql.fair_shares import FairShares, MeasuredAwaitable, attribute_time_to, execute_root_fields_singly
from server.graphql.subscriptions import SubscriptionStarter
from server.graphql.websocket import SocketAdapter, SocketServices, socket_handler
from server.transport.bodies import MAX_BODY_BYTES, MAX_LIST_BODY_BYTES, PROCESS_BODIES, BodyTooLarge
from server.transport.json_decoding import decode_json
from storage.errors import BadUserInput, DomainError
from storage.identity.records import User
from storage.identity.roles import Role

INIT_TIMEOUT_S = 5.0
MAX_OPERATIONS = 50
REQUEST_MEDIA_TYPE = "application/json"
RESPONSE_MEDIA_TYPE = "application/graphql-response+json"
COST_HEADER = b"graphql-cost"
MAX_USER_AGENT_CHARS = 300
OPERATION_TYPES = {OperationType.QUERY, OperationType.MUTATION}
HEADERS = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}

ContextFactory = Callable[..., Context]
"""Returns a new context; takes keyword arguments of Context, such as `viewer`, `roles`, `scopes` and `client`."""


class MethodNotAllowed(BadUserInput):
    """The request's method is not POST."""

    def __init__(self) -> None:
        super().__init__("method", "POST", "Send operations by POST.")


class GraphQLEndpoint(GraphQL[Context, None]):
    """ASGI application for /graphql, over HTTP and WebSocket."""

    websocket_adapter_class = SocketAdapter

    def __init__(
        self,
        schema: strawberry.Schema,
        documents: DocumentCache,
        access_watch: AccessWatch,
        new_context: ContextFactory,
        *,
        allowed_origins: tuple[str, ...] = (),
        may_send_large_bodies: Callable[[frozenset[Role]], bool] = lambda _roles: False,
        execution_timeout_s: float = EXECUTION_TIMEOUT_S,
        cost_per_minute: CostPerMinute = DEFAULT_COST_PER_MINUTE,
    ) -> None:
        """Serves a schema that was built with `limits_extension(documents)` and `compiled_executor(documents)`.

        `may_send_large_bodies` decides by the viewer's roles, before the body is parsed. After parsing, a large body is
        accepted only if a selected field accepts it. Queries, mutations and executions of events are stopped after
        `execution_timeout_s` seconds, queries and mutations that accept large bodies after a minute. Queries and
        mutations are refused when the viewer or the organization has spent `cost_per_minute`.
        """
        super().__init__(
            schema,
            graphql_ide=None,
            allow_queries_via_get=False,
            subscription_protocols=[GRAPHQL_TRANSPORT_WS_PROTOCOL],
            connection_init_wait_timeout=timedelta(seconds=INIT_TIMEOUT_S),
            max_subscriptions_per_connection=MAX_OPERATIONS,
            allowed_origins=allowed_origins,
        )
        self.viewers = access_watch.sessions
        self.credentials = RequestCredentials(allowed_origins)
        self.broadcasts = Broadcasts(execution_timeout_s)
        # Strawberry has no public access to graphql-core's schema. tests/server/graphql/test_subscriptions.py fails if
        # this attribute disappears.
        self.graphql_core_schema: GraphQLSchema = schema._schema
        self._documents = documents
        self._cached = CachedExecution(schema, documents)
        self._new_context = new_context
        self._may_send_large_bodies = may_send_large_bodies
        self._execution_timeout_s = execution_timeout_s
        self._budgets = CostBudgets(cost_per_minute)
        self._concurrency = ConcurrencyLimiter()
        self.shares = FairShares()
        self._coalescer = QueryCoalescer()
        self._coalescible = CoalescibleQueries(self.graphql_core_schema, documents)
        starter = SubscriptionStarter(self.graphql_core_schema, documents, schema.execution_context_class)
        services = SocketServices(
            access_watch,
            self.credentials,
            starter,
            self.broadcasts,
            self._admit,
            self.shares,
            execution_timeout_s,
        )
        self.graphql_transport_ws_handler_class = socket_handler(services)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one request, or serves one socket until it closes."""
        if scope["type"] == "websocket":
            await self.run(WebSocket(scope, receive=receive, send=send))
            return
        response = await self._respond(scope, receive)
        await response(scope, receive, send)

    async def _body_limit(self, request: Request) -> int:
        """Returns the size limit of the body before parsing, in bytes: larger for viewers who may send large bodies."""
        length = request.headers.get("content-length", "")
        if not (length.isdigit() and MAX_BODY_BYTES < int(length) <= MAX_LIST_BODY_BYTES):
            return MAX_BODY_BYTES
        try:
            session = await self.viewers.session(self.credentials.of_request(request.headers))
        except DomainError:
            return MAX_BODY_BYTES
        may_send = session is not None and self._may_send_large_bodies(session.roles)
        return MAX_LIST_BODY_BYTES if may_send else MAX_BODY_BYTES

    async def _respond(self, scope: Scope, receive: Receive) -> Response:
        try:
            if scope["method"] != "POST":
                raise MethodNotAllowed
            # If a header occurs several times, the first one counts.
            headers: dict[bytes, bytes] = dict(reversed(scope["headers"]))
            accept = headers.get(b"accept", b"")
            if may_be_coalesced(headers.get(b"content-type"), accept) and COST_HEADER not in headers:
                body_start = await read_body_start(receive)
                query = self._coalescible.find(accept, body_start["body"])
                if query is not None and (response := await self._coalesce(query, Headers(scope=scope))):
                    return response
                receive = prepend_message(body_start, receive)
            with PROCESS_BODIES.limited(receive, await self._body_limit(Request(scope))) as limited:
                return await MeasuredAwaitable(self.run(Request(scope, limited)))
        except ClientDisconnect:
            # No client receives this response, but ASGI expects one.
            return Response(status_code=400)
        except HTTPException as error:
            return _refusal(BadUserInput("body", "one GraphQL operation as a JSON object", error.reason))
        except Exception as error:
            return _refusal(error)

    async def _coalesce(self, query: CoalescibleQuery, headers: Headers) -> Response | None:
        """Returns the coalesced query's response; None without a credential, and for a key that lacks a scope."""
        session = await self.viewers.session(self.credentials.of_request(headers))
        if session is None or not query.permits(session.scopes):
            return None  # Executing the request by itself refuses a key that lacks a scope.
        self._budgets.check(session.user, session.roles, query.cost)

        def execute(viewers: Sequence[User]) -> Awaitable[SharedAnswer]:
            return MeasuredAwaitable(self._execute_coalesced(query, session.roles, viewers))

        return await self._coalescer.answer((session.user.organization_id, session.roles, query), session.user, execute)

    async def _execute_coalesced(
        self, query: CoalescibleQuery, roles: frozenset[Role], viewers: Sequence[User]
    ) -> SharedAnswer:
        self._budgets.spend(viewers, roles, query.cost)
        viewer = viewers[0]
        audience = Audience(viewer.organization_id, frozenset(each.id for each in viewers))
        context = self._new_context(viewer=viewer, roles=roles, coalesced=audience, is_query=True)
        share = self.shares.of(viewer, roles)
        async with AsyncExitStack() as entered:
            # One viewer's share and limit must not delay an answer that others wait for.
            if len(viewers) > 1:
                attribute_time_to(None)
                self.shares.mark_active(share)
            else:
                await self.shares.begin(share)
                await entered.enter_async_context(self._room(viewer, roles, query.cost))
            await entered.enter_async_context(deadline(self._execution_timeout_s))
            result = await self._execute(query, context)
        return SharedAnswer(_json_response(_response_data(result), query.accept), audience.excluded_ids)

    async def get_context(self, request: Request | WebSocket, response: Response | WebSocket) -> Context:
        """Returns a context with the request's viewer. The viewer of a socket signs in later, with connection_init."""
        context = self._new_context(client=_client(request))
        if not isinstance(request, Request):
            return context
        session = await self.viewers.session(self.credentials.of_request(request.headers))
        if session is not None:
            session.sign_in(context)
        # The viewer waits before the body is parsed, so that refused documents wait as well.
        await self.shares.begin(self.shares.of(context.viewer, context.roles))
        return context

    async def get_sub_response(self, request: Request | WebSocket) -> Response:
        """Stores the media type that the client accepts in the response, where `create_response` reads it."""
        response = await super().get_sub_response(request)
        if RESPONSE_MEDIA_TYPE in request.headers.get("accept", ""):
            response.headers["content-type"] = RESPONSE_MEDIA_TYPE
        return response

    async def parse_http_body(self, request: AsyncHTTPRequestAdapter) -> GraphQLRequestData:
        """Returns the operation of a JSON body. Refuses types that browsers send without a CORS preflight."""
        if _media_type(request.content_type or "") != REQUEST_MEDIA_TYPE:
            raise BadUserInput("Content-Type", REQUEST_MEDIA_TYPE)
        body: dict[str, Any] = self.parse_json(await request.get_body())
        require_storable(body.get("query"), "query")
        parsed = GraphQLRequestData(
            query=_body_field(body, "query", str, "a string"),
            variables=_body_field(body, "variables", dict, "an object"),
            operation_name=body.get("operationName"),
            extensions=_body_field(body, "extensions", dict, "an object"),
        )
        length = request.headers.get("content-length", "0")
        if int(length) > MAX_BODY_BYTES and not _accepts_large_body(self._prepare(parsed.query)):
            raise BodyTooLarge
        return parsed

    def parse_json(self, data: str | bytes) -> Any:
        """Returns the body, a JSON object. Raises: HTTPException for any other value, such as the list of a batch."""
        body = super().parse_json(data)
        if not isinstance(body, dict):
            raise HTTPException(400, "Send one operation at a time, as a JSON object.")
        return body

    async def execute_single(
        self,
        request: Request,
        request_adapter: AsyncHTTPRequestAdapter,
        sub_response: Response,
        context: Context,
        root_value: None,
        request_data: GraphQLRequestData,
    ) -> ExecutionResult:
        """Executes a query or mutation; subscriptions need a WebSocket."""
        async with self._admit(request_data, context) as cost:
            result = await self._execute(request_data, context)
        if COST_HEADER in dict(request.headers.raw):
            left = None if context.viewer is None else self._budgets.remaining(context.viewer, context.roles)
            result.extensions = {"cost": {"operation": cost, "left": left}}
        return result

    async def _execute(self, request: GraphQLRequestData | CoalescibleQuery, context: Context) -> ExecutionResult:
        query, variables, name = request.query, request.variables, request.operation_name
        cached = await self._cached.execute(query, variables, name, context)
        return cached or await self.schema.execute(query, variables, context, None, name, OPERATION_TYPES)

    @asynccontextmanager
    async def _admit(self, request: OperationRequest, context: Context) -> AsyncIterator[int]:
        """Passes the admission control of each selected field, and limits the execution's time. Yields the cost.

        Raises: Forbidden for a service key without the scope; RateLimited if a budget is spent; the error of an
        admission control that refuses the operation; Unavailable at the deadline.
        """
        prepared, cost = self._prepare(request.query), 0
        if prepared is not None:
            prepared.require_scopes(context.scopes)
            cost = prepared.cost(request.variables, request.operation_name)
        if context.viewer is not None:
            self._budgets.check(context.viewer, context.roles, cost)
            self._budgets.spend([context.viewer], context.roles, cost)
        async with AsyncExitStack() as entered:
            is_subscription = prepared is not None and prepared.is_subscription
            if context.viewer is not None and not is_subscription:
                await entered.enter_async_context(self._room(context.viewer, context.roles, cost))
            for admission in dict.fromkeys(prepared.metadata(ADMISSION) if prepared else ()):
                await entered.enter_async_context(admission(context))
            if not is_subscription:
                timeout_s = LARGE_BODY_TIMEOUT_S if _accepts_large_body(prepared) else self._execution_timeout_s
                await entered.enter_async_context(deadline(timeout_s))
            yield cost

    def _room(self, viewer: User, roles: frozenset[Role], cost: int) -> AbstractAsyncContextManager[None]:
        """Returns a context manager that waits until the viewer's other operations leave room for this one."""
        max_cost = MAX_SERVICE_COST if Role.SERVICE in roles else MAX_COST
        if cost > max_cost:
            execute_root_fields_singly()
        return self._concurrency.execution((viewer.organization_id, viewer.id), cost, max_cost)

    def _prepare(self, query: str | None) -> PreparedDocument | None:
        """Returns the document; None if it cannot be parsed. Its execution then returns the parse error."""
        try:
            return self._documents.prepare(self.graphql_core_schema, query or "")
        except GraphQLError:
            return None

    async def process_result(self, request: Request, result: ExecutionResult) -> GraphQLHTTPResponse:
        """Returns the result, without `data` if nothing was executed."""
        return _response_data(result)

    def create_response(
        self, response_data: GraphQLHTTPResponse | list[GraphQLHTTPResponse], sub_response: Response
    ) -> Response:
        """Returns the response in the accepted media type."""
        return _json_response(response_data, sub_response.headers.get("content-type", ""), sub_response.status_code)

    def encode_json(self, data: object) -> bytes:
        """Encodes JSON with orjson."""
        return orjson.dumps(data)

    def decode_json(self, data: str | bytes) -> object:
        """Decodes JSON, also with lone surrogates in its strings. Raises: orjson.JSONDecodeError."""
        return decode_json(data)


def _client(request: HTTPConnection) -> RequestClient:
    user_agent = request.headers.get("user-agent")
    return RequestClient(request.client and request.client.host, user_agent and user_agent[:MAX_USER_AGENT_CHARS])


def _accepts_large_body(prepared: PreparedDocument | None) -> bool:
    return prepared is not None and bool(prepared.metadata(ACCEPTS_LARGE_BODY))


def _json_response(
    data: GraphQLHTTPResponse | list[GraphQLHTTPResponse], accept: str, status: int | None = None
) -> Response:
    is_new_type = RESPONSE_MEDIA_TYPE in accept
    status = status or (400 if is_new_type and "data" not in data else 200)
    media_type = f"{RESPONSE_MEDIA_TYPE}; charset=utf-8" if is_new_type else REQUEST_MEDIA_TYPE
    return Response(orjson.dumps(data), status, HEADERS | {"Vary": "Accept"}, media_type)


def _response_data(result: ExecutionResult) -> GraphQLHTTPResponse:
    processed = process_result(result)
    errors = result.errors or ()
    if result.data is None and errors and all(error.path is None for error in errors):
        processed.pop("data", None)
    return processed


@lru_cache(maxsize=64)
def _media_type(content_type: str) -> str:
    return parse_content_type(content_type)[0]


def _body_field(body: Mapping[str, Any], name: str, type_: type, expected: str) -> Any:
    """Returns a member of the body. Raises: HTTPException when it has another type."""
    value = body.get(name)
    if value is not None and not isinstance(value, type_):
        raise HTTPException(400, f"`{name}` must be {expected} or null, if provided.")
    return value


def _refusal(error: Exception) -> Response:
    """Returns the response to a request that was not executed. Its body has the form of a result with one error."""
    client_error = to_client_error(GraphQLError(str(error), original_error=error))
    status, headers = _status(error, client_error.extensions or {})
    return Response(orjson.dumps({"errors": [client_error.formatted]}), status, HEADERS | headers, REQUEST_MEDIA_TYPE)


def _status(error: Exception, extensions: Mapping[str, Any]) -> tuple[int, dict[str, str]]:
    if isinstance(error, MethodNotAllowed):
        return 405, {"Allow": "POST"}
    if isinstance(error, BodyTooLarge):
        return 413, {}
    match extensions["code"]:
        case "BAD_USER_INPUT":
            return 400, {}
        case "UNAUTHENTICATED":
            return 401, {"WWW-Authenticate": "Bearer"}
        case "FORBIDDEN":
            return 403, {}
        case "RATE_LIMITED" | "UNAVAILABLE" as code:
            wait_s = math.ceil(extensions["retryAfterMs"] / 1000)
            return 429 if code == "RATE_LIMITED" else 503, {"Retry-After": str(wait_s)}
    return 500, {}

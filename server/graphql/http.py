"""GraphQL over HTTP on Strawberry's view: POST with JSON only, one operation a request, errors as JSON everywhere.

Conforms to the audits of npm graphql-http: application/json always answers 200, application/graphql-response+json
answers 400 where nothing was executed. What is refused before that is 400, 401, 405, 413 or 429, and 503 when a
server that is needed does not answer.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from datetime import timedelta
from functools import lru_cache, partial
from typing import Any

import orjson
import strawberry
from cross_web import AsyncHTTPRequestAdapter, HTTPException
from graphql import GraphQLError, GraphQLSchema
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send
from starlette.websockets import WebSocket
from strawberry.asgi import GraphQL
from strawberry.http import GraphQLHTTPResponse, GraphQLRequestData, process_result
from strawberry.http.parse_content_type import parse_content_type
from strawberry.subscriptions import GRAPHQL_TRANSPORT_WS_PROTOCOL
from strawberry.types import ExecutionResult
from strawberry.types.graphql import OperationType

from resolvers.audience import Audience
from resolvers.context import Context
from schema.errors import presented
from server.auth.viewers import Session, Viewers
from server.graphql.broadcasts import Broadcasts
from server.graphql.cached_execution import execute_known
from server.graphql.coalescible_queries import (
    CoalescibleQueries,
    CoalescibleQuery,
    may_be_coalesced,
    read_start,
    replay_start,
)
from server.graphql.coalescing import Answer, QueryCoalescer
from server.graphql.websocket import SocketAdapter, SocketHandler
from storage.errors import BadUserInput, DomainError
from storage.identity.records import User
from storage.identity.roles import Role, with_included
from storage.mail.legacy_book import LegacyBook
from storage.mail.lookup_limiter import LookupLimiter
from storage.stores import Stores

MAX_BODY_BYTES = 1_000_000
MAX_LIST_BODY_BYTES = 16_000_000
LIST_FIELDS = ("launchCallJob", "checkCallList")
"""Fields that take lists of calls, for which bodies may be larger."""

INIT_TIMEOUT_S = 5.0
MAX_OPERATIONS = 50
LOOKUP = "addressBook"
REQUEST_TYPE = "application/json"
RESPONSE_TYPE = "application/graphql-response+json"
OPERATIONS = {OperationType.QUERY, OperationType.MUTATION}
HEADERS = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}


class BodyTooLarge(BadUserInput):
    """The request's body is over the limit."""

    def __init__(self) -> None:
        super().__init__("body", f"at most {MAX_BODY_BYTES} bytes; {MAX_LIST_BODY_BYTES} for lists of calls")


class MethodNotAllowed(BadUserInput):
    """Neither a query nor anything else is executed by GET."""

    def __init__(self) -> None:
        super().__init__("method", "POST", "Send operations by POST.")


class GraphQLView(GraphQL[Context, None]):
    """The endpoint /graphql, for HTTP and WebSocket."""

    websocket_adapter_class = SocketAdapter
    graphql_transport_ws_handler_class = SocketHandler

    def __init__(
        self,
        schema: strawberry.Schema,
        stores: Stores,
        viewers: Viewers,
        sign_image: Callable[[str], str],
        allowed_origins: tuple[str, ...],
        legacy_book: LegacyBook | None = None,
    ) -> None:
        super().__init__(
            schema,
            graphql_ide=None,
            allow_queries_via_get=False,
            subscription_protocols=[GRAPHQL_TRANSPORT_WS_PROTOCOL],
            connection_init_wait_timeout=timedelta(seconds=INIT_TIMEOUT_S),
            max_subscriptions_per_connection=MAX_OPERATIONS,
            allowed_origins=allowed_origins,
        )
        self.viewers = viewers
        self.broadcasts = Broadcasts()
        self._whole_schema = schema
        # Strawberry offers no other way to graphql-core's schema; tests/server/graphql/test_subscriptions.py pins it.
        self.core_schema: GraphQLSchema = schema._schema
        self._stores = stores
        self._sign_image = sign_image
        self._legacy_book = legacy_book
        self._lookups = LookupLimiter()
        self._coalescer = QueryCoalescer()
        self._coalescible = CoalescibleQueries(self.core_schema)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one request, or serves one socket to its end."""
        if scope["type"] == "websocket":
            await self.run(WebSocket(scope, receive=receive, send=send))
            return
        response = await self._respond(scope, receive)
        await response(scope, receive, send)

    async def _body_limit(self, request: Request) -> int:
        """How much is read before it is known what is asked for: much only of those who may send lists of calls."""
        length = request.headers.get("content-length", "")
        if not (length.isdigit() and MAX_BODY_BYTES < int(length) <= MAX_LIST_BODY_BYTES):
            return MAX_BODY_BYTES
        try:
            session = await self.viewers.session(request.headers.get("authorization"))
        except DomainError:
            return MAX_BODY_BYTES
        may_send = session is not None and Role.OPERATOR in with_included(session.roles)
        return MAX_LIST_BODY_BYTES if may_send else MAX_BODY_BYTES

    async def _respond(self, scope: Scope, receive: Receive) -> Response:
        try:
            if scope["method"] != "POST":
                raise MethodNotAllowed
            # Of headers that are given twice the first one counts.
            headers: dict[bytes, bytes] = dict(reversed(scope["headers"]))
            accept = headers.get(b"accept", b"")
            if may_be_coalesced(headers.get(b"content-type"), accept):
                start = await read_start(receive)
                query = self._coalescible.find(accept, start["body"])
                if query is not None and (response := await self._coalesce(query, headers.get(b"authorization"))):
                    return response
                receive = replay_start(start, receive)
            return await self.run(Request(scope, limited(receive, await self._body_limit(Request(scope)))))
        except ClientDisconnect:
            # Nobody is left to read this.
            return Response(status_code=400)
        except HTTPException as error:
            return _refusal(BadUserInput("body", "one GraphQL operation as a JSON object", error.reason))
        except Exception as error:
            return _refusal(error)

    async def _coalesce(self, query: CoalescibleQuery, authorization: bytes | None) -> Response | None:
        """Returns the response to a signed-in viewer; None without a token."""
        session = await self.viewers.session(None if authorization is None else authorization.decode("latin-1"))
        if session is None:
            return None
        key = session.user.organization_id, session.roles, query
        execute = partial(self._execute_coalesced, query, session.roles)
        return await self._coalescer.answer(key, session.user, execute)

    async def _execute_coalesced(
        self, query: CoalescibleQuery, roles: frozenset[Role], viewers: Sequence[User]
    ) -> Answer:
        viewer = viewers[0]
        audience = Audience(viewer.organization_id, frozenset(each.id for each in viewers))
        context = Context(self._stores, self._sign_image, viewer, roles, coalesced=audience, is_query=True)
        response = _response(_processed(await self._execute(query, context)), query.accept)
        return Answer(response, audience.excluded_ids)

    async def get_context(self, request: Request | WebSocket, response: Response | WebSocket) -> Context:
        """A request's context with its viewer; a socket's gets the viewer from connection_init."""
        context = Context(self._stores, self._sign_image, legacy_book=self._legacy_book)
        if isinstance(request, Request):
            admit(context, await self.viewers.session(request.headers.get("authorization")))
        return context

    async def get_sub_response(self, request: Request | WebSocket) -> Response:
        """Remembers which media type the client asked for."""
        response = await super().get_sub_response(request)
        if RESPONSE_TYPE in request.headers.get("accept", ""):
            response.headers["content-type"] = RESPONSE_TYPE
        return response

    async def parse_http_body(self, request: AsyncHTTPRequestAdapter) -> GraphQLRequestData:
        """The operation. Any other media type is refused, since browsers send some of them without asking first."""
        if _media_type(request.content_type or "") != REQUEST_TYPE:
            raise BadUserInput("Content-Type", REQUEST_TYPE)
        body: dict[str, Any] = self.parse_json(await request.get_body())
        parsed = GraphQLRequestData(
            query=_given(body, "query", str, "a string"),
            variables=_given(body, "variables", dict, "an object"),
            operation_name=body.get("operationName"),
            extensions=_given(body, "extensions", dict, "an object"),
        )
        length = request.headers.get("content-length", "0")
        if int(length) > MAX_BODY_BYTES and not _takes_list(parsed):
            raise BodyTooLarge
        return parsed

    def parse_json(self, data: str | bytes) -> Any:
        """The body. Raises: HTTPException for anything but an object; batches are lists."""
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
        """The result of a query or mutation; subscriptions go over WebSocket."""
        # Large lists are most of what there is to compute, so those that are too many are refused before that.
        async with self._lookups.slot() if LOOKUP in (request_data.query or "") else nullcontext():
            return await self._execute(request_data, context)

    async def _execute(self, asked: GraphQLRequestData | CoalescibleQuery, context: Context) -> ExecutionResult:
        name = asked.operation_name
        known = await execute_known(self._whole_schema, asked.query, asked.variables, name, context)
        return known or await self.schema.execute(asked.query, asked.variables, context, None, name, OPERATIONS)

    async def process_result(self, request: Request, result: ExecutionResult) -> GraphQLHTTPResponse:
        """A result without `data` where nothing was executed."""
        return _processed(result)

    def create_response(
        self, response_data: GraphQLHTTPResponse | list[GraphQLHTTPResponse], sub_response: Response
    ) -> Response:
        """The answer in the media type that was asked for."""
        return _response(response_data, sub_response.headers.get("content-type", ""), sub_response.status_code)

    def encode_json(self, data: object) -> bytes:
        """JSON by orjson."""
        return orjson.dumps(data)

    def decode_json(self, data: str | bytes) -> object:
        """JSON by orjson. Raises: ValueError."""
        return orjson.loads(data)


def admit(context: Context, session: Session | None) -> None:
    """Puts whoever signed in into the context."""
    if session is not None:
        context.viewer, context.roles = session.user, session.roles


def _response(
    data: GraphQLHTTPResponse | list[GraphQLHTTPResponse], accept: str, status: int | None = None
) -> Response:
    new_type = RESPONSE_TYPE in accept
    status = status or (400 if new_type and "data" not in data else 200)
    media_type = f"{RESPONSE_TYPE}; charset=utf-8" if new_type else REQUEST_TYPE
    return Response(orjson.dumps(data), status, HEADERS | {"Vary": "Accept"}, media_type)


def _processed(result: ExecutionResult) -> GraphQLHTTPResponse:
    processed = process_result(result)
    errors = result.errors or ()
    if result.data is None and errors and all(error.path is None for error in errors):
        processed.pop("data", None)
    return processed


@lru_cache(maxsize=64)
def _media_type(content_type: str) -> str:
    return parse_content_type(content_type)[0]


def _given(body: Mapping[str, Any], name: str, type_: type, expected: str) -> Any:
    """A part of the operation. Raises: HTTPException when it is of another type."""
    value = body.get(name)
    if value is not None and not isinstance(value, type_):
        raise HTTPException(400, f"`{name}` must be {expected} or null, if provided.")
    return value


def _takes_list(parsed: GraphQLRequestData) -> bool:
    return parsed.query is not None and any(name in parsed.query for name in LIST_FIELDS)


def limited(receive: Receive, max_bytes: int = MAX_BODY_BYTES) -> Receive:
    """Gives up reading a body that is too large before it is in memory."""
    read_bytes = 0

    async def limited() -> Message:
        nonlocal read_bytes
        message = await receive()
        read_bytes += len(message.get("body", b""))
        if read_bytes > max_bytes:
            raise BodyTooLarge
        return message

    return limited


def _refusal(error: Exception) -> Response:
    """The answer to a request that was not executed; its error looks as in a result."""
    told = presented(GraphQLError(str(error), original_error=error))
    status, headers = _status(error, told.extensions or {})
    return Response(orjson.dumps({"errors": [told.formatted]}), status, HEADERS | headers, REQUEST_TYPE)


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
        case "RATE_LIMITED" | "UNAVAILABLE" as code:
            wait_s = math.ceil(extensions["retryAfterMs"] / 1000)
            return 429 if code == "RATE_LIMITED" else 503, {"Retry-After": str(wait_s)}
    return 500, {}

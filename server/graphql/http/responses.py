"""Writes the results and refusals of GraphQL requests as HTTP responses."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import orjson
from graphql import ExecutionResult, FormattedExecutionResult, GraphQLError
from starlette.responses import Response

from schema.errors import to_client_error
from server.graphql.documents import OperationRefused
from server.graphql.frames import STREAM_END, stream_event
from server.graphql.http.media_types import EVENT_STREAM, prefers_event_stream
from server.graphql.http.requests import REQUEST_MEDIA_TYPE
from server.transport.bodies import BodyTooLarge
from storage.errors import BadUserInput

RESPONSE_MEDIA_TYPE = "application/graphql-response+json"

HEADERS = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
STREAM_HEADERS = HEADERS | {
    "Content-Type": f"{EVENT_STREAM}; charset=utf-8",
    "Vary": "Accept",
    # nginx sends each event at once.
    "X-Accel-Buffering": "no",
}


class MethodNotAllowed(BadUserInput):
    """The request's method is not one of `allowed`, such as "GET, POST"."""

    def __init__(self, allowed: str) -> None:
        super().__init__("method", allowed, "Send mutations by POST, and queries by POST or GET.")
        self.allowed = allowed


def result_response(result: ExecutionResult, accept: str) -> Response:
    """Returns the response in the accepted media type, without `data` if nothing was executed."""
    is_new_type, formatted = RESPONSE_MEDIA_TYPE in accept, _formatted(result)
    if prefers_event_stream(accept):
        return Response(stream_event(orjson.dumps(formatted)) + STREAM_END, headers=STREAM_HEADERS)
    status = 400 if is_new_type and "data" not in formatted else 200
    content_type = f"{RESPONSE_MEDIA_TYPE}; charset=utf-8" if is_new_type else REQUEST_MEDIA_TYPE
    return Response(orjson.dumps(formatted), status, HEADERS | {"Vary": "Accept"}, content_type)


def batch_response(results: Sequence[ExecutionResult]) -> Response:
    """Returns the response to a batch: a list of its results, in their order."""
    return Response(orjson.dumps([_formatted(each) for each in results]), 200, HEADERS, REQUEST_MEDIA_TYPE)


def refused_result(refused: OperationRefused) -> ExecutionResult:
    """Returns the result of an operation that GraphQL itself or a limit refuses."""
    return ExecutionResult(None, [to_client_error(each) for each in refused.errors])


def error_result(error: Exception) -> ExecutionResult:
    """Returns the result of an operation that was not executed because of an error."""
    return ExecutionResult(None, [to_client_error(GraphQLError(str(error), original_error=error))])


def refusal_response(error: Exception) -> Response:
    """Returns the response to a request that was not executed. Its body has the form of a result with one error."""
    result = error_result(error)
    assert result.errors is not None
    status, headers = _status(error, result.errors[0].extensions or {})
    return Response(orjson.dumps(_formatted(result)), status, HEADERS | headers, REQUEST_MEDIA_TYPE)


def _formatted(result: ExecutionResult) -> FormattedExecutionResult:
    """Returns the result as JSON values, without `data` if nothing was executed."""
    formatted = result.formatted
    if result.data is None and result.errors and all(each.path is None for each in result.errors):
        del formatted["data"]
    return formatted


def _status(error: Exception, extensions: Mapping[str, Any]) -> tuple[int, dict[str, str]]:
    if isinstance(error, MethodNotAllowed):
        return 405, {"Allow": error.allowed}
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

"""JSON responses of the routes beside GraphQL: answers, and the one shape of their errors.

An error is `{"errors": [{"message", "extensions": {"code", ...}}]}`, as GraphQL answers it.
"""

import math
import secrets
from collections.abc import Mapping

import orjson
import structlog
from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from storage.errors import DomainError
from storage.mongo import unavailable

STATUS_BY_CODE = {
    "BAD_USER_INPUT": 400,
    "UNAUTHENTICATED": 401,
    "FORBIDDEN": 403,
    "NOT_FOUND": 404,
    "CONFLICT": 409,
    "RATE_LIMITED": 429,
    "INTERNAL_SERVER_ERROR": 500,
    "UNAVAILABLE": 503,
}

log = structlog.get_logger(__name__)


def json_answer(body: object, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """Returns a JSON response that is never cached. The body may be a model, or hold models."""
    content = orjson.dumps(body, default=_as_object)
    return Response(content, status, {"Cache-Control": "no-store", **(headers or {})}, "application/json")


def error_answer(error: Exception, status: int | None = None, /, **more: object) -> Response:
    """Returns the answer to a request that failed: with the status of the error's code, unless one is given.

    Logs an unexpected error, and masks it. `more` are further members of the body, for protocols that need them.
    """
    domain_error = error if isinstance(error, DomainError) else unavailable(error)
    if domain_error is None:
        request_id = secrets.token_hex(8)
        log.error("request_failed", request_id=request_id, exc_info=error)
        return _answer("Unexpected error.", {"code": "INTERNAL_SERVER_ERROR", "requestId": request_id}, 500, more)
    status = status or STATUS_BY_CODE.get(domain_error.code, 500)
    return _answer(domain_error.message, domain_error.extensions, status, more, _retry_headers(domain_error))


async def route_error(_: Request, error: Exception) -> Response:
    """Returns the answer to a request for an unknown path, or with a method that its path does not serve."""
    assert isinstance(error, HTTPException)
    headers = dict(error.headers or {})
    wrong_method = {"code": "BAD_USER_INPUT", "field": "method", "expected": headers.get("Allow", "another method")}
    extensions = {"code": "NOT_FOUND"} if error.status_code == 404 else wrong_method
    return _answer(f"{error.detail}.", extensions, error.status_code, {}, headers)


def _answer(
    message: str,
    extensions: Mapping[str, object],
    status: int,
    more: Mapping[str, object],
    headers: dict[str, str] | None = None,
) -> Response:
    return json_answer({**more, "errors": [{"message": message, "extensions": extensions}]}, status, headers)


def _as_object(value: object) -> dict[str, object]:
    if isinstance(value, BaseModel):
        return value.model_dump(by_alias=True)
    raise TypeError(f"{type(value).__name__} has no form in JSON.")


def _retry_headers(error: DomainError) -> dict[str, str]:
    """Returns the header Retry-After, if the error says after how many milliseconds to try again."""
    wait_ms = error.details.get("retryAfterMs")
    return {"Retry-After": str(math.ceil(wait_ms / 1000))} if isinstance(wait_ms, int) else {}

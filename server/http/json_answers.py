"""JSON responses of the routes beside GraphQL."""

import math

import orjson
from starlette.responses import Response

from storage.errors import DomainError


def json_answer(body: object, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """Returns a JSON response that is never cached."""
    return Response(orjson.dumps(body), status, {"Cache-Control": "no-store", **(headers or {})}, "application/json")


def retry_headers(error: DomainError) -> dict[str, str]:
    """Returns the header Retry-After, if the error says after how many milliseconds to try again."""
    wait_ms = error.details.get("retryAfterMs")
    return {"Retry-After": str(math.ceil(wait_ms / 1000))} if isinstance(wait_ms, int) else {}

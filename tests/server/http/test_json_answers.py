"""The shape and the status of errors of HTTP routes."""

from collections.abc import AsyncIterator

import httpx2
import pytest
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from structlog.testing import capture_logs

from server.http.json_answers import error_answer, json_answer, route_error
from storage.errors import (
    BadUserInput,
    Conflict,
    DomainError,
    Forbidden,
    NotFound,
    RateLimited,
    Unauthenticated,
    Unavailable,
)
from tests.http_errors import error_of

pytestmark = pytest.mark.anyio


@pytest.fixture
async def http() -> AsyncIterator[httpx2.AsyncClient]:
    async def answer(_: Request) -> Response:
        return json_answer({})

    app = Starlette(routes=[Route("/", answer)], exception_handlers={HTTPException: route_error})
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url="http://test") as http:
        yield http


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (BadUserInput("name", "a text"), 400),
        (Unauthenticated(), 401),
        (Forbidden("No."), 403),
        (NotFound("file", "x"), 404),
        (Conflict("Used up."), 409),
        (RateLimited("Too many.", 1500), 429),
        (Unavailable("No answer."), 503),
    ],
)
def test_error_has_the_status_of_its_code(error: DomainError, status: int) -> None:
    response = error_answer(error)
    assert response.status_code == status
    assert error_of(httpx2.Response(200, content=bytes(response.body)).json()) == {
        "message": error.message,
        **error.extensions,
    }
    assert response.headers["cache-control"] == "no-store"
    assert response.headers.get("retry-after") == {429: "2", 503: "1"}.get(status)


def test_unexpected_error_is_masked_and_logged() -> None:
    with capture_logs() as logs:
        response = error_answer(RuntimeError("the secret"))
    answer = error_of(httpx2.Response(200, content=bytes(response.body)).json())
    assert (response.status_code, answer["code"], answer["message"]) == (
        500,
        "INTERNAL_SERVER_ERROR",
        "Unexpected error.",
    )
    assert [each["request_id"] for each in logs] == [answer["requestId"]]
    assert b"secret" not in response.body


async def test_unknown_path_and_method_have_the_shape(http: httpx2.AsyncClient) -> None:
    missing, wrong_method = await http.get("/nowhere"), await http.post("/")
    assert (missing.status_code, error_of(missing.json())["code"]) == (404, "NOT_FOUND")
    answer = error_of(wrong_method.json())
    assert (wrong_method.status_code, answer["code"], answer["field"]) == (405, "BAD_USER_INPUT", "method")
    assert answer["expected"] == wrong_method.headers["allow"]

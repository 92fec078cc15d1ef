"""Routes of browsers: their deadline."""

import asyncio

import httpx2
import orjson
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response

from server.auth.credentials import RequestCredentials
from server.http.browser_routes import BrowserHandler, browser_route
from server.http.json_answers import json_answer
from server.http.openapi import Answer, Operation, Tag
from tests.browser_sessions import CLIENT
from tests.http_errors import error_of

pytestmark = pytest.mark.anyio

OPERATION = Operation(id="test", tag=Tag.OPERATION, summary="Test", answers={200: Answer("An answer.")})


async def test_handler_is_cancelled_at_the_deadline() -> None:
    is_cancelled = asyncio.Event()

    async def wait(_: Request) -> Response:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            is_cancelled.set()
            raise
        return json_answer({})

    response = await post(wait, deadline_s=0.01)
    answer = error_of(orjson.loads(response.content))
    assert (response.status_code, answer["code"]) == (503, "UNAVAILABLE")
    assert "may have taken effect" in answer["message"]
    assert response.headers["retry-after"] == "1"
    assert is_cancelled.is_set()


async def test_timeout_inside_a_handler_is_no_deadline() -> None:
    async def fail(_: Request) -> Response:
        raise TimeoutError

    assert (await post(fail, deadline_s=60)).status_code == 500


async def post(handle: BrowserHandler, deadline_s: float) -> httpx2.Response:
    """Sends a request to a route of this handler."""
    app = Starlette(routes=[browser_route("/", OPERATION, RequestCredentials(), handle, deadline_s)])
    transport = httpx2.ASGITransport(app)
    async with httpx2.AsyncClient(transport=transport, base_url="http://test") as http:
        return await http.post("/", headers=CLIENT)

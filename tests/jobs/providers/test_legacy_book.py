"""The legacy book over HTTP (docs/interfaces.md). A malformed response is a failure, never a verdict."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import orjson
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from jobs.providers.legacy_book import legacy_book
from storage.mail.legacy_book import LegacyBookError
from tests.http_server import http_server

pytestmark = pytest.mark.anyio

ADDRESSES = ["ann@example.org", "bob@example.org"]
WRONG_TYPE = orjson.dumps({"results": [{"address": each, "blocked": 1} for each in ADDRESSES]})


@asynccontextmanager
async def served_book(content: bytes, status: int = 200) -> AsyncIterator[tuple[str, list[Any]]]:
    """Serves a fixed response. Yields the URL and the list of request bodies received so far."""
    requests: list[Any] = []

    async def answer(request: Request) -> Response:
        requests.append(orjson.loads(await request.body()))
        return Response(content, status)

    async with http_server(Starlette(routes=[Route("/book", answer, methods=["POST"])])) as port:
        yield f"http://127.0.0.1:{port}/book", requests


async def test_legacy_book_answer_is_used() -> None:
    results = {"results": [{"address": ADDRESSES[1], "blocked": True}, {"address": ADDRESSES[0], "blocked": False}]}
    async with served_book(orjson.dumps(results)) as (url, requests), legacy_book(url, 30) as book:
        assert book is not None
        assert book.share == 30
        assert await book.look_up(ADDRESSES) == {ADDRESSES[0]: False, ADDRESSES[1]: True}
    assert requests == [{"addresses": ADDRESSES}]


@pytest.mark.parametrize(
    ("content", "status"),
    [
        (b"{}", 200),
        (b"no json", 200),
        (b"[]", 200),
        (b'{"results": [{"address": "ann@example.org", "blocked": true}]}', 200),
        (b'{"results": [{"address": "ann@example.org"}]}', 200),
        (b'{"results": 3}', 200),
        (WRONG_TYPE, 200),
        (b'{"results": []}', 500),
        (b'{"results": []}', 404),
    ],
)
async def test_unexpected_answer_fails_without_showing_addresses(content: bytes, status: int) -> None:
    async with served_book(content, status) as (url, _), legacy_book(url, 30) as book:
        assert book is not None
        with pytest.raises(LegacyBookError) as failed:
            await book.look_up(ADDRESSES)
    assert "example.org" not in str(failed.value)


async def test_unreachable_legacy_book_fails() -> None:
    async with legacy_book("http://127.0.0.1:1/", 30) as book:
        assert book is not None
        with pytest.raises(LegacyBookError):
            await book.look_up(ADDRESSES)


async def test_legacy_book_without_url_is_disabled() -> None:
    async with legacy_book(None, 30) as book:
        assert book is None

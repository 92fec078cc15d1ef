"""GET /openapi.json: the OpenAPI document of the routes that this server has. GET /openapi: a page that shows it."""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Mapping
from importlib.metadata import version

import orjson
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

PAGE_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


def openapi_routes() -> list[Route]:
    """Returns the routes of the document and of its page.

    Both are made at their first request, because start has no time for it, and are then kept.
    """
    return [
        Route("/openapi.json", _endpoint(_document, "application/json"), methods=["GET"]),
        Route("/openapi", _endpoint(_page, "text/html", PAGE_HEADERS), methods=["GET"]),
    ]


def _endpoint(
    make: Callable[[list[BaseRoute]], bytes], media_type: str, more_headers: Mapping[str, str] | None = None
) -> Callable[[Request], Awaitable[Response]]:
    content = b""

    async def endpoint(request: Request) -> Response:
        nonlocal content
        content = content or await asyncio.to_thread(make, list(request.app.routes))
        etag = f'"{hashlib.sha256(content).hexdigest()[:32]}"'
        headers = {"ETag": etag, "Cache-Control": "no-cache", **(more_headers or {})}
        if etag in request.headers.get("if-none-match", ""):
            return Response(status_code=304, headers=headers)
        return Response(content, 200, headers, media_type)

    return endpoint


def _document(routes: list[BaseRoute]) -> bytes:
    # Imported here, because the models of OpenAPI take time that the start of each web process does not need.
    from server.http.openapi.document import openapi_document

    return openapi_document(routes, version("noroshi"))


def _page(routes: list[BaseRoute]) -> bytes:
    from server.http.openapi.page import openapi_page

    return openapi_page(orjson.loads(_document(routes))).encode()

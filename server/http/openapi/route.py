"""GET /openapi.json: the OpenAPI document of the routes that this server has."""

import asyncio
import hashlib
from importlib.metadata import version

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

PATH = "/openapi.json"


def openapi_route() -> Route:
    """Returns the route. The document is made at the first request, since start has no time for it, and then kept."""
    document = b""

    async def answer(request: Request) -> Response:
        nonlocal document
        document = document or await asyncio.to_thread(_document, list(request.app.routes))
        headers = {"ETag": f'"{hashlib.sha256(document).hexdigest()[:32]}"', "Cache-Control": "no-cache"}
        if headers["ETag"] in request.headers.get("if-none-match", ""):
            return Response(status_code=304, headers=headers)
        return Response(document, 200, headers, "application/json")

    return Route(PATH, answer, methods=["GET"])


def _document(routes: list[BaseRoute]) -> bytes:
    # Imported here, because the models of OpenAPI take time that the start of each web process does not need.
    from server.http.openapi.document import openapi_document

    return openapi_document(routes, version("noroshi"))

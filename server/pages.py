"""The built pages and pictures: start page, GraphiQL, their assets, the stamps. Nothing is loaded from elsewhere."""

from pathlib import Path

from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

DIST = Path(__file__).parent.parent / "web-client" / "dist"
STAMPS = Path(__file__).parent / "stamps"

POLICY = (
    "default-src 'self'; script-src 'self'; worker-src 'self' blob:; style-src 'self' 'unsafe-inline'; "
    "connect-src 'self' ws: wss:; font-src 'self' data:; img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
}
NOT_BUILT = """<!doctype html><html lang="en"><meta charset="utf-8"><title>Noroshi</title>
<h1>The pages are not built yet</h1>
<p>The API at <code>/graphql</code> serves. To build the pages, install Node.js 20 and run <code>make web</code>.</p>"""


class _Immutable(StaticFiles):
    """Files whose names change with their contents."""

    def file_response(self, *args: object, **kwargs: object) -> Response:
        """Kept by browsers for good."""
        response = super().file_response(*args, **kwargs)  # type: ignore[arg-type]
        response.headers["Cache-Control"] = "public, max-age=31536000, immutable"
        return response


def _page(name: str) -> Route:
    path = "/" if name == "index" else f"/{name}"

    async def page(request: Request) -> Response:
        file = DIST / f"{name}.html"
        return FileResponse(file, headers=HEADERS) if file.exists() else HTMLResponse(NOT_BUILT, 503, HEADERS)

    return Route(path, page, name=name)


async def _favicon(request: Request) -> Response:
    file = DIST / "favicon.svg"
    return FileResponse(file) if file.exists() else Response(status_code=404)


def page_routes() -> list[BaseRoute]:
    """Everything that a browser loads."""
    return [
        _page("index"),
        _page("graphiql"),
        Route("/favicon.svg", _favicon),
        Mount("/assets", _Immutable(directory=DIST / "assets", check_dir=False)),
        Mount("/stamps", StaticFiles(directory=STAMPS, check_dir=False)),
    ]

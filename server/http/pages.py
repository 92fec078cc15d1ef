"""Static files: the web client, GraphiQL, their assets and the stamps. Pages load nothing from other origins."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

from server.setting_groups.graphql import read_manifest

# A wheel contains the built web client. In a checkout, it is in the folder where Vite builds it.
_PACKAGED = Path(__file__).with_name("web")
DIST = _PACKAGED if _PACKAGED.exists() else Path(__file__).parents[2] / "web-client" / "dist"
STAMPS = Path(__file__).parents[1] / "stamps"

POLICY = (
    "default-src 'self'; script-src 'self'; worker-src 'self' blob:; style-src 'self' 'unsafe-inline'; "
    "connect-src 'self' ws: wss:; font-src 'self' data:; img-src 'self' data: blob:; "
    "frame-ancestors 'none'; base-uri 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
}
# The file name of an asset contains a hash of the content, so browsers may cache the file forever.
ASSET_HEADERS = {"X-Content-Type-Options": "nosniff", "Cache-Control": "public, max-age=31536000, immutable"}
PICTURE_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; sandbox",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "public, max-age=86400",
}
NOT_BUILT = """<!doctype html><html lang="en"><meta charset="utf-8"><title>Noroshi</title>
<h1>The pages are not built yet</h1>
<p>The API at <code>/graphql</code> serves. To build the pages, install Node.js 20 and run <code>make web</code>.</p>"""


class _StaticFolder(StaticFiles):
    """The files of a folder, with fixed headers. A missing folder counts as empty."""

    def __init__(self, folder: Path, headers: Mapping[str, str]) -> None:
        super().__init__(directory=folder, check_dir=False)
        self._headers = headers

    async def check_config(self) -> None:
        """Does nothing, because the web client may not be built yet."""

    def file_response(self, *args: Any, **kwargs: Any) -> Response:
        """Returns the file, or 304."""
        response = super().file_response(*args, **kwargs)
        response.headers.update(self._headers)
        return response


def _page(dist: Path, name: str) -> Route:
    path = "/" if name == "index" else f"/{name}"

    async def page(request: Request) -> Response:
        file = dist / f"{name}.html"
        return FileResponse(file, headers=HEADERS) if file.exists() else HTMLResponse(NOT_BUILT, 503, HEADERS)

    return Route(path, page, name=name)


def _root_file(dist: Path, name: str, headers: Mapping[str, str], media_type: str) -> Route:
    """Returns the route of a file at the root, such as the service worker, whose path limits the pages it controls."""

    async def root_file(request: Request) -> Response:
        file = dist / name
        return FileResponse(file, 200, headers, media_type) if file.exists() else Response(status_code=404)

    return Route(f"/{name}", root_file)


def documents_of_web_client(dist: Path = DIST) -> dict[str, str]:
    """Returns the texts that the built web client sends, by their hashes; empty if the build has written none.

    Raises: ValueError for a file that is no manifest.
    """
    manifest = dist / "trusted-documents.json"
    return read_manifest(manifest) if manifest.exists() else {}


def page_routes(dist: Path = DIST) -> list[BaseRoute]:
    """Returns the routes of all static files. `dist` is the folder of the built web client."""
    return [
        _page(dist, "index"),
        _page(dist, "graphiql"),
        _root_file(dist, "favicon.svg", PICTURE_HEADERS, "image/svg+xml"),
        _root_file(dist, "push-worker.js", HEADERS, "text/javascript"),
        _root_file(dist, "manifest.webmanifest", HEADERS, "application/manifest+json"),
        Mount("/icons", _StaticFolder(dist / "icons", PICTURE_HEADERS)),
        Mount("/assets", _StaticFolder(dist / "assets", ASSET_HEADERS)),
        Mount("/stamps", _StaticFolder(STAMPS, PICTURE_HEADERS)),
    ]

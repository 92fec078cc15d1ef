"""GET /files/{id}/…: the bytes of a file, for viewers who may see a message or post that the file is attached to.

GET /media/{publication}/{id}: a file of a scheduled post, under the signed URL that a network gets.

A browser never shows bytes as they were uploaded: everything but a decoded picture is an attachment, in a sandbox.
"""

import re
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from resolvers.files.downloads import is_recording, published_file, visible_file
from server.auth.credentials import RequestCredentials
from server.auth.viewers import ViewerSessions
from server.http.json_answers import error_answer
from server.http.openapi import Answer, DescribedRoute, Operation, Parameter, Scheme, Tag
from storage.errors import Forbidden, NotFound, Unauthenticated
from storage.files.records import StoredFile, StoredObject
from storage.identity.roles import Role, with_included
from storage.secrets.download_urls import MEDIA_FOLDER, DownloadUrls
from storage.stores import Stores

READ_SCOPE = "files:read"
CALLS_SCOPE = "calls:read"
"""The scope that a service key also needs for recordings of calls."""

PLAIN_TYPE = "application/octet-stream"
PLAYED_TYPES = ("audio/", "video/", "application/pdf", "application/zip")
"""Beginnings of the types that a file other than a picture may have in a response."""

_SECURITY_HEADERS = {
    "Content-Security-Policy": "sandbox; default-src 'none'",
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Vary": "Authorization, Cookie",
}
_CONTENT = {
    200: Answer("The bytes, with their type and an `ETag`.", media_types=[PLAIN_TYPE, "image/*", "audio/*", "video/*"]),
    206: Answer("The requested range of the bytes.", media_types=[PLAIN_TYPE]),
    304: Answer("The file has the ETag of `If-None-Match`."),
    416: Answer("No byte of the file is in the requested range."),
}
_RANGE_PARAMETER = Parameter("Range", "header", "Range of the bytes, such as `bytes=0-1023`.")
DOWNLOAD = Operation(
    id="downloadFile",
    tag=Tag.FILES,
    summary="Download a file of a message, a post or a library",
    parameters=[_RANGE_PARAMETER],
    answers=_CONTENT,
    errors=(401, 403, 404, 503),
    security={Scheme.BEARER: (READ_SCOPE,), Scheme.SESSION: ()},
)
DOWNLOAD_THUMBNAIL = Operation(
    id="downloadThumbnail",
    tag=Tag.FILES,
    summary="Download the largest smaller version of a picture",
    parameters=[_RANGE_PARAMETER],
    answers=_CONTENT,
    errors=(401, 403, 404, 503),
    security={Scheme.BEARER: (READ_SCOPE,), Scheme.SESSION: ()},
)
DOWNLOAD_MEDIA = Operation(
    id="downloadMedia",
    tag=Tag.FILES,
    summary="Download a file of a scheduled post, at the signed address that a network gets",
    parameters=[
        Parameter("expires", "query", "Part of the signed address.", is_required=True),
        Parameter("signature", "query", "Part of the signed address.", is_required=True),
        _RANGE_PARAMETER,
    ],
    answers=_CONTENT,
    errors=(404, 503),
)
_RANGE = re.compile(r"bytes=(\d{0,15})-(\d{0,15})")


@dataclass(frozen=True, slots=True)
class _FileContent:
    """The content of a path: the file itself, or its thumbnail."""

    objects: Sequence[StoredObject]
    media_type: str
    disposition: str
    etag: str

    @property
    def size(self) -> int:
        return sum(each.size for each in self.objects)


def files_routes(stores: Stores, viewers: ViewerSessions, credentials: RequestCredentials) -> list[DescribedRoute]:
    """Returns the routes of files and of their thumbnails."""

    async def endpoint(request: Request) -> Response:
        try:
            session = await viewers.session(credentials.of_download(request.headers))
            if session is None:
                raise Unauthenticated
            roles = with_included(session.roles)
            if Role.MEMBER not in roles:
                raise Forbidden("This needs the role MEMBER.")
            session.require_scope(READ_SCOPE)
            file = await visible_file(stores, session.user, request.path_params["id"], roles)
            if is_recording(file):
                session.require_scope(CALLS_SCOPE)
            is_thumbnail = "name" not in request.path_params
            return await _answer(stores, request, _thumbnail(file) if is_thumbnail else _content(file))
        except Exception as error:
            response = error_answer(error)
            response.headers.update(_SECURITY_HEADERS)
            return response

    return [
        DescribedRoute("/files/{id}/thumbnail", endpoint, {"GET": DOWNLOAD_THUMBNAIL}),
        DescribedRoute("/files/{id}/{name}", endpoint, {"GET": DOWNLOAD}),
    ]


def media_route(stores: Stores, urls: DownloadUrls) -> DescribedRoute:
    """Returns the route of files of scheduled posts, under the signed URLs that networks get."""

    async def endpoint(request: Request) -> Response:
        publication_id, id_ = request.path_params["publication"], request.path_params["id"]
        expires, signature = (request.query_params.get(name, "") for name in ("expires", "signature"))
        try:
            if not urls.is_valid(f"{publication_id}/{id_}", expires, signature):
                raise NotFound("file", id_)
            return await _answer(stores, request, _content(await published_file(stores, publication_id, id_)))
        except Exception as error:
            response = error_answer(error)
            response.headers.update(_SECURITY_HEADERS)
            return response

    return DescribedRoute(f"/{MEDIA_FOLDER}/{{publication}}/{{id}}", endpoint, {"GET": DOWNLOAD_MEDIA})


def _content(file: StoredFile) -> _FileContent:
    if file.is_picture and file.content_type is not None:
        return _FileContent(file.parts, file.content_type, _disposition("inline", file.name), f'"{file.id}"')
    media_type = file.content_type or PLAIN_TYPE
    shown = media_type if media_type.startswith(PLAYED_TYPES) else PLAIN_TYPE
    return _FileContent(file.parts, shown, _disposition("attachment", file.name), f'"{file.id}"')


def _thumbnail(file: StoredFile) -> _FileContent:
    """Returns the largest smaller version of a picture, or a small picture itself. Raises: NotFound."""
    if file.picture is None:
        raise NotFound("thumbnail of a file", file.id)
    if not file.picture.thumbnails:
        return _content(file)
    largest = max(file.picture.thumbnails, key=lambda each: each.width)
    return _FileContent([largest], largest.content_type, "inline", f'"{file.id}-thumbnail"')


def _disposition(kind: str, name: str) -> str:
    return f"{kind}; filename*=UTF-8''{quote(name, safe='')}"


async def _answer(stores: Stores, request: Request, content: _FileContent) -> Response:
    headers = {
        **_SECURITY_HEADERS,
        # A browser asks again before each use, so that nobody sees a file who may not see it any more.
        "Cache-Control": "private, no-cache",
        "ETag": content.etag,
        "Accept-Ranges": "bytes",
        "Content-Disposition": content.disposition,
    }
    etags = [tag.strip().removeprefix("W/") for tag in request.headers.get("if-none-match", "").split(",")]
    if content.etag in etags:
        return Response(status_code=304, headers=headers)
    requested = _requested_range(request, content)
    if requested is None:
        return await _stream(
            stores, request, content, headers | {"Content-Length": str(content.size)}, 0, content.size, 200
        )
    start, end = requested
    if start >= end:
        return Response(status_code=416, headers=headers | {"Content-Range": f"bytes */{content.size}"})
    ranged = {"Content-Range": f"bytes {start}-{end - 1}/{content.size}", "Content-Length": str(end - start)}
    return await _stream(stores, request, content, headers | ranged, start, end, 206)


async def _stream(
    stores: Stores, request: Request, content: _FileContent, headers: dict[str, str], start: int, end: int, status: int
) -> Response:
    if request.method == "HEAD":
        return Response(status_code=status, headers=headers, media_type=content.media_type)
    chunks = stores.file_objects.read(content.objects, start, end)
    # Reads the first chunk before the status is sent, so that a failure of the storage is answered with 503.
    first = await anext(chunks, b"")
    return StreamingResponse(_joined(first, chunks), status, headers, content.media_type)


async def _joined(first: bytes, others: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    yield first
    async for chunk in others:
        yield chunk


def _requested_range(request: Request, content: _FileContent) -> tuple[int, int] | None:
    """Returns the first byte and the end of the requested range; None to answer with everything.

    The range is empty if no byte of the content is in it.
    """
    match = _RANGE.fullmatch(request.headers.get("range", ""))
    if match is None or match.groups() == ("", "") or request.headers.get("if-range", content.etag) != content.etag:
        return None
    first, last = match.groups()
    if not first:
        return max(content.size - int(last), 0), content.size
    end = min(int(last) + 1, content.size) if last else content.size
    return int(first), end

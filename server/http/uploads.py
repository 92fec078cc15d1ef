"""/uploads/{id}: the bytes of an upload that `createUpload` has created, by PUT or by tus 1.0 (docs/files.md).

Bytes are stored in parts of 4 MiB while they arrive, and what is left when the request ends or the connection is lost.
So a request needs little memory, and a client continues at the offset that HEAD returns.
"""

import re
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from email.utils import formatdate

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from server.auth.credentials import CLIENT_HEADER, RequestCredentials
from server.auth.viewers import ViewerSession, ViewerSessions
from server.http.json_answers import error_answer
from server.http.openapi import Answer, Body, DescribedRoute, Operation, Parameter, Scheme, Tag
from storage.errors import BadUserInput, DomainError, Forbidden, RateLimited, Unauthenticated
from storage.files.records import StoredFile
from storage.files.uploads import PART_BYTES, OffsetChanged
from storage.identity.roles import Role, with_included
from storage.ids import UserKey, stored_id
from storage.redis.queue import FILES
from storage.stores import Stores

TUS_VERSION = "1.0.0"
TUS_CONTENT_TYPE = "application/offset+octet-stream"
WRITE_SCOPE = "files:write"
MAX_REQUESTS = 16
"""Requests with bytes of uploads that a process receives at a time."""

MAX_REQUESTS_OF_USER = 4
MAX_OFFSET_DIGITS = 15

EXPOSED_HEADERS = ("Upload-Offset", "Upload-Length", "Upload-Expires", "Tus-Resumable", "Tus-Version")
"""Headers of responses that pages of other allowed origins may read."""

_HEADERS = {"Tus-Resumable": TUS_VERSION, "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
_CONTENT_RANGE = re.compile(
    rf"bytes (\d{{1,{MAX_OFFSET_DIGITS}}})-\d{{1,{MAX_OFFSET_DIGITS}}}/(\d{{1,{MAX_OFFSET_DIGITS}}})"
)

_SECURITY = {Scheme.BEARER: (WRITE_SCOPE,), Scheme.SESSION: ()}
_CLIENT = Parameter(CLIENT_HEADER, "header", "Any value. Needed with the cookie of a session.")
_OFFSET = Parameter("Upload-Offset", "header", "Number of bytes that the server has.", int)
_RESUMABLE = Parameter("Tus-Resumable", "header", f"The version of tus, {TUS_VERSION}.", is_required=True)
_STATE = {"Upload-Offset": "Number of bytes that the server has.", "Upload-Expires": "Time at which the upload ends."}
_STORED = Answer("The bytes are stored for good.", headers=_STATE)
_RECEIVE_ERRORS = (400, 401, 403, 404, 409, 413, 429, 503)

OPERATIONS = {
    "OPTIONS": Operation(
        id="describeUploads",
        tag=Tag.FILES,
        summary="Ask for the version and the extensions of tus",
        answers={204: Answer("The headers `Tus-Version` and `Tus-Extension` say which.")},
    ),
    "HEAD": Operation(
        id="getUploadOffset",
        tag=Tag.FILES,
        summary="Ask how many bytes of an upload the server has",
        parameters=[_CLIENT],
        answers={200: Answer("The state.", headers={**_STATE, "Upload-Length": "Number of bytes of the file."})},
        errors=(401, 403, 404, 503),
        security=_SECURITY,
    ),
    "PATCH": Operation(
        id="continueUpload",
        tag=Tag.FILES,
        summary="Add bytes to an upload as tus 1.0 does",
        parameters=[replace(_OFFSET, is_required=True), _RESUMABLE, _CLIENT],
        body=Body(media_type=TUS_CONTENT_TYPE, description="The bytes from the offset on."),
        answers={204: _STORED},
        errors=(*_RECEIVE_ERRORS, 412, 415),
        security=_SECURITY,
    ),
    "PUT": Operation(
        id="putUpload",
        tag=Tag.FILES,
        summary="Add all bytes of an upload, or those from an offset on",
        description="The upload was created by `createUpload` of the GraphQL API.",
        parameters=[_OFFSET, Parameter("Content-Range", "header", "Says the same as `Upload-Offset`."), _CLIENT],
        body=Body(media_type="application/octet-stream", description="The bytes."),
        answers={204: _STORED},
        errors=_RECEIVE_ERRORS,
        security=_SECURITY,
    ),
    "DELETE": Operation(
        id="deleteUpload",
        tag=Tag.FILES,
        summary="Delete a file that is not attached",
        parameters=[_CLIENT],
        answers={204: Answer("The file is deleted.")},
        errors=(401, 403, 404, 503),
        security=_SECURITY,
    ),
}

UploadHandler = Callable[[Request, StoredFile], Awaitable[Response]]


class _WrongRequest(DomainError):
    """A request that does not follow tus, or has more bytes than the upload."""

    code = "BAD_USER_INPUT"

    def __init__(self, status: int, field: str, expected: str) -> None:
        super().__init__(f"{field}: expected {expected}.", field=field, expected=expected)
        self.status = status


def uploads_route(stores: Stores, viewers: ViewerSessions, credentials: RequestCredentials) -> DescribedRoute:
    """Returns the route of uploads."""
    receiver = _UploadReceiver(stores)
    handlers: dict[str, UploadHandler] = {
        "HEAD": _head,
        "PATCH": receiver.patch,
        "PUT": receiver.put,
        "DELETE": receiver.delete,
    }

    async def endpoint(request: Request) -> Response:
        if request.method == "OPTIONS":
            extensions = {"Tus-Version": TUS_VERSION, "Tus-Extension": "expiration,termination"}
            return Response(status_code=204, headers=_HEADERS | extensions)
        try:
            session = _require_uploader(await viewers.session(credentials.of_request(request.headers)))
            file = await stores.uploads.get(session.user_key, stored_id(request.path_params["id"]))
            return await handlers[request.method](request, file)
        except Exception as error:
            return _refusal(error)

    return DescribedRoute("/uploads/{id}", endpoint, OPERATIONS)


def _require_uploader(session: ViewerSession | None) -> ViewerSession:
    """Returns the session of a member. Raises: Unauthenticated, Forbidden."""
    if session is None:
        raise Unauthenticated
    if Role.MEMBER not in with_included(session.roles):
        raise Forbidden("This needs the role MEMBER.")
    session.require_scope(WRITE_SCOPE)
    return session


async def _head(_request: Request, file: StoredFile) -> Response:
    return Response(status_code=200, headers=_state_headers(file) | {"Upload-Length": str(file.size)})


class _UploadReceiver:
    """Receives the bytes of uploads in this process."""

    def __init__(self, stores: Stores) -> None:
        self._stores = stores
        self._requests: Counter[UserKey] = Counter()

    async def patch(self, request: Request, file: StoredFile) -> Response:
        """Adds bytes as tus does."""
        _check_tus(request)
        return await self._receive(request, file, _offset(request, "Upload-Offset"))

    async def put(self, request: Request, file: StoredFile) -> Response:
        """Adds all bytes, or those from the offset of Content-Range or Upload-Offset."""
        if (content_range := request.headers.get("content-range")) is not None:
            match = _CONTENT_RANGE.fullmatch(content_range)
            if match is None or int(match[2]) != file.size:
                raise _WrongRequest(400, "Content-Range", f"bytes FIRST-LAST/{file.size}")
            return await self._receive(request, file, int(match[1]))
        has_offset = "upload-offset" in request.headers
        return await self._receive(request, file, _offset(request, "Upload-Offset") if has_offset else 0)

    async def delete(self, _request: Request, file: StoredFile) -> Response:
        """Deletes a file that is not attached."""
        if not await self._stores.file_deletion.cancel(file):
            raise Forbidden("The file is attached. Delete what it is attached to.")
        return Response(status_code=204, headers=_HEADERS)

    async def _receive(self, request: Request, file: StoredFile, offset: int) -> Response:
        if offset != file.offset or file.offset == file.size:
            raise OffsetChanged(file.offset)
        with self._counted(file.owner):
            file = await self._store_parts(request, file)
        if file.offset == file.size:
            await self._stores.queue.enqueue(FILES, "files.check", file.id)
        return Response(status_code=204, headers=_state_headers(file))

    async def _store_parts(self, request: Request, file: StoredFile) -> StoredFile:
        uploads, unstored = self._stores.uploads, bytearray()
        try:
            async for chunk in request.stream():
                unstored += chunk
                if file.offset + len(unstored) > file.size:
                    raise _WrongRequest(413, "body", f"at most the {file.size - file.offset} bytes that are missing")
                while len(unstored) >= PART_BYTES:
                    file = await uploads.append(file, bytes(unstored[:PART_BYTES]))
                    del unstored[:PART_BYTES]
        except ClientDisconnect:
            # Nobody reads the response. The bytes that arrived are stored nevertheless.
            pass
        return await uploads.append(file, bytes(unstored)) if unstored else file

    @contextmanager
    def _counted(self, owner: UserKey) -> Iterator[None]:
        """Counts the request while it sends bytes. Raises: RateLimited."""
        if self._requests.total() >= MAX_REQUESTS or self._requests[owner] >= MAX_REQUESTS_OF_USER:
            raise RateLimited("The server receives too many files at the moment. Try again later.", 1000)
        self._requests[owner] += 1
        try:
            yield
        finally:
            self._requests[owner] -= 1
            self._requests += Counter()  # Removes the owner if no request is left.


def _check_tus(request: Request) -> None:
    """Raises _WrongRequest for another version of tus, and for another content type than tus needs."""
    if request.headers.get("tus-resumable") != TUS_VERSION:
        raise _WrongRequest(412, "Tus-Resumable", TUS_VERSION)
    if request.headers.get("content-type") != TUS_CONTENT_TYPE:
        raise _WrongRequest(415, "Content-Type", TUS_CONTENT_TYPE)


def _offset(request: Request, header: str) -> int:
    """Returns the number in a header. Raises: BadUserInput."""
    text = request.headers.get(header, "")
    if not (text.isascii() and text.isdigit() and len(text) <= MAX_OFFSET_DIGITS):
        raise BadUserInput(header, "the number of bytes that the server has")
    return int(text)


def _state_headers(file: StoredFile) -> dict[str, str]:
    expires = (
        {} if file.expires_at is None else {"Upload-Expires": formatdate(file.expires_at.timestamp(), usegmt=True)}
    )
    return {**_HEADERS, "Upload-Offset": str(file.offset), **expires}


def _refusal(error: Exception) -> Response:
    response = error_answer(error, error.status if isinstance(error, _WrongRequest) else None)
    response.headers.update(_HEADERS)
    if isinstance(error, OffsetChanged):
        response.headers["Upload-Offset"] = str(error.offset)
    if isinstance(error, _WrongRequest):
        response.headers["Tus-Version"] = TUS_VERSION
    return response

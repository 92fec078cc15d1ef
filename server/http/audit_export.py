"""GET /audit.ndjson: the audit log of an organization as a stream of JSON lines, for an ADMIN.

Pages are read while the client takes the lines, so that an export of any length needs little memory. The access of the
ADMIN is checked again for each page.
"""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from datetime import datetime

import orjson
from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from resolvers.administration.audit import shows_target, without_hidden_communities
from server.auth.credentials import CLIENT_HEADER, Credential, RequestCredentials
from server.auth.viewers import ViewerSession, ViewerSessions
from server.http.json_answers import error_answer
from server.http.openapi import Answer, DescribedRoute, Operation, Parameter, Scheme, Tag
from storage.errors import BadUserInput, Forbidden, RateLimited, Unauthenticated
from storage.identity.audit import AuditAction, AuditEntry, AuditFilter
from storage.identity.roles import Role, with_included
from storage.stores import Stores

PAGE_SIZE = 500
MAX_EXPORTS = 4
"""Exports of this process at a time."""

HEADERS = {
    "Cache-Control": "no-store",
    "Content-Disposition": 'attachment; filename="audit.ndjson"',
    "X-Content-Type-Options": "nosniff",
}

EXPORT = Operation(
    id="exportAuditLog",
    tag=Tag.ADMINISTRATION,
    summary="Export the audit log, the newest entry first",
    description="An ADMIN gets the entries that the parameters select, or all of two years. Service keys are refused.",
    parameters=[
        Parameter("since", "query", "Earliest time of entries.", datetime),
        Parameter("until", "query", "Latest time of entries.", datetime),
        Parameter("actorId", "query", "Id of the user who made the changes."),
        Parameter("targetId", "query", "Id of the object that was changed."),
        Parameter("action", "query", "Kind of change, such as USER_ROLES_SET: an `AuditAction` of the GraphQL API."),
        Parameter(CLIENT_HEADER, "header", "Any value. Needed with the cookie of a session."),
    ],
    answers={200: Answer("One entry as a JSON object on each line.", media_types=["application/x-ndjson"])},
    errors=(400, 401, 403, 429, 503),
    security={Scheme.BEARER: (), Scheme.SESSION: ()},
)


def audit_export_route(stores: Stores, viewers: ViewerSessions, credentials: RequestCredentials) -> DescribedRoute:
    """Returns the route."""
    exporter = _AuditExporter(stores, viewers)

    async def endpoint(request: Request) -> Response:
        try:
            credential = credentials.of_request(request.headers)
            return await exporter.respond(credential, checked_filter(request.query_params))
        except Exception as error:
            return error_answer(error)

    return DescribedRoute("/audit.ndjson", endpoint, {"GET": EXPORT})


class _AuditExporter:
    def __init__(self, stores: Stores, viewers: ViewerSessions) -> None:
        self._stores = stores
        self._viewers = viewers
        self._running = 0

    async def respond(self, credential: Credential | None, entry_filter: AuditFilter) -> Response:
        """Returns a response that streams the entries.

        Raises: Unauthenticated, Forbidden, RateLimited, Unavailable.
        """
        lines = self._lines(credential, entry_filter)
        # Reads the first page now, so that a refusal is an answer with its own status.
        first = await anext(lines, b"")
        return StreamingResponse(_resume(first, lines), headers=HEADERS, media_type="application/x-ndjson")

    async def _lines(self, credential: Credential | None, entry_filter: AuditFilter) -> AsyncGenerator[bytes, None]:
        if self._running >= MAX_EXPORTS:
            raise RateLimited(f"This process runs at most {MAX_EXPORTS} exports at a time.", 10_000)
        self._running += 1
        try:
            page = await self._page(credential, entry_filter, None)
            while page:
                yield b"".join(_line(entry) for entry in page)
                page = await self._page(credential, entry_filter, page[-1].id) if len(page) == PAGE_SIZE else []
        finally:
            self._running -= 1

    async def _page(
        self, credential: Credential | None, entry_filter: AuditFilter, after: str | None
    ) -> list[AuditEntry]:
        session = require_administrator(await self._viewers.session(credential, is_use=after is None))
        organization_id = session.user.organization_id
        if not await shows_target(self._stores, session.user.key, entry_filter.target_id):
            return []
        entries = await self._stores.audit.list_entries(organization_id, entry_filter, after, PAGE_SIZE)
        return await without_hidden_communities(self._stores, session.user.key, entries)


async def _resume(first: bytes, rest: AsyncGenerator[bytes, None]) -> AsyncIterator[bytes]:
    """Yields the first page, then the others. Ends the generator when the client is gone."""
    async with aclosing(rest):
        yield first
        async for page in rest:
            yield page


def require_administrator(session: ViewerSession | None) -> ViewerSession:
    """Returns the session of a person with the role ADMIN. Raises: Unauthenticated, Forbidden."""
    if session is None:
        raise Unauthenticated
    if session.scopes is not None or Role.ADMIN not in with_included(session.roles):
        raise Forbidden("This needs the role ADMIN.")
    return session


def checked_filter(parameters: QueryParams) -> AuditFilter:
    """Returns the filter that the parameters describe, as the arguments of `auditLog` do. Raises: BadUserInput."""
    known = {"since", "until", "actorId", "targetId", "action"}
    for name in parameters:
        if name not in known:
            raise BadUserInput(name, f"one of the parameters {', '.join(sorted(known))}")
    action = parameters.get("action")
    if action is not None and action not in AuditAction.__members__:
        raise BadUserInput("action", "the name of a kind of change, such as USER_ROLES_SET")
    return AuditFilter(
        parameters.get("actorId"),
        parameters.get("targetId"),
        None if action is None else AuditAction[action],
        _instant("since", parameters.get("since")),
        _instant("until", parameters.get("until")),
    )


def _instant(name: str, text: str | None) -> datetime | None:
    if text is None:
        return None
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        at = None
    if at is None or at.tzinfo is None:
        raise BadUserInput(name, "an instant with an offset, such as 2030-01-01T00:00:00Z")
    return at


def _line(entry: AuditEntry) -> bytes:
    fields = {
        "id": entry.id,
        "at": entry.at,
        "actorId": entry.actor_id,
        "action": entry.action.value,
        "targetKind": entry.target_kind.value,
        "targetId": entry.target_id,
        "details": {detail.name: detail.value for detail in entry.details},
        "address": entry.address,
        "userAgent": entry.user_agent,
    }
    return orjson.dumps(fields, option=orjson.OPT_APPEND_NEWLINE | orjson.OPT_UTC_Z)

"""The endpoint of every ingest route: authenticates the sender, reads the body, and answers.

Bodies may be compressed by gzip, Brotli or zstd. Answers 200 with the result for the events, or 400, 401, 403, 413 or
429 if no event was recorded. After 503 with Retry-After, the client may repeat the request: recorded events count as
duplicates.
"""

from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Any

from pymongo.errors import PyMongoError
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from server.auth.credentials import service_credential
from server.auth.viewers import ViewerSessions
from server.http.json_answers import error_answer, json_answer
from server.transport.bodies import PROCESS_BODIES, BodyTooLarge
from storage.errors import DomainError, Forbidden, Unauthenticated
from storage.identity.records import User
from storage.identity.roles import Role

MAX_INGEST_BODY_BYTES = 20_000_000
INGEST_SCOPE = "mail:ingest"
CHALLENGE = {"WWW-Authenticate": 'Basic realm="noroshi", charset="UTF-8"'}
"""Amazon SNS sends the user and password of a URL only after this challenge."""

RecordBody = Callable[[Request, User, bytes], Awaitable[dict[str, Any]]]
"""Records the body of a request from a sender, and returns the answer."""


def ingest_endpoint(viewers: ViewerSessions, record: RecordBody) -> Callable[[Request], Awaitable[Response]]:
    """Returns the endpoint of a route."""

    async def endpoint(request: Request) -> Response:
        try:
            sender = await _authenticate(viewers, request)
            with PROCESS_BODIES.hold(request.receive, MAX_INGEST_BODY_BYTES) as body:
                decoded = await body.read(request.headers.get("content-encoding", "identity"))
                return json_answer(await record(request, sender, decoded))
        except ClientDisconnect:
            return Response(status_code=400)
        except (DomainError, PyMongoError) as error:
            return _refusal(error)

    return endpoint


async def _authenticate(viewers: ViewerSessions, request: Request) -> User:
    """Returns the user of a token with the role SERVICE, or the account of a key with the scope.

    Raises: Unauthenticated, Forbidden, Unavailable.
    """
    session = await viewers.session(service_credential(request.headers.get("authorization")))
    if session is None:
        raise Unauthenticated
    if Role.SERVICE not in session.roles:
        raise Forbidden("This request needs the role SERVICE.")
    session.require_scope(INGEST_SCOPE)
    return session.user


def _refusal(error: DomainError | PyMongoError) -> Response:
    answer = error_answer(error, 413 if isinstance(error, BodyTooLarge) else None)
    if answer.status_code == HTTPStatus.UNAUTHORIZED:
        answer.headers.update(CHALLENGE)
    return answer

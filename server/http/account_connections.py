"""The route to which social networks send a browser back, after a person has allowed access to an account.

The request is a navigation from a page of the network, so it has the cookie of the session, and no header of ours. It
changes something only with the state of a connection that the same session has begun. The answer sends the browser to
the publishing screen, which shows the account or the code of the failure.
"""

from enum import Enum
from urllib.parse import quote

import structlog
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from jobs.providers.social.oauth.connector import AccountConnector, OtherAccount
from server.auth.authenticators import ViewerSession
from server.auth.credentials import Credential, CredentialKind, session_token
from server.auth.viewers import ViewerSessions
from server.http.openapi import Answer, DescribedRoute, Operation, Parameter, Scheme, Tag
from server.transport.clients import client_of
from storage.errors import CredentialsNotAccepted, DomainError, Forbidden, Unauthenticated, Unavailable
from storage.identity.audit import Actor
from storage.identity.roles import Role, with_included
from storage.mongo import unavailable
from storage.publishing.credentials.connections import ConnectionNotPending, ConnectionOwner

CALLBACK = "/callbacks/accounts"
MAX_PARAMETER_CHARS = 4096

log = structlog.get_logger(__name__)

FINISH = Operation(
    id="finishAccountConnection",
    tag=Tag.PUBLISHING,
    summary="Take the browser back from a social network at which a person has allowed access",
    parameters=[
        Parameter("state", "query", "The state of the connection that the session has begun."),
        Parameter("code", "query", "The code of the network."),
        Parameter("error", "query", "Why the network has given no code."),
    ],
    answers={303: Answer("The publishing screen, which shows the account or the code of the failure.")},
    security={Scheme.SESSION: ()},
)


class ConnectionFailure(Enum):
    """Why an account was not connected, as the publishing screen shows it."""

    SIGNED_OUT = "SIGNED_OUT"
    """Nobody is signed in in this browser."""

    EXPIRED = "EXPIRED"
    """The state was used before, is unknown, or came too late."""

    OTHER_SESSION = "OTHER_SESSION"
    """Another session or another person began the connection."""

    FORBIDDEN = "FORBIDDEN"
    REFUSED = "REFUSED"
    """The person or the network has not allowed access."""

    NOT_ACCEPTED = "NOT_ACCEPTED"
    """The network did not accept the code, or not the token that it gave for it."""

    OTHER_ACCOUNT = "OTHER_ACCOUNT"
    """Access was allowed to another account than the one to connect again."""

    CONFLICT = "CONFLICT"
    """The account was disconnected or changed meanwhile."""

    UNAVAILABLE = "UNAVAILABLE"
    FAILED = "FAILED"


class _NotAllowed(Exception):
    """The network says that access was not allowed."""


def account_connection_route(connector: AccountConnector, viewers: ViewerSessions) -> DescribedRoute:
    """Returns the route."""

    async def finish(request: Request) -> Response:
        try:
            account_id = await _finish(request, connector, viewers)
        except Exception as error:
            return _redirect("accountConnectionFailure", _failure(error).value)
        return _redirect("connectedAccount", account_id)

    return DescribedRoute(CALLBACK, finish, {"GET": FINISH})


async def _finish(request: Request, connector: AccountConnector, viewers: ViewerSessions) -> str:
    session = await _session(request, viewers)
    if session is None or session.id is None:
        raise Unauthenticated
    if Role.OPERATOR not in with_included(session.roles):
        raise Forbidden("This needs the role OPERATOR.")
    owner, answer = ConnectionOwner(session.user_key, session.id), request.query_params
    state, code = answer.get("state", ""), answer.get("code", "")
    if not code or len(code) > MAX_PARAMETER_CHARS:
        await connector.refuse(owner, state)
        raise _NotAllowed(answer.get("error", "no code")[:100])
    client = client_of(request)
    actor = Actor(*session.user_key, client.address, client.user_agent)
    return (await connector.finish(owner, actor, state, code)).id


async def _session(request: Request, viewers: ViewerSessions) -> ViewerSession | None:
    token = session_token(request.headers)
    return None if token is None else await viewers.session(Credential(CredentialKind.SESSION, token))


def _failure(error: Exception) -> ConnectionFailure:
    """Returns the code of a failure, and logs its reason, which holds no secrets."""
    failure = _code(error)
    if failure is ConnectionFailure.FAILED:
        log.error("account_connection_failed", exc_info=error)
    else:
        log.info("account_connection_refused", failure=failure.value, reason=str(error))
    return failure


def _code(error: Exception) -> ConnectionFailure:
    match error:
        case ConnectionNotPending(is_foreign=True):
            return ConnectionFailure.OTHER_SESSION
        case ConnectionNotPending():
            return ConnectionFailure.EXPIRED
        case Unauthenticated():
            return ConnectionFailure.SIGNED_OUT
        case Forbidden():
            return ConnectionFailure.FORBIDDEN
        case _NotAllowed():
            return ConnectionFailure.REFUSED
        case CredentialsNotAccepted():
            return ConnectionFailure.NOT_ACCEPTED
        case OtherAccount():
            return ConnectionFailure.OTHER_ACCOUNT
        case Unavailable():
            return ConnectionFailure.UNAVAILABLE
        case DomainError():
            return ConnectionFailure.CONFLICT
    return ConnectionFailure.FAILED if unavailable(error) is None else ConnectionFailure.UNAVAILABLE


def _redirect(parameter: str, value: str) -> RedirectResponse:
    headers = {"Cache-Control": "no-store", "Referrer-Policy": "no-referrer"}
    return RedirectResponse(f"/?{parameter}={quote(value, safe='')}#/publishing", 303, headers)

"""Sign-in at an identity provider: the way there and back, and its back-channel logout (docs/sign-in.md)."""

from urllib.parse import parse_qsl

import structlog
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from resolvers.context import Client
from server.auth.credentials import SessionEnded, session_token
from server.auth.oidc.client import OidcClient, ProvenPerson
from server.auth.oidc.failures import SignInFailed, SignInFailure
from server.auth.oidc.pending import PENDING_COOKIE, PENDING_S, PendingSignIns
from server.auth.tokens import TokenInvalid
from server.http.browser_routes import client_of, json_answer, limited_body
from server.http.sessions import with_session_cookie
from storage.errors import BadUserInput, Conflict, Unavailable
from storage.identity.access_changes import UserKey
from storage.identity.audit import Actor
from storage.identity.roles import Role
from storage.identity.session_records import NewSession, SignInMethod
from storage.mongo import unavailable
from storage.stores import Stores

SIGN_IN = "/sign-in/oidc"
CALLBACK = "/sign-in/oidc/callback"
BACK_CHANNEL_LOGOUT = "/sign-in/oidc/logout"

log = structlog.get_logger(__name__)


def oidc_routes(stores: Stores, client: OidcClient, pending_sign_ins: PendingSignIns) -> list[Route]:
    """Returns the three routes."""
    handlers = _OidcHandlers(stores, client, pending_sign_ins)
    return [
        Route(SIGN_IN, handlers.begin),
        Route(CALLBACK, handlers.finish),
        Route(BACK_CHANNEL_LOGOUT, handlers.log_out, methods=["POST"]),
    ]


class _OidcHandlers:
    """Serves the routes. A failed sign-in shows the sign-in screen with the code of the failure."""

    def __init__(self, stores: Stores, client: OidcClient, pending_sign_ins: PendingSignIns) -> None:
        self._stores = stores
        self._client = client
        self._pending_sign_ins = pending_sign_ins

    async def begin(self, request: Request) -> Response:
        """Sends the browser to the provider."""
        pending, cookie = self._pending_sign_ins.begin(request.query_params.get("next"))
        try:
            response = _redirect(await self._client.authorization_url(pending))
        except Exception as error:
            return _failed(error)
        response.set_cookie(
            PENDING_COOKIE, cookie, max_age=PENDING_S, path="/", secure=True, httponly=True, samesite="lax"
        )
        return response

    async def finish(self, request: Request) -> Response:
        """Signs in the person with whom the provider sends the browser back."""
        try:
            pending = self._pending_sign_ins.open(request.cookies.get(PENDING_COOKIE))
            proven = await self._client.finish(pending, request.query_params)
            token = await self._begin_session(proven, client_of(request))
            await self._end_replaced_session(request)
        except Exception as error:
            return _failed(error)
        return _without_pending(with_session_cookie(_redirect(pending.next), token))

    async def log_out(self, request: Request) -> Response:
        """Ends sessions at the request of the provider (OpenID Connect Back-Channel Logout 1.0)."""
        try:
            form = dict(parse_qsl((await limited_body(request)).decode("latin-1"), max_num_fields=10))
            logout = await self._client.tokens.logout(form.get("logout_token"))
            await self._stores.sessions.log_out(logout.issuer, logout.id, logout.sub, logout.sid)
        except (TokenInvalid, BadUserInput, Conflict, ValueError) as error:
            log.warning("oidc_logout_refused", reason=str(error))
            return json_answer({"error": "invalid_request", "error_description": str(error)}, 400)
        except Exception as error:
            if unavailable(error) is None and not isinstance(error, Unavailable):
                raise
            return json_answer({"error": "temporarily_unavailable"}, 503, {"Retry-After": "1"})
        return json_answer({})

    async def _begin_session(self, proven: ProvenPerson, client: Client) -> str:
        """Creates or updates the user, and returns the token of a new session. Raises: SignInFailed."""
        person, stores = proven.person, self._stores
        roles = person.roles or frozenset({Role.MEMBER})
        by_name = sorted(roles, key=lambda role: role.value)
        user = await stores.users.sign_in(
            person.organization_id, person.user_id, by_name, person.name, person.handle, person.email
        )
        if user.is_deactivated:
            raise SignInFailed(SignInFailure.DEACTIVATED, "the account is deactivated")
        key = UserKey(person.organization_id, person.user_id)
        if person.roles is not None:
            await stores.login_grants.grant(Actor(*key, client.address, client.user_agent), person.roles)
        new = NewSession(key, SignInMethod.OIDC, client.address, client.user_agent, roles, proven.provider)
        return await stores.sessions.begin(new)

    async def _end_replaced_session(self, request: Request) -> None:
        """Ends the session of which this browser loses the cookie."""
        try:
            replaced = session_token(request.headers)
        except SessionEnded:
            return
        if replaced is not None:
            await self._stores.sessions.end_token(replaced)


def _failed(error: Exception) -> Response:
    """Shows the sign-in screen with the code of the failure. Logs the reason."""
    failure = SignInFailure.INVALID
    if isinstance(error, SignInFailed):
        failure = error.failure
        log.info("sign_in_refused", failure=failure.value, reason=str(error))
    elif isinstance(error, Unavailable) or unavailable(error) is not None:
        failure = SignInFailure.UNAVAILABLE
        log.warning("sign_in_unavailable", error=str(error))
    elif isinstance(error, TokenInvalid):
        log.info("sign_in_refused", failure=failure.value, reason=str(error))
    else:
        log.error("sign_in_failed", exc_info=error)
    return _without_pending(_redirect(f"/?signInFailure={failure.value}"))


def _redirect(address: str) -> RedirectResponse:
    headers = {"Cache-Control": "no-store", "Referrer-Policy": "no-referrer"}
    return RedirectResponse(address, 303, headers)


def _without_pending(response: Response) -> Response:
    response.delete_cookie(PENDING_COOKIE, path="/", secure=True, httponly=True, samesite="lax")
    return response

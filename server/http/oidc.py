"""Routes of sign-in at an identity provider: redirect, callback and back-channel logout (docs/sign-in.md)."""

from urllib.parse import parse_qsl

import structlog
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from server.auth.credentials import RequestCredentials
from server.auth.oidc.client import OidcClient, ProviderSignIn
from server.auth.oidc.failures import SignInFailed, SignInFailure
from server.auth.oidc.pending import PENDING_COOKIE, PENDING_S, PendingSignIns
from server.auth.tokens import TokenInvalid
from server.http.accounts import inputs
from server.http.browser_routes import MAX_BODY_BYTES, browser_route, json_body
from server.http.cookies import with_cookie, without_cookie
from server.http.json_answers import error_answer, json_answer
from server.http.openapi import (
    Answer,
    AnswerModel,
    Body,
    DescribedRoute,
    EmptyAnswer,
    Operation,
    Parameter,
    Tag,
    parsed,
)
from server.http.sessions import token_of, with_session_cookie
from server.transport.bodies import read_body
from server.transport.clients import client_of
from storage.errors import AccountDeactivated, BadUserInput, Conflict, Forbidden, Unavailable
from storage.identity.accounts.tokens import LinkInvalid
from storage.identity.roles import Role
from storage.identity.session_records import NewSession, SignedIn, SignInMethod
from storage.ids import UserKey
from storage.mongo import unavailable
from storage.stores import Stores

SIGN_IN = "/sign-in/oidc"
SIGN_IN_OF_INVITED = "/sign-in/oidc/invitation"
CALLBACK = "/sign-in/oidc/callback"
BACK_CHANNEL_LOGOUT = "/sign-in/oidc/logout"

log = structlog.get_logger(__name__)


class ProviderAddress(AnswerModel):
    """The address at the identity provider, which the browser opens."""

    url: str


BEGIN = Operation(
    id="beginProviderSignIn",
    tag=Tag.SIGN_IN,
    summary="Send the browser to the identity provider",
    parameters=[Parameter("next", "query", "Path of this server that is opened after the sign-in.")],
    answers={303: Answer("The provider, or the sign-in screen with `?signInFailure=`.")},
)
BEGIN_INVITED = Operation(
    id="beginInvitedSignIn",
    tag=Tag.SIGN_IN,
    summary="Begin the sign-in of an invited person at the identity provider",
    body=Body([inputs.InvitationLink]),
    answers={200: Answer("The address at the provider.", ProviderAddress)},
)
FINISH = Operation(
    id="finishProviderSignIn",
    tag=Tag.SIGN_IN,
    summary="Take the browser back from the identity provider",
    description="The provider adds the parameters of OpenID Connect, such as `state` and `code`.",
    answers={303: Answer("The page that was asked for, or the sign-in screen with `?signInFailure=`.")},
)
LOG_OUT = Operation(
    id="backChannelLogout",
    tag=Tag.SIGN_IN,
    summary="End sessions at the request of the identity provider (OpenID Connect Back-Channel Logout 1.0)",
    description="Errors also have `error` and `error_description`, as OAuth 2.0 names them.",
    body=Body(media_type="application/x-www-form-urlencoded", description="The field `logout_token`."),
    answers={200: Answer("The sessions have ended.", EmptyAnswer)},
    errors=(400, 503),
)


def oidc_routes(
    stores: Stores, client: OidcClient, pending_sign_ins: PendingSignIns, credentials: RequestCredentials
) -> list[DescribedRoute]:
    """Returns the routes."""
    handlers = _OidcHandlers(stores, client, pending_sign_ins)
    return [
        DescribedRoute(SIGN_IN, handlers.begin, {"GET": BEGIN}),
        browser_route(SIGN_IN_OF_INVITED, BEGIN_INVITED, credentials, handlers.begin_invited),
        DescribedRoute(CALLBACK, handlers.finish, {"GET": FINISH}),
        DescribedRoute(BACK_CHANNEL_LOGOUT, handlers.log_out, {"POST": LOG_OUT}),
    ]


class _OidcHandlers:
    """Serves the routes. After a failed sign-in, the sign-in screen shows the code of the failure."""

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
        return _with_pending(response, cookie)

    async def begin_invited(self, request: Request) -> Response:
        """Gives the browser of an invited person the address at the provider.

        The invitation is in the body, since addresses are logged and kept in histories.
        """
        invitation = parsed(inputs.InvitationLink, await json_body(request)).invitation
        pending, cookie = self._pending_sign_ins.begin("/", invitation)
        address = ProviderAddress(url=await self._client.authorization_url(pending))
        return _with_pending(json_answer(address), cookie)

    async def finish(self, request: Request) -> Response:
        """Verifies the provider's answer, and begins a session of the person."""
        try:
            pending = self._pending_sign_ins.open(request.cookies.get(PENDING_COOKIE))
            sign_in = await self._client.finish(pending, request.query_params)
            signed_in = await self._sign_in(sign_in, pending.invitation, request)
            response = with_session_cookie(_redirect(pending.next), signed_in.token)
        except Exception as error:
            return _failed(error)
        return _without_pending(response)

    async def log_out(self, request: Request) -> Response:
        """Ends sessions at the request of the provider (OpenID Connect Back-Channel Logout 1.0)."""
        try:
            form = dict(parse_qsl((await read_body(request, MAX_BODY_BYTES)).decode("latin-1"), max_num_fields=10))
            logout = await self._client.tokens.logout(form.get("logout_token"))
            await self._stores.sessions.log_out(logout.issuer, logout.id, logout.sub, logout.sid)
        except (TokenInvalid, BadUserInput, Conflict, ValueError) as error:
            log.warning("oidc_logout_refused", reason=str(error))
            refused = BadUserInput("logout_token", "a valid logout token", str(error))
            return error_answer(refused, error="invalid_request", error_description=str(error))
        except Exception as error:
            return error_answer(error, error="temporarily_unavailable")
        return json_answer(EmptyAnswer())

    async def _sign_in(self, sign_in: ProviderSignIn, invitation: str | None, request: Request) -> SignedIn:
        """Stores what the provider says, and begins a session. Raises: SignInFailed."""
        person, stores, client = sign_in.person, self._stores, client_of(request)
        user, roles = UserKey(person.organization_id, person.user_id), person.roles or frozenset({Role.MEMBER})
        if await stores.local_accounts.of_user(*user) is not None:
            raise SignInFailed(SignInFailure.LOCAL_ACCOUNT, "the id belongs to a local account")
        browser = (client.address, client.user_agent)
        new = NewSession(user, SignInMethod.OIDC, *browser, roles, sign_in.session, token_of(request))
        try:
            return await stores.provider_logins.sign_in(person, new, invitation)
        except AccountDeactivated:
            raise SignInFailed(SignInFailure.DEACTIVATED, "the account is deactivated") from None
        except (LinkInvalid, Conflict, Forbidden) as error:
            raise SignInFailed(SignInFailure.INVITATION, error.message) from None


def _failed(error: Exception) -> Response:
    """Redirects to the sign-in screen with the code of the failure. Logs the reason."""
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


def _with_pending(response: Response, cookie: str) -> Response:
    return with_cookie(response, PENDING_COOKIE, cookie, PENDING_S, "lax")


def _without_pending(response: Response) -> Response:
    return without_cookie(response, PENDING_COOKIE, "lax")

"""The cookie of a session, and the route that ends the session: POST /sign-out."""

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from server.auth.credentials import SESSION_COOKIE, RequestCredentials, SessionEnded, session_token
from server.auth.oidc.client import OidcClient
from server.http.browser_routes import browser_route, json_answer
from storage.errors import Unavailable
from storage.identity.session_records import UserSession
from storage.stores import Stores

COOKIE_MAX_AGE_S = 400 * 86_400
"""The longest time that browsers keep a cookie. The server ends the session earlier."""


def with_session_cookie(response: Response, token: str) -> Response:
    """Adds the cookie of a session that has begun."""
    response.set_cookie(
        SESSION_COOKIE, token, max_age=COOKIE_MAX_AGE_S, path="/", secure=True, httponly=True, samesite="lax"
    )
    return response


def without_session_cookie(response: Response) -> Response:
    """Has the browser remove the cookie."""
    response.delete_cookie(SESSION_COOKIE, path="/", secure=True, httponly=True, samesite="lax")
    return response


def session_routes(
    stores: Stores, credentials: RequestCredentials, oidc: OidcClient | None, base_url: str
) -> list[Route]:
    """Returns the route of the sign-out. Its answer has the address that signs the person out at the provider too."""

    async def provider_url(ended: UserSession | None) -> str | None:
        if oidc is None or ended is None or ended.provider is None:
            return None
        try:
            return await oidc.sign_out_url(f"{base_url}/")
        except Unavailable:
            return None

    async def sign_out(request: Request) -> Response:
        try:
            token = session_token(request.headers)
        except SessionEnded:
            token = None
        ended = None if token is None else await stores.sessions.end_token(token)
        return without_session_cookie(json_answer({"signOutUrl": await provider_url(ended)}))

    return [browser_route("/sign-out", "POST", credentials, sign_out)]

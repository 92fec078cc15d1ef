"""The cookie of a session, and the route that ends the session: POST /sign-out."""

from starlette.requests import Request
from starlette.responses import Response

from server.auth.credentials import SESSION_COOKIE, RequestCredentials, SessionEnded, session_token
from server.auth.oidc.client import OidcClient
from server.http.browser_routes import browser_route
from server.http.cookies import with_cookie, without_cookie
from server.http.json_answers import json_answer
from server.http.openapi import Answer, AnswerModel, DescribedRoute, Operation, Tag
from storage.errors import Unavailable
from storage.identity.session_records import UserSession
from storage.stores import Stores

COOKIE_MAX_AGE_S = 400 * 86_400
"""The longest time that browsers keep a cookie. The server ends the session earlier."""


class SignedInUser(AnswerModel):
    """The person who has signed in."""

    user_id: str


class SignedOut(AnswerModel):
    """`signOutUrl` is the address that ends the session at the identity provider too; null if there is none."""

    sign_out_url: str | None


SIGNED_IN = Answer(
    "The person is signed in: a session has begun.", SignedInUser, headers={"Set-Cookie": "The cookie of the session."}
)
SIGN_OUT = Operation(
    id="signOut",
    tag=Tag.SIGN_IN,
    summary="End the session of the browser",
    description="Answers alike without a session.",
    answers={200: Answer("The session has ended.", SignedOut)},
)


def with_session_cookie(response: Response, token: str) -> Response:
    """Adds the cookie of a session that has begun."""
    return with_cookie(response, SESSION_COOKIE, token, COOKIE_MAX_AGE_S, "lax")


def without_session_cookie(response: Response) -> Response:
    """Makes the browser remove the cookie."""
    return without_cookie(response, SESSION_COOKIE, "lax")


def session_routes(
    stores: Stores, credentials: RequestCredentials, oidc: OidcClient | None, base_url: str
) -> list[DescribedRoute]:
    """Returns the route of the sign-out. Its answer has the address at which people also sign out at the provider."""

    async def provider_url(ended: UserSession | None) -> str | None:
        if oidc is None or ended is None or ended.provider is None:
            return None
        try:
            return await oidc.sign_out_url(f"{base_url}/")
        except Unavailable:
            return None

    async def sign_out(request: Request) -> Response:
        token = token_of(request)
        ended = None if token is None else await stores.sessions.end_token(token)
        return without_session_cookie(json_answer(SignedOut(sign_out_url=await provider_url(ended))))

    return [browser_route("/sign-out", SIGN_OUT, credentials, sign_out)]


def token_of(request: Request) -> str | None:
    """Returns the token of the session's cookie; None if there is none, or if it can't be a token.

    A sign-in ends this session, so that nobody can go on with the cookie that the browser had before.
    """
    try:
        return session_token(request.headers)
    except SessionEnded:
        return None

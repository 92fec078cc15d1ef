"""Runs the part of a person in the authorization of a network's twin."""

from urllib.parse import parse_qsl, urlsplit

from jobs.providers.social.oauth.authorization import Authorization, OAuthApp, OAuthNetwork
from tests.twins.oauth import AuthorizationTwin

REDIRECT_URI = "https://noroshi.example/callbacks/accounts"
STATE = "s" * 43
VERIFIER = "v" * 43


def answer_of(address: str) -> dict[str, str]:
    """Returns the parameters with which a network sends the browser back."""
    return dict(parse_qsl(urlsplit(address).query))


def authorization_of(app: OAuthApp) -> Authorization:
    return Authorization(app, REDIRECT_URI, STATE, VERIFIER)


async def allowed(
    oauth: OAuthNetwork, twin: AuthorizationTwin, base_url: str | None = None
) -> tuple[Authorization, str]:
    """Lets a person allow access. Returns the authorization and its code."""
    authorization = authorization_of(await oauth.app(base_url, REDIRECT_URI))
    answer = answer_of(twin.allow(oauth.authorization_url(base_url, authorization)))
    assert answer["state"] == STATE
    return authorization, answer["code"]

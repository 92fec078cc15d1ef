"""OAuth of X: access tokens last 2 hours. A refresh token is used once, and its answer has the next one.

Source: docs.x.com, OAuth 2.0 Authorization Code Flow with PKCE, and its page User Access Token. The refusal of a used
refresh token is quoted in github.com/plhery/node-twitter-api-v2/issues/496 for codes, with the text "Value passed for
the token was invalid."
"""

from base64 import b64encode

from jobs.providers.social.http import HttpClient, NetworkResponse
from jobs.providers.social.oauth.authorization import (
    Authorization,
    Grant,
    OAuthApp,
    pkce_address,
    positive_seconds,
    require_grant,
    require_scopes,
)
from storage.publishing.credentials.lifetimes import CredentialLifetime
from storage.publishing.networks import BEHAVIOURS, Network

AUTHORIZE = "https://x.com/i/oauth2/authorize"
SCOPES = ("tweet.read", "tweet.write", "users.read", "media.write", "offline.access")


class XOAuth:
    """OAuth of X with the operator's app. Confidential apps authenticate by Basic, public ones by their id."""

    def __init__(self, http: HttpClient, app: OAuthApp, api_address: str | None = None) -> None:
        """`api_address` replaces the address of X's API."""
        self._http = http
        self._app = app
        self.api_address = api_address

    async def app(self, base_url: str | None, redirect_uri: str) -> OAuthApp:
        """Returns the operator's app."""
        return self._app

    def authorization_url(self, base_url: str | None, authorization: Authorization) -> str:
        """Returns the address of X's dialog."""
        return pkce_address(AUTHORIZE, authorization, SCOPES)

    async def exchange(self, base_url: str | None, authorization: Authorization, code: str) -> Grant:
        """Exchanges the code, within the 30 seconds that X documents."""
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": authorization.redirect_uri,
            "code_verifier": authorization.verifier,
        }
        token = await self._token(authorization.app, form)
        require_scopes(token["scope"], SCOPES)
        return _grant(token, None)

    async def renew(self, base_url: str | None, secret: str, refresh_token: str | None) -> Grant:
        """Returns the next access token and the next refresh token."""
        if refresh_token is None:
            raise ValueError("there is no refresh token")
        form = {"grant_type": "refresh_token", "refresh_token": refresh_token}
        return _grant(await self._token(self._app, form), refresh_token)

    async def _token(self, app: OAuthApp, form: dict[str, str]) -> NetworkResponse:
        url = f"{self.api_address or BEHAVIOURS[Network.X].own_address}/2/oauth2/token"
        if app.client_secret is None:
            response = await self._http.send("POST", url, data=form | {"client_id": app.client_id})
        else:
            pair = b64encode(f"{app.client_id}:{app.client_secret}".encode()).decode()
            response = await self._http.send("POST", url, data=form, headers={"Authorization": f"Basic {pair}"})
        return require_grant(response)


def _grant(token: NetworkResponse, refresh_token: str | None) -> Grant:
    """Returns the grant of an answer, which may leave out the refresh token if it stays the same (RFC 6749, 6)."""
    newer = refresh_token if token["refresh_token"] is None else token.text("refresh_token")
    lifetime = CredentialLifetime(positive_seconds(token, "expires_in"), newer, is_renewable=newer is not None)
    return Grant(token.text("access_token"), lifetime)

"""OAuth of Mastodon: an app is registered at the account's server for each connection. Its tokens do not end.

Source: docs.joinmastodon.org, methods/apps#create, methods/oauth, api/oauth-scopes, and spec/oauth (PKCE since 4.3;
earlier servers ignore its parameters).
"""

from jobs.providers.social.http import HttpClient
from jobs.providers.social.oauth.authorization import (
    Authorization,
    Grant,
    OAuthApp,
    pkce_address,
    require_grant,
    require_scopes,
)
from storage.publishing.credentials.lifetimes import UNKNOWN_LIFETIME

CLIENT_NAME = "Noroshi"
SCOPES = ("read:accounts", "write:statuses", "write:media")
"""`read:accounts` verifies the token, as `profile` does on servers from 4.3 on only."""


class MastodonOAuth:
    """OAuth of the Mastodon server at an account's `base_url`."""

    api_address: str | None = None

    def __init__(self, http: HttpClient) -> None:
        self._http = http

    async def app(self, base_url: str | None, redirect_uri: str) -> OAuthApp:
        """Registers an app at the server."""
        form = {"client_name": CLIENT_NAME, "redirect_uris": redirect_uri, "scopes": " ".join(SCOPES)}
        app = require_grant(await self._http.send("POST", f"{base_url}/api/v1/apps", data=form))
        return OAuthApp(app.text("client_id"), app.text("client_secret"))

    def authorization_url(self, base_url: str | None, authorization: Authorization) -> str:
        """Returns the address of the server's form. The person may choose another account there."""
        return pkce_address(f"{base_url}/oauth/authorize", authorization, SCOPES)

    async def exchange(self, base_url: str | None, authorization: Authorization, code: str) -> Grant:
        """Exchanges the code for a token without an end."""
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "client_id": authorization.app.client_id,
            "client_secret": authorization.app.client_secret or "",
            "redirect_uri": authorization.redirect_uri,
            "code_verifier": authorization.verifier,
        }
        token = require_grant(await self._http.send("POST", f"{base_url}/oauth/token", data=form))
        require_scopes(token["scope"], SCOPES)
        return Grant(token.text("access_token"), UNKNOWN_LIFETIME)

"""OAuth of Instagram: a code becomes a token of an hour, which becomes one of 60 days. That token renews itself.

Instagram documents no PKCE; the app has a secret. A renewal may be repeated: the present token stays valid.
Source: developers.facebook.com, Instagram Platform, Business Login for Instagram, and the references access_token and
refresh_access_token (a token of at least 24 hours that has not expired).
"""

from typing import Any

from jobs.providers.social.http import HttpClient, NetworkResponse, bearer
from jobs.providers.social.instagram import RATE_LIMITED, owner_of
from jobs.providers.social.network import OutcomeUncertain, PublishingRefused, RetryableFailure
from jobs.providers.social.oauth.authorization import (
    Authorization,
    Grant,
    OAuthApp,
    positive_seconds,
    require_grant,
    require_scopes,
    with_parameters,
)
from storage.publishing.credentials.lifetimes import CredentialLifetime
from storage.publishing.networks import BEHAVIOURS, Network

AUTHORIZE = "https://www.instagram.com/oauth/authorize"
CODES = "https://api.instagram.com"
SCOPES = ("instagram_business_basic", "instagram_business_content_publish")


class InstagramOAuth:
    """The API with Instagram Login, with the operator's app. The credentials have the form user-id:token."""

    def __init__(
        self, http: HttpClient, app: OAuthApp | None, api_address: str | None = None, code_address: str = CODES
    ) -> None:
        """`api_address` replaces the address of the API, and `code_address` that of the exchange of codes.

        Without an app, tokens can be renewed, but accounts cannot be connected.
        """
        self._http = http
        self._app = app
        self.api_address = api_address
        self._code_address = code_address

    async def app(self, base_url: str | None, redirect_uri: str) -> OAuthApp:
        """Returns the operator's app."""
        assert self._app is not None
        return self._app

    def authorization_url(self, base_url: str | None, authorization: Authorization) -> str:
        """Returns the address of Instagram's window."""
        return with_parameters(
            AUTHORIZE,
            {
                "client_id": authorization.app.client_id,
                "redirect_uri": authorization.redirect_uri,
                "response_type": "code",
                "scope": ",".join(SCOPES),
                "state": authorization.state,
            },
        )

    async def exchange(self, base_url: str | None, authorization: Authorization, code: str) -> Grant:
        """Exchanges the code for a token of 60 days, and asks whose it is."""
        app = authorization.app
        form = {
            "client_id": app.client_id,
            "client_secret": app.client_secret or "",
            "grant_type": "authorization_code",
            "redirect_uri": authorization.redirect_uri,
            "code": code,
        }
        response = require_grant(await self._http.send("POST", f"{self._code_address}/oauth/access_token", data=form))
        short = _short_lived(response)
        require_scopes(short.get("permissions"), SCOPES)
        query = {"grant_type": "ig_exchange_token", "client_secret": app.client_secret or ""}
        long = await self._read("access_token", query | {"access_token": str(short["access_token"])})
        token = long.text("access_token")
        me = await self._read("me", {"fields": "user_id,username"}, bearer(token))
        return _grant(str(owner_of(me)["user_id"]), long)

    async def renew(self, base_url: str | None, secret: str, refresh_token: str | None) -> Grant:
        """Returns the same account's token for the next 60 days. A token goes to the address for which it was given."""
        user, _, token = secret.partition(":")
        query = {"grant_type": "ig_refresh_token", "access_token": token}
        return _grant(user, await self._read("refresh_access_token", query, base_url=base_url))

    async def _read(
        self, path: str, query: dict[str, str], headers: dict[str, str] | None = None, base_url: str | None = None
    ) -> NetworkResponse:
        address = base_url or self.api_address or BEHAVIOURS[Network.INSTAGRAM].own_address
        try:
            response = await self._http.send("GET", f"{address}/{path}", params=query, headers=headers)
            error = response["error"]
            if isinstance(error, dict) and error.get("code") in RATE_LIMITED:
                raise RetryableFailure(response.reason)
            return require_grant(response)
        except OutcomeUncertain as failure:
            # A repeated request returns a valid token again.
            raise RetryableFailure(str(failure)) from None


def _short_lived(response: NetworkResponse) -> dict[str, Any]:
    """Returns the token of an hour. The documentation shows a list of one token, and answers also have no list.

    Raises: ValueError.
    """
    data = response["data"]
    token = data[0] if isinstance(data, list) and data else response.json
    if not isinstance(token, dict) or not isinstance(token.get("access_token"), str):
        raise ValueError("no access_token in the answer")
    return token


def _grant(user: str, token: NetworkResponse) -> Grant:
    lifetime = CredentialLifetime(positive_seconds(token, "expires_in"), is_renewable=True)
    if ":" in user or not user:
        raise PublishingRefused("REFUSED", "The network names no user.")
    return Grant(f"{user}:{token.text('access_token')}", lifetime)

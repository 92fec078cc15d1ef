"""The common parts of the networks' OAuth: an app, an authorization, and the credentials that a network grants."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol
from urllib.parse import quote, urlencode

from jobs.providers.social.http import NetworkResponse, require_success
from jobs.providers.social.network import OutcomeUncertain, PublishingRefused, RetryableFailure
from storage.publishing.credentials.lifetimes import CredentialLifetime
from storage.secrets import pkce

APP_REFUSED = frozenset({"invalid_client", "unauthorized_client"})
"""Errors of RFC 6749, 5.2, that are about the app and not about the person's grant."""

APP_PAUSE_S = 600.0
"""How long a renewal waits after the network has refused the app, since only the operator can change that."""


@dataclass(frozen=True, slots=True)
class OAuthApp:
    """The app by which a network knows this product. Without a secret, it is a public client."""

    client_id: str
    client_secret: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Authorization:
    """A person's authorization, for which the network returns a code."""

    app: OAuthApp
    redirect_uri: str
    state: str
    verifier: str = field(repr=False)
    """The secret of PKCE."""


@dataclass(frozen=True, slots=True)
class Grant:
    """Credentials that a network has granted, in the form of the account's credentials."""

    secret: str = field(repr=False)
    lifetime: CredentialLifetime


class OAuthNetwork(Protocol):
    """OAuth of one network. Methods raise PublishingRefused, RetryableFailure, OutcomeUncertain and ValueError."""

    api_address: str | None
    """The address of the network's API that accounts use; None: the network's own, or that of the account's server."""

    async def app(self, base_url: str | None, redirect_uri: str) -> OAuthApp:
        """Returns the app at this server. Registers one where the network allows it."""
        ...

    def authorization_url(self, base_url: str | None, authorization: Authorization) -> str:
        """Returns the address at which the person allows access."""
        ...

    async def exchange(self, base_url: str | None, authorization: Authorization, code: str) -> Grant:
        """Exchanges the code, which is valid once."""
        ...


class CredentialRenewer(Protocol):
    """Renews credentials of one network."""

    async def renew(self, base_url: str | None, secret: str, refresh_token: str | None) -> Grant:
        """Returns new credentials. `base_url` is the account's, if it has one.

        Raises: RetryableFailure if nothing was renewed; OutcomeUncertain if that is not known; PublishingRefused if
        the network renews these credentials no more; ValueError for an answer of another form.
        """
        ...


def with_parameters(address: str, parameters: Mapping[str, str]) -> str:
    """Returns the address with a query. Spaces become %20, which every network reads."""
    return f"{address}?{urlencode(parameters, quote_via=quote)}"


def pkce_address(address: str, authorization: Authorization, scopes: Iterable[str]) -> str:
    """Returns the address at which a person allows access, with a challenge of PKCE."""
    parameters = {
        "response_type": "code",
        "client_id": authorization.app.client_id,
        "redirect_uri": authorization.redirect_uri,
        "scope": " ".join(scopes),
        "state": authorization.state,
        "code_challenge": pkce.challenge(authorization.verifier),
        "code_challenge_method": "S256",
    }
    return with_parameters(address, parameters)


def require_grant(response: NetworkResponse) -> NetworkResponse:
    """Returns the response of a token endpoint when its status is 2xx. Its errors have the form of RFC 6749, 5.2.

    Raises: RetryableFailure if the network is too busy or refuses the app; PublishingRefused with the network's reason
    for other refusals; OutcomeUncertain otherwise.
    """
    error = response["error"]  # Instagram answers with an object.
    if not response.is_success and isinstance(error, str) and error in APP_REFUSED:
        raise RetryableFailure(f"The network refuses the app: {reason_of(response)}", APP_PAUSE_S)
    try:
        return require_success(response)
    except PublishingRefused as refusal:
        raise PublishingRefused(refusal.code, reason_of(response)) from None
    except OutcomeUncertain:
        raise OutcomeUncertain(reason_of(response)) from None


def reason_of(response: NetworkResponse) -> str:
    """Returns the network's explanation of an error on one line."""
    for name in ("error_description", "error_message"):
        text = response[name]
        if isinstance(text, str) and text:
            return " ".join(text.split())
    return response.reason


def require_scopes(granted: object, needed: Iterable[str]) -> None:
    """Checks the scopes that the network says it has granted; people can deselect some. Other forms are accepted.

    Raises: PublishingRefused.
    """
    names = granted.replace(",", " ").split() if isinstance(granted, str) else granted
    if not isinstance(names, list) or not names:
        return
    if missing := [each for each in needed if each not in names]:
        raise PublishingRefused("REFUSED", f"The permissions {', '.join(missing)} were not granted.")


def positive_seconds(response: NetworkResponse, name: str) -> float:
    """Returns a required number of seconds. Raises: ValueError."""
    seconds = float(response.text(name))
    if not 0 < seconds < 10**10:
        raise ValueError(f"{name} is {seconds}")
    return seconds

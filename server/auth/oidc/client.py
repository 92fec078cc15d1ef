"""The product as a client of an identity provider: the authorization request, the code, and the claims."""

import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote_plus, urlencode, urlsplit

from server.auth.oidc.claims import ClaimMap
from server.auth.oidc.failures import SignInFailed, SignInFailure
from server.auth.oidc.pending import PendingSignIn
from server.auth.oidc.provider import IdentityProvider, ProviderMetadata, ProviderRefused, request_json
from server.auth.oidc.signed_tokens import ProviderTokenVerifier
from storage.identity.provider_logins import PersonClaims
from storage.identity.session_records import ProviderSession


@dataclass(frozen=True, slots=True)
class ClientRegistration:
    """The product's registration at the provider. Without a secret, the product is a public client."""

    client_id: str
    client_secret: str | None
    scopes: tuple[str, ...]
    redirect_uri: str


@dataclass(frozen=True, slots=True)
class ProviderSignIn:
    """A verified sign-in at the provider: the person, and the session there."""

    person: PersonClaims
    session: ProviderSession


class OidcClient:
    """Begins sign-ins at the provider, and verifies the provider's answers."""

    def __init__(self, provider: IdentityProvider, registration: ClientRegistration, claim_map: ClaimMap) -> None:
        self.provider = provider
        self._registration = registration
        self._claim_map = claim_map
        self.tokens = ProviderTokenVerifier(provider, registration.client_id)

    async def authorization_url(self, pending: PendingSignIn) -> str:
        """Returns the address at the provider that begins a sign-in. Raises: Unavailable."""
        metadata = await self.provider.metadata()
        parameters = {
            "response_type": "code",
            "client_id": self._registration.client_id,
            "redirect_uri": self._registration.redirect_uri,
            "scope": " ".join(self._registration.scopes),
            "state": pending.state,
            "nonce": pending.nonce,
            "code_challenge": pending.challenge,
            "code_challenge_method": "S256",
        }
        return _with_parameters(metadata.authorization_endpoint, parameters)

    async def finish(self, pending: PendingSignIn, answer: Mapping[str, str]) -> ProviderSignIn:
        """Exchanges the code of the provider's answer, and returns the sign-in. Raises: SignInFailed, Unavailable."""
        metadata = await self.provider.metadata()
        _check_answer(pending, answer, metadata)
        try:
            tokens = await self._exchange(answer["code"], pending, metadata)
            claims = await self.tokens.id_claims(tokens.get("id_token"), pending.nonce)
            user_info = await self._user_info(tokens.get("access_token"), claims["sub"], metadata)
        except ProviderRefused as error:
            raise SignInFailed(SignInFailure.INVALID, str(error)) from None
        sid = claims.get("sid")
        session = ProviderSession(metadata.issuer, claims["sub"], sid if isinstance(sid, str) else None)
        return ProviderSignIn(self._claim_map.person({**user_info, **claims}), session)

    async def sign_out_url(self, back_to: str) -> str | None:
        """Returns the provider's address that ends the session there, or None if it has none. Raises: Unavailable."""
        endpoint = (await self.provider.metadata()).end_session_endpoint
        if endpoint is None:
            return None
        parameters = {"client_id": self._registration.client_id, "post_logout_redirect_uri": back_to}
        return _with_parameters(endpoint, parameters)

    async def _exchange(self, code: str, pending: PendingSignIn, metadata: ProviderMetadata) -> dict[str, Any]:
        registration = self._registration
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": registration.redirect_uri,
            "code_verifier": pending.verifier,
        }
        if registration.client_secret is None:
            return await request_json(
                "POST", metadata.token_endpoint, data=form | {"client_id": registration.client_id}
            )
        if metadata.takes_basic_authentication:
            # RFC 6749, 2.3.1: both are encoded as in a form before they are joined.
            credentials = quote_plus(registration.client_id), quote_plus(registration.client_secret)
            return await request_json("POST", metadata.token_endpoint, data=form, auth=credentials)
        secrets = {"client_id": registration.client_id, "client_secret": registration.client_secret}
        return await request_json("POST", metadata.token_endpoint, data=form | secrets)

    async def _user_info(self, access_token: object, sub: str, metadata: ProviderMetadata) -> dict[str, Any]:
        """Returns the claims of the userinfo endpoint, which the ID token may lack.

        Returns an empty dict if the provider has no such endpoint, or gave no access token.
        """
        if metadata.userinfo_endpoint is None or not isinstance(access_token, str):
            return {}
        headers = {"authorization": f"Bearer {access_token}"}
        user_info = await request_json("GET", metadata.userinfo_endpoint, headers=headers)
        if user_info.get("sub") != sub:
            raise SignInFailed(SignInFailure.INVALID, "userinfo is about another person")
        return user_info


def _check_answer(pending: PendingSignIn, answer: Mapping[str, str], metadata: ProviderMetadata) -> None:
    if not hmac.compare_digest(answer.get("state", "").encode(), pending.state.encode()):
        raise SignInFailed(SignInFailure.EXPIRED, "the state belongs to another sign-in")
    if answer.get("iss", None if metadata.sends_issuer else metadata.issuer) != metadata.issuer:
        raise SignInFailed(SignInFailure.INVALID, "the answer is from another issuer")
    if "code" not in answer:
        raise SignInFailed(SignInFailure.REFUSED, f"the provider answers {answer.get('error', '')[:100]!r}")


def _with_parameters(address: str, parameters: Mapping[str, str]) -> str:
    return f"{address}{'&' if urlsplit(address).query else '?'}{urlencode(parameters)}"

"""Verifies the tokens that an identity provider signs.

An ID token proves a sign-in (OpenID Connect Core 1.0, 3.1.3.7). A logout token asks to end sessions (Back-Channel
Logout 1.0, 2.6).
"""

import time
from dataclasses import dataclass
from typing import Any

import jwt

from server.auth.oidc.failures import SignInFailed, SignInFailure
from server.auth.oidc.provider import IdentityProvider
from server.auth.tokens import TOKEN_MAX_CHARS, TokenInvalid

LEEWAY_S = 60.0
"""How far the provider's clock may differ from the clock of this host."""

LOGOUT_MAX_AGE_S = 600.0
"""The age from which a logout token is refused."""

LOGOUT_EVENT = "http://schemas.openid.net/event/backchannel-logout"
"""The member of the claim `events` by which a logout token is recognized."""

ID_TOKEN_TYPES = frozenset({"jwt"})
LOGOUT_TYPES = ID_TOKEN_TYPES | {"logout+jwt", "application/logout+jwt"}


@dataclass(frozen=True, slots=True)
class LogoutToken:
    """A verified logout token: `id` is its `jti`, `sub` names a person, and `sid` a session at the provider.

    At least one of `sub` and `sid` is not None.
    """

    issuer: str
    id: str
    sub: str | None
    sid: str | None


class ProviderTokenVerifier:
    """Verifies the tokens that a provider signs for one client."""

    def __init__(self, provider: IdentityProvider, client_id: str) -> None:
        self._provider = provider
        self._client_id = client_id

    async def id_claims(self, token: object, nonce: str) -> dict[str, Any]:
        """Returns the claims of an ID token that was issued for the sign-in with this nonce.

        Raises: SignInFailed for an invalid token; Unavailable if the provider's metadata or keys can't be fetched.
        """
        try:
            claims = await self._claims(token, ["exp", "iat", "sub", "aud", "iss"], ID_TOKEN_TYPES)
            if claims.get("nonce") != nonce:
                raise TokenInvalid("its nonce is not that of this sign-in")
            if claims.get("azp", self._client_id) != self._client_id:
                raise TokenInvalid("its authorized party is another client")
        except TokenInvalid as error:
            raise SignInFailed(SignInFailure.INVALID, f"ID token: {error.reason}") from None
        return claims

    async def logout(self, token: object) -> LogoutToken:
        """Verifies a logout token, and returns its content.

        Raises: TokenInvalid; Unavailable if the provider's metadata or keys can't be fetched.
        """
        claims = await self._claims(token, ["iat", "jti", "aud", "iss", "events"], LOGOUT_TYPES)
        sub, sid, id_ = claims.get("sub"), claims.get("sid"), claims["jti"]
        is_logout = isinstance(claims["events"], dict) and isinstance(claims["events"].get(LOGOUT_EVENT), dict)
        if not is_logout or "nonce" in claims:
            raise TokenInvalid("it is no logout token")
        if not isinstance(id_, str) or not isinstance(sub, str | None) or not isinstance(sid, str | None):
            raise TokenInvalid("jti, sub and sid must be strings")
        if sub is None and sid is None:
            raise TokenInvalid("it names neither sub nor sid")
        if int(claims["iat"]) < time.time() - LOGOUT_MAX_AGE_S:
            raise TokenInvalid("it is too old")
        return LogoutToken(claims["iss"], id_, sub, sid)

    async def _claims(self, token: object, required: list[str], types: frozenset[str]) -> dict[str, Any]:
        """Returns the claims of a token after checking its type, signature, issuer, audience and times.

        `required` names the claims that the token must have, `types` the values that its header `typ` may have. A token
        without `typ` has the type "jwt". Raises: TokenInvalid, Unavailable.
        """
        if not isinstance(token, str) or len(token) > TOKEN_MAX_CHARS:
            raise TokenInvalid("it is missing or too long")
        metadata = await self._provider.metadata()
        try:
            header = jwt.get_unverified_header(token)
            if str(header.get("typ", "jwt")).lower() not in types:
                raise TokenInvalid("its type is not accepted")
            key = await metadata.keys.for_header(header)
            return jwt.decode(
                token,
                key,
                algorithms=[key.algorithm_name],
                audience=self._client_id,
                issuer=metadata.issuer,
                leeway=LEEWAY_S,
                options={"require": required, "enforce_minimum_key_length": True},
            )
        except (jwt.PyJWTError, ValueError, TypeError) as error:
            raise TokenInvalid(type(error).__name__) from None

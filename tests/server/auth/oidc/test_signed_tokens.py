"""ID tokens and logout tokens with a wrong issuer, audience, nonce, event, age, type or signature are refused."""

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import jwt
import pytest

from server.auth.oidc.failures import SignInFailed
from server.auth.oidc.provider import IdentityProvider, ProviderMetadata
from server.auth.oidc.signed_tokens import LOGOUT_EVENT, ProviderTokenVerifier
from server.auth.tokens import ProviderKeys, TokenInvalid
from tests.server.auth.identity_provider import EC_KEY, RSA_KEY, provider_with, rsa_jwk

pytestmark = pytest.mark.anyio

ISSUER, CLIENT = "https://id.example.org", "noroshi"


class StaticProvider(IdentityProvider):
    """A provider with fixed metadata. Its keys are fetched from `keys_url`."""

    def __init__(self, keys_url: str) -> None:
        super().__init__(ISSUER)
        self._fixed = ProviderMetadata(ISSUER, ISSUER, ISSUER, None, None, False, True, ProviderKeys(keys_url))

    async def metadata(self) -> ProviderMetadata:
        return self._fixed


@asynccontextmanager
async def signed_tokens() -> AsyncIterator[ProviderTokenVerifier]:
    async with provider_with(rsa_jwk("k")) as provider:
        yield ProviderTokenVerifier(StaticProvider(provider.url), CLIENT)


def sign(claims: dict[str, Any], key: Any = RSA_KEY, algorithm: str = "RS256", typ: str = "JWT") -> str:
    present = {name: value for name, value in claims.items() if value is not ...}
    return jwt.encode(present, key, algorithm=algorithm, headers={"kid": "k", "typ": typ})


def id_claims(**changes: Any) -> dict[str, Any]:
    now = int(time.time())
    claims = {"iss": ISSUER, "aud": CLIENT, "sub": "42", "iat": now, "exp": now + 60, "nonce": "n"}
    return claims | changes


def logout_claims(**changes: Any) -> dict[str, Any]:
    claims = {"iss": ISSUER, "aud": CLIENT, "sub": "42", "sid": "s", "iat": int(time.time()), "jti": "j"}
    return claims | {"events": {LOGOUT_EVENT: {}}} | changes


async def test_valid_tokens_are_accepted() -> None:
    async with signed_tokens() as tokens:
        assert (await tokens.id_claims(sign(id_claims()), "n"))["sub"] == "42"
        for typ in ("JWT", "logout+jwt"):
            logout = await tokens.logout(sign(logout_claims(), typ=typ))
            assert (logout.sub, logout.sid, logout.id) == ("42", "s", "j")


async def test_wrong_id_tokens_are_refused() -> None:
    wrong: list[dict[str, Any]] = [
        {"nonce": "other"},
        {"nonce": ...},
        {"aud": "other"},
        {"aud": [CLIENT, "other"], "azp": "other"},
        {"iss": "https://evil.example.org"},
        {"exp": int(time.time()) - 3600},
        {"exp": ...},
        {"iat": int(time.time()) + 3600},
        {"sub": ...},
    ]
    texts = [sign(id_claims(**change)) for change in wrong]
    texts += [sign(id_claims(), EC_KEY, "ES256"), sign(id_claims(), typ="logout+jwt"), "", "a.b.c"]
    texts.append(jwt.encode(id_claims(), "a secret of the tests, longer than 32 bytes", algorithm="HS256"))
    async with signed_tokens() as tokens:
        for text in [*texts, None]:
            with pytest.raises(SignInFailed):
                await tokens.id_claims(text, "n")


async def test_wrong_logout_tokens_are_refused() -> None:
    wrong: list[dict[str, Any]] = [
        {"nonce": "n"},
        {"events": ...},
        {"events": {}},
        {"events": LOGOUT_EVENT},
        {"events": {LOGOUT_EVENT: None}},
        {"jti": ...},
        {"jti": 5},
        {"sub": ..., "sid": ...},
        {"sub": 5},
        {"aud": "other"},
        {"iss": "https://evil.example.org"},
        {"iat": int(time.time()) - 3600},
        {"iat": int(time.time()) + 3600},
        {"iat": ...},
        {"iat": "soon"},
        {"exp": int(time.time()) - 3600},
    ]
    texts = [sign(logout_claims(**change)) for change in wrong]
    texts += [
        sign(id_claims(jti="j")),
        sign(logout_claims(), EC_KEY, "ES256"),
        sign(logout_claims(), typ="at+jwt"),
    ]
    async with signed_tokens() as tokens:
        for text in texts:
            with pytest.raises(TokenInvalid):
                await tokens.logout(text)

"""Each check of the OIDC client, by a provider that lies: who signs in is never decided by an unchecked answer."""

import time
from collections.abc import AsyncIterator
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa

from server.auth.oidc.claims import ClaimMap
from server.auth.oidc.client import ClientRegistration, OidcClient
from server.auth.oidc.failures import SignInFailed, SignInFailure
from server.auth.oidc.pending import PendingSignIn, PendingSignIns
from server.auth.oidc.provider import IdentityProvider
from storage.errors import Unavailable
from tests.server.auth.identity_provider import EC_KEY
from tests.server.auth.oidc.lying_provider import CLIENT_ID, SUB, LyingProvider, lying_provider

pytestmark = pytest.mark.anyio

REDIRECT = "https://chat.example.org/sign-in/oidc/callback"
OTHER_RSA_KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)
CLAIMS = ClaimMap({"name": "/name"}, "main", {})


@pytest.fixture
async def provider() -> AsyncIterator[LyingProvider]:
    async with lying_provider() as provider:
        yield provider


def client_of(provider: LyingProvider) -> OidcClient:
    registration = ClientRegistration(CLIENT_ID, "secret", ("openid",), REDIRECT)
    return OidcClient(IdentityProvider(provider.issuer), registration, CLAIMS)


def new_sign_in() -> PendingSignIn:
    return PendingSignIns(bytes(32)).begin("/")[0]


async def refusal(provider: LyingProvider, **changes: str) -> SignInFailure:
    """Signs in, with changes of the callback's parameters. Returns the failure."""
    client, pending = client_of(provider), new_sign_in()
    answer = provider.authorize(await client.authorization_url(pending))
    with pytest.raises(SignInFailed) as refused:
        await client.finish(pending, answer | changes)
    return refused.value.failure


async def test_honest_provider_signs_a_person_in(provider: LyingProvider) -> None:
    client, pending = client_of(provider), new_sign_in()
    answer = provider.authorize(await client.authorization_url(pending))
    signed_in = await client.finish(pending, answer)
    assert (signed_in.person.user_id, signed_in.person.name) == (SUB, "Ann")
    assert (signed_in.session.issuer, signed_in.session.sub) == (provider.issuer, SUB)


@pytest.mark.parametrize("issuer", ["https://evil.example.org", "", 7, None, ...], ids=str)
async def test_metadata_of_another_issuer_are_refused(provider: LyingProvider, issuer: object) -> None:
    provider.metadata = {"issuer": issuer}
    with pytest.raises(Unavailable):
        await client_of(provider).authorization_url(new_sign_in())


@pytest.mark.parametrize(
    "lie",
    [
        {"iss": "https://evil.example.org"},
        {"iss": ...},
        {"aud": "another client"},
        {"aud": ...},
        {"aud": [CLIENT_ID, "another client"], "azp": "another client"},
        {"nonce": "of another sign-in"},
        {"nonce": ...},
        {"exp": int(time.time()) - 3600},
        {"exp": ...},
        {"sub": ...},
    ],
    ids=lambda lie: " ".join(f"{name}={value}" for name, value in lie.items() if name != "exp") or "exp",
)
async def test_lying_id_token_signs_nobody_in(provider: LyingProvider, lie: dict[str, Any]) -> None:
    provider.claims = lie
    assert await refusal(provider) is SignInFailure.INVALID


async def test_id_token_of_another_signature_signs_nobody_in(provider: LyingProvider) -> None:
    lies: list[tuple[Any, str]] = [(OTHER_RSA_KEY, "RS256"), (EC_KEY, "ES256"), ("x" * 32, "HS256"), (None, "none")]
    for provider.key, provider.algorithm in lies:
        assert await refusal(provider) is SignInFailure.INVALID


async def test_logout_token_signs_nobody_in(provider: LyingProvider) -> None:
    provider.header = {"kid": "k", "typ": "logout+jwt"}
    assert await refusal(provider) is SignInFailure.INVALID


@pytest.mark.parametrize("sub", ["43", "", None, ...], ids=str)
async def test_userinfo_about_another_person_is_refused(provider: LyingProvider, sub: object) -> None:
    provider.user_info = {"sub": sub}
    assert await refusal(provider) is SignInFailure.INVALID


async def test_claims_of_userinfo_do_not_replace_the_signed(provider: LyingProvider) -> None:
    provider.claims, provider.user_info = {"name": "Ann"}, {"name": "Eve"}
    client, pending = client_of(provider), new_sign_in()
    answer = provider.authorize(await client.authorization_url(pending))
    assert (await client.finish(pending, answer)).person.name == "Ann"


async def test_callback_for_another_sign_in_is_refused(provider: LyingProvider) -> None:
    assert await refusal(provider, state=new_sign_in().state) is SignInFailure.EXPIRED
    assert await refusal(provider, state="") is SignInFailure.EXPIRED
    assert provider.requests["/token"] == 0


async def test_callback_of_another_issuer_is_refused(provider: LyingProvider) -> None:
    assert await refusal(provider, iss="https://evil.example.org") is SignInFailure.INVALID
    assert provider.requests["/token"] == 0


async def test_code_of_another_browser_is_not_redeemed(provider: LyingProvider) -> None:
    """The provider redeems a code for the browser that has the secret of PKCE."""
    client, pending, other = client_of(provider), new_sign_in(), new_sign_in()
    answer = provider.authorize(await client.authorization_url(pending))
    with pytest.raises(SignInFailed):
        await client.finish(other, answer | {"state": other.state})
    assert provider.requests["/token"] == 1
    assert (await client.finish(pending, answer)).person.user_id == SUB

"""Verification of tokens from identity providers that rotate keys, hang or fail."""

import asyncio
import base64
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from server.auth.tokens import KEYS_LIMIT_S, REFETCH_INTERVAL_S, TokenClaims, TokenInvalid, TokenVerifier
from storage.errors import Unavailable
from tests.server.auth.example_tokens import EXP, SECRET, hmac_signed_token, segment, signed_token
from tests.server.auth.identity_provider import (
    EC_KEY,
    P384_KEY,
    RSA_KEY,
    WEAK_RSA_KEY,
    ec_jwk,
    provider_token,
    provider_with,
    rsa_jwk,
    verifier_of,
)
from tests.waiting import until


@pytest.mark.anyio
class TestIdentityProvider:
    async def test_rs256_and_es256_are_accepted_with_one_fetch(self) -> None:
        async with provider_with(rsa_jwk("r"), ec_jwk("e")) as provider:
            verifier = verifier_of(provider)
            assert (await verifier.verify(provider_token(RSA_KEY, "RS256", "r"))).user_id == "u1"
            assert (await verifier.verify(provider_token(EC_KEY, "ES256", "e"))).user_id == "u1"
            assert (await verifier.verify(provider_token(RSA_KEY, "RS256"))).user_id == "u1"
            assert provider.fetches == 1

    async def test_hs256_is_refused_with_provider(self) -> None:
        async with provider_with(rsa_jwk("r")) as provider:
            with pytest.raises(TokenInvalid, match="algorithm"):
                await verifier_of(provider).verify(signed_token({}))

    async def test_public_key_as_hmac_secret_is_refused(self) -> None:
        pem = RSA_KEY.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
        token = hmac_signed_token({"alg": "HS256", "kid": "r"}, {"sub": "u1", "org": "acme", "exp": EXP}, pem)
        async with provider_with(rsa_jwk("r")) as provider:
            with pytest.raises(TokenInvalid, match="algorithm"):
                await verifier_of(provider).verify(token)

    @pytest.mark.parametrize("alg", ["none", "HS256", "RS512", "PS256", None, ["RS256"], {"a": 1}])
    async def test_other_algorithms_are_refused_with_provider(self, alg: object) -> None:
        async with provider_with(rsa_jwk("r")) as provider:
            payload = segment({"sub": "u1", "org": "acme", "exp": EXP})
            with pytest.raises(TokenInvalid):
                await verifier_of(provider).verify(f"{segment({'alg': alg, 'kid': 'r'})}.{payload}.")

    async def test_key_is_not_used_for_other_algorithm(self) -> None:
        async with provider_with(rsa_jwk("same"), ec_jwk("e")) as provider:
            with pytest.raises(TokenInvalid, match="unknown"):
                await verifier_of(provider).verify(provider_token(EC_KEY, "ES256", "same"))

    async def test_unsuitable_keys_of_provider_are_ignored(self) -> None:
        symmetric = {"kty": "oct", "kid": "o", "k": base64.urlsafe_b64encode(SECRET.encode()).decode()}
        unsuitable: list[Any] = [
            symmetric,
            rsa_jwk("enc", use="enc"),
            rsa_jwk("512", alg="RS512"),
            ec_jwk("3", P384_KEY),
        ]
        unsuitable += [7, {}, {"kty": ["RSA"]}, rsa_jwk("x") | {"kid": ["x"]}, {"kty": "RSA", "kid": "n", "n": 1}]
        async with provider_with(*unsuitable, rsa_jwk("good"), rsa_jwk("weak", WEAK_RSA_KEY)) as provider:
            verifier = verifier_of(provider)
            assert await verifier.verify(provider_token(RSA_KEY, "RS256", "good"))
            for kid in ("enc", "512", "x", "n"):
                with pytest.raises(TokenInvalid, match="unknown"):
                    await verifier.verify(provider_token(RSA_KEY, "RS256", kid))
            with pytest.warns(UserWarning, match="RSA key"):
                weak = provider_token(WEAK_RSA_KEY, "RS256", "weak")
            with pytest.raises(TokenInvalid, match="weak"):
                await verifier.verify(weak)

    async def test_unknown_keys_are_fetched_once_in_ten_seconds(self) -> None:
        clock = [0.0]
        new_key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        async with provider_with(rsa_jwk("old")) as provider:
            verifier = verifier_of(provider, lambda: clock[0])
            await verifier.verify(provider_token(RSA_KEY, "RS256", "old"))
            for n in range(50):
                with pytest.raises(TokenInvalid, match="unknown"):
                    await verifier.verify(provider_token(RSA_KEY, "RS256", f"guess-{n}"))
            assert provider.fetches == 1
            provider.key_set = {"keys": [rsa_jwk("new", new_key)]}
            clock[0] = 10.0
            assert await verifier.verify(provider_token(new_key, "RS256", "new"))
            assert provider.fetches == 2

    async def test_keys_of_yesterday_do_not_serve(self) -> None:
        """A key that the provider has withdrawn must not count for as long as nobody can fetch the keys."""
        clock = [0.0]
        async with provider_with(rsa_jwk("old")) as provider:
            verifier, token = verifier_of(provider, lambda: clock[0]), provider_token(RSA_KEY, "RS256", "old")
            await verifier.verify(token)
            provider.status = 500
            clock[0] = KEYS_LIMIT_S
            await verifier.verify(token)
            await until(lambda: provider.fetches == 2)
            clock[0] = KEYS_LIMIT_S + REFETCH_INTERVAL_S
            with pytest.raises(Unavailable):
                await verifier.verify(token)

    async def test_failed_fetch_keeps_keys_and_new_key_is_unavailable(self) -> None:
        clock = [0.0]
        async with provider_with(rsa_jwk("old")) as provider:
            verifier = verifier_of(provider, lambda: clock[0])
            await verifier.verify(provider_token(RSA_KEY, "RS256", "old"))
            clock[0], provider.status = 10.0, 500
            with pytest.raises(Unavailable):
                await verifier.verify(provider_token(RSA_KEY, "RS256", "new"))
            assert await verifier.verify(provider_token(RSA_KEY, "RS256", "old", name="another token"))
            assert provider.fetches == 2

    @pytest.mark.parametrize("key_set", [{}, {"keys": []}, {"keys": 5}, [], None, "x", {"keys": [{"kty": "oct"}]}])
    async def test_provider_without_usable_key_is_unavailable(self, key_set: object) -> None:
        async with provider_with() as provider:
            provider.key_set = key_set
            with pytest.raises(Unavailable):
                await verifier_of(provider).verify(provider_token(RSA_KEY, "RS256", "r"))

    async def test_provider_without_keys_is_retried_after_one_second(self) -> None:
        clock = [0.0]
        async with provider_with(rsa_jwk("r")) as provider:
            provider.status = 503
            verifier = verifier_of(provider, lambda: clock[0])
            for _ in range(5):
                with pytest.raises(Unavailable):
                    await verifier.verify(provider_token(RSA_KEY, "RS256", "r"))
            assert provider.fetches == 1
            clock[0], provider.status = 1.0, 200
            assert await verifier.verify(provider_token(RSA_KEY, "RS256", "r"))

    async def test_requests_share_one_fetch_despite_cancellation(self) -> None:
        async with provider_with(rsa_jwk("r")) as provider:
            provider.gate.clear()
            clock = [0.0]
            verifier = verifier_of(provider, lambda: clock[0])
            tasks = [asyncio.create_task(verifier.verify(provider_token(RSA_KEY, "RS256", "r"))) for _ in range(20)]
            await until(lambda: provider.fetches == 1)
            tasks[0].cancel()
            await until(tasks[0].done)
            clock[0] = 3.0
            tasks.append(asyncio.create_task(verifier.verify(provider_token(RSA_KEY, "RS256", "r"))))
            await asyncio.sleep(0)
            provider.gate.set()
            results = await asyncio.gather(*tasks, return_exceptions=True)
            assert isinstance(results[0], asyncio.CancelledError)
            assert all(isinstance(claims, TokenClaims) for claims in results[1:])
            assert provider.fetches == 1

    async def test_withdrawn_key_becomes_invalid_in_background(self) -> None:
        clock = [0.0]
        async with provider_with(rsa_jwk("old")) as provider:
            verifier = verifier_of(provider, lambda: clock[0])
            token = provider_token(RSA_KEY, "RS256", "old")
            await verifier.verify(token)
            provider.key_set = {"keys": [ec_jwk("e")]}
            provider.gate.clear()
            clock[0] = 301.0
            assert await verifier.verify(token)
            provider.gate.set()
            await until(lambda: verifier._keys is not None and verifier._keys.current_generation() == 2)
            with pytest.raises(TokenInvalid, match="unknown"):
                await verifier.verify(token)

    async def test_unreachable_provider_is_unavailable(self) -> None:
        async with provider_with(rsa_jwk("r")) as provider:
            url = provider.url
        with pytest.raises(Unavailable):
            await TokenVerifier(jwks_url=url).verify(provider_token(RSA_KEY, "RS256", "r"))

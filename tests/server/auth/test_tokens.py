"""Verification of tokens: malformed tokens, and identity providers that rotate keys, hang or fail."""

import asyncio
import base64
import hmac
import json
import math
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from hypothesis import given
from hypothesis import strategies as st

from server.auth.tokens import Claims, TokenExpired, TokenInvalid, TokenVerifier, bearer, mint
from storage.errors import Unavailable
from storage.identity.roles import Role

SECRET = "a secret of the tests, longer than 32 bytes"
EXP = time.time() + 3600


def signed(payload: dict[str, Any], secret: str = SECRET, algorithm: str = "HS256") -> str:
    """Returns a token with these claims, added to valid ones."""
    return jwt.encode({"sub": "u1", "org": "acme", "exp": EXP} | payload, secret, algorithm=algorithm)


def verify(token: str, **settings: Any) -> Claims:
    """Returns the claims of a token, verified with the shared secret unless the settings say otherwise."""
    return asyncio.run(TokenVerifier(**({"secret": SECRET} | settings)).verify(token))


def segment(value: object) -> str:
    """Returns a token's header or payload: JSON in base64url."""
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()


def hmac_signed(header: dict[str, Any], payload: dict[str, Any], secret: bytes) -> str:
    """Returns a signed token, also with a header or payload that PyJWT refuses to sign."""
    signing_input = f"{segment(header)}.{segment(payload)}"
    signature = hmac.digest(secret, signing_input.encode(), "sha256")
    return f"{signing_input}.{base64.urlsafe_b64encode(signature).rstrip(b'=').decode()}"


def unchecked(claims: dict[str, Any]) -> str:
    """Returns a token with these claims, added to valid ones, without PyJWT's checks."""
    payload = {"sub": "u1", "org": "acme", "exp": EXP} | claims
    return hmac_signed({"alg": "HS256"}, payload, SECRET.encode())


class TestClaims:
    def test_minted_token_has_given_claims(self) -> None:
        before = time.time()
        identity = {"user_id": "u1", "organization_id": "acme", "name": "花子", "handle": "hana"}
        claims = verify(mint(SECRET, **identity, roles=["ADMIN"], ttl_s=60))
        assert {field: getattr(claims, field) for field in identity} == identity
        assert claims.roles == {Role.ADMIN}
        assert before + 60 <= claims.expires_at <= time.time() + 60

    @pytest.mark.parametrize("roles", [{}, {"roles": []}, {"roles": None}, {"roles": ["gardener", "admin"]}])
    def test_token_without_known_role_has_role_member(self, roles: dict[str, Any]) -> None:
        assert verify(signed(roles)).roles == {Role.MEMBER}

    def test_unknown_roles_are_ignored(self) -> None:
        assert verify(signed({"roles": ["SERVICE", "gardener"]})).roles == {Role.SERVICE}

    def test_empty_name_is_none(self) -> None:
        claims = verify(signed({"name": "", "handle": None}))
        assert (claims.name, claims.handle) == (None, None)

    @pytest.mark.parametrize("claim", ["sub", "org", "exp"])
    def test_token_without_required_claim_is_invalid(self, claim: str) -> None:
        payload = {"sub": "u1", "org": "acme", "exp": EXP}
        del payload[claim]
        with pytest.raises(TokenInvalid, match=claim):
            verify(jwt.encode(payload, SECRET, algorithm="HS256"))

    @pytest.mark.parametrize("claim", ["sub", "org", "name", "handle"])
    @pytest.mark.parametrize("value", ["a\x00b", "a\nb", "x" * 201, "\ud800", True, 1, 1.5, ["u1"], {"$ne": ""}])
    def test_malformed_text_claim_is_invalid(self, claim: str, value: object) -> None:
        with pytest.raises(TokenInvalid):
            verify(unchecked({claim: value}))

    @pytest.mark.parametrize("claim", ["sub", "org"])
    def test_empty_user_or_organization_is_invalid(self, claim: str) -> None:
        with pytest.raises(TokenInvalid, match=claim):
            verify(signed({claim: ""}))

    @pytest.mark.parametrize("exp", [True, "9999999999", None, math.nan, math.inf, 1e300, -1, [EXP], 10**400])
    def test_malformed_expiry_is_invalid(self, exp: object) -> None:
        with pytest.raises(TokenInvalid, match="exp"):
            verify(unchecked({"exp": exp}))

    @pytest.mark.parametrize("roles", ["ADMIN", {"ADMIN": 1}, [["ADMIN"]], [1], True])
    def test_malformed_roles_are_invalid(self, roles: object) -> None:
        with pytest.raises(TokenInvalid, match="roles"):
            verify(signed({"roles": roles}))


class TestTime:
    def test_token_expires_without_leeway(self) -> None:
        token = signed({"exp": 2000.5})
        assert verify(token, now=lambda: 2000.4).expires_at == 2000.5
        with pytest.raises(TokenExpired):
            verify(token, now=lambda: 2000.5)

    def test_verified_token_expires_later(self) -> None:
        async def verify_around_expiry() -> None:
            clock = [1000.0]
            verifier = TokenVerifier(secret=SECRET, now=lambda: clock[0])
            token = signed({"exp": 1001})
            assert await verifier.verify(token) == await verifier.verify(token)
            clock[0] = 1001.0
            with pytest.raises(TokenExpired):
                await verifier.verify(token)

        asyncio.run(verify_around_expiry())

    @pytest.mark.parametrize("claims", [{"sub": ""}, {"roles": "ADMIN"}, {"nbf": EXP + 9}, {"aud": "elsewhere"}])
    def test_expired_and_malformed_token_is_invalid(self, claims: dict[str, Any]) -> None:
        with pytest.raises(TokenInvalid):
            verify(signed({"exp": 1000} | claims))

    def test_token_is_invalid_before_nbf(self) -> None:
        assert verify(signed({"nbf": 1000}), now=lambda: 1000)
        with pytest.raises(TokenInvalid, match="not valid yet"):
            verify(signed({"nbf": 1000}), now=lambda: 999.9)

    def test_iat_in_the_future_is_accepted(self) -> None:
        assert verify(signed({"iat": time.time() + 30}))


class TestSignature:
    def test_signature_of_other_secret_is_invalid(self) -> None:
        with pytest.raises(TokenInvalid, match="signature"):
            verify(signed({}, secret="another secret that is also long enough"))

    def test_changed_payload_is_invalid(self) -> None:
        header, _, signature = signed({}).split(".")
        forged = segment({"sub": "u1", "org": "globex", "exp": EXP, "roles": ["ADMIN"]})
        with pytest.raises(TokenInvalid, match="signature"):
            verify(f"{header}.{forged}.{signature}")

    @pytest.mark.parametrize("alg", ["none", "None", "NONE", "", None, ["HS256"], "HS512", "RS256"])
    def test_algorithm_chosen_by_header_is_invalid(self, alg: object) -> None:
        payload = segment({"sub": "u1", "org": "acme", "exp": EXP})
        with pytest.raises(TokenInvalid):
            verify(f"{segment({'alg': alg})}.{payload}.")

    def test_hs384_and_hs512_are_invalid(self) -> None:
        with pytest.raises(TokenInvalid, match="algorithm"):
            verify(signed({}, secret=SECRET * 2, algorithm="HS512"), secret=SECRET * 2)

    @pytest.mark.parametrize("token", ["", ".", "..", "a.b", "a.b.c", "\ud800.b.c", "é.b.c", "[" * 9000 + ".a.b"])
    def test_malformed_token_is_invalid(self, token: str) -> None:
        with pytest.raises(TokenInvalid):
            verify(token)

    def test_token_beyond_size_limit_is_invalid(self) -> None:
        with pytest.raises(TokenInvalid, match="too long"):
            verify(signed({"filler": "x" * 16_000}))

    def test_deeply_nested_json_is_invalid(self) -> None:
        deep = base64.urlsafe_b64encode(b"[" * 9000).rstrip(b"=").decode()
        with pytest.raises(TokenInvalid):
            verify(f"{deep}.{deep}.{deep}"[:16_000])

    @given(st.text(max_size=60))
    def test_random_text_is_invalid(self, text: str) -> None:
        with pytest.raises(TokenInvalid):
            verify(text)

    def test_audience_and_issuer_are_checked_when_set(self) -> None:
        token = signed({"aud": ["noroshi", "other"], "iss": "https://id.example"})
        assert verify(token, audience="noroshi", issuer="https://id.example")
        for settings in ({"audience": "others"}, {"audience": "noroshi", "issuer": "https://evil.example"}):
            with pytest.raises(TokenInvalid, match="another"):
                verify(token, **settings)
        with pytest.raises(TokenInvalid, match="missing"):
            verify(signed({}), audience="noroshi")

    def test_verifier_without_secret_and_jwks_is_refused(self) -> None:
        with pytest.raises(ValueError, match="secret"):
            TokenVerifier(secret="")

    def test_error_repeats_nothing_of_the_token(self) -> None:
        with pytest.raises(TokenInvalid) as refusal:
            verify(f"{segment({'alg': 'my-secret-alg'})}.{segment({})}.c2VjcmV0")
        assert refusal.value.extensions == {"code": "UNAUTHENTICATED"}
        assert "my-secret-alg" not in str(refusal.value)


class TestBearer:
    @pytest.mark.parametrize("header", ["Bearer a.b.c", "bearer a.b.c", "BEARER   a.b.c "])
    def test_bearer_scheme_is_case_insensitive(self, header: str) -> None:
        assert bearer(header) == "a.b.c"

    def test_missing_header_is_no_token(self) -> None:
        assert bearer(None) is None

    @pytest.mark.parametrize(
        "header", ["", "Bearer", "Bearer ", "a.b.c", "Basic a.b", "Bearer a b", "Bearer a\n", "Bearer é", "Bearera"]
    )
    def test_other_authorization_header_is_invalid(self, header: str) -> None:
        with pytest.raises(TokenInvalid, match="Bearer"):
            bearer(header)


class IdentityProvider:
    """An identity provider on a real socket. Tests change its key set and its status."""

    def __init__(self) -> None:
        self.url, self.fetches, self.status = "", 0, 200
        self.document: object = {"keys": []}
        self.gate = asyncio.Event()
        self.gate.set()

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        self.fetches += 1
        await self.gate.wait()
        body = json.dumps(self.document).encode()
        head = f"HTTP/1.1 {self.status} X\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        writer.write(head.encode() + body)
        await writer.drain()
        writer.close()


@asynccontextmanager
async def provider_with(*keys: dict[str, Any]) -> AsyncIterator[IdentityProvider]:
    """Serves an identity provider with these keys."""
    provider = IdentityProvider()
    provider.document = {"keys": list(keys)}
    server = await asyncio.start_server(provider.answer, "127.0.0.1", 0)
    provider.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/jwks.json"
    async with server:
        yield provider


RSA_KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)
WEAK_RSA_KEY = rsa.generate_private_key(public_exponent=65537, key_size=1024)
EC_KEY = ec.generate_private_key(ec.SECP256R1())
P384 = ec.generate_private_key(ec.SECP384R1())


def rsa_jwk(kid: str | None, key: rsa.RSAPrivateKey = RSA_KEY, **more: Any) -> dict[str, Any]:
    named = {} if kid is None else {"kid": kid}
    return jwt.algorithms.RSAAlgorithm.to_jwk(key.public_key(), as_dict=True) | named | more


def ec_jwk(kid: str, key: ec.EllipticCurvePrivateKey = EC_KEY) -> dict[str, Any]:
    return jwt.algorithms.ECAlgorithm.to_jwk(key.public_key(), as_dict=True) | {"kid": kid}


def issued(key: Any, algorithm: str, kid: str | None = None, **claims: Any) -> str:
    """Returns a token that is signed with a key of the identity provider."""
    headers = None if kid is None else {"kid": kid}
    return jwt.encode({"sub": "u1", "org": "acme", "exp": EXP} | claims, key, algorithm=algorithm, headers=headers)


def verifier_of(provider: IdentityProvider, monotonic: Callable[[], float] = time.monotonic) -> TokenVerifier:
    return TokenVerifier(secret=SECRET, jwks_url=provider.url, monotonic=monotonic)


@pytest.mark.anyio
class TestIdentityProvider:
    async def test_rs256_and_es256_are_accepted_with_one_fetch(self) -> None:
        async with provider_with(rsa_jwk("r"), ec_jwk("e")) as provider:
            verifier = verifier_of(provider)
            assert (await verifier.verify(issued(RSA_KEY, "RS256", "r"))).user_id == "u1"
            assert (await verifier.verify(issued(EC_KEY, "ES256", "e"))).user_id == "u1"
            assert (await verifier.verify(issued(RSA_KEY, "RS256"))).user_id == "u1"
            assert provider.fetches == 1

    async def test_hs256_is_refused_with_provider(self) -> None:
        async with provider_with(rsa_jwk("r")) as provider:
            with pytest.raises(TokenInvalid, match="algorithm"):
                await verifier_of(provider).verify(signed({}))

    async def test_public_key_as_hmac_secret_is_refused(self) -> None:
        pem = RSA_KEY.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
        token = hmac_signed({"alg": "HS256", "kid": "r"}, {"sub": "u1", "org": "acme", "exp": EXP}, pem)
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
                await verifier_of(provider).verify(issued(EC_KEY, "ES256", "same"))

    async def test_unsuitable_keys_of_provider_are_ignored(self) -> None:
        symmetric = {"kty": "oct", "kid": "o", "k": base64.urlsafe_b64encode(SECRET.encode()).decode()}
        unsuitable: list[Any] = [symmetric, rsa_jwk("enc", use="enc"), rsa_jwk("512", alg="RS512"), ec_jwk("3", P384)]
        unsuitable += [7, {}, {"kty": ["RSA"]}, rsa_jwk("x") | {"kid": ["x"]}, {"kty": "RSA", "kid": "n", "n": 1}]
        async with provider_with(*unsuitable, rsa_jwk("good"), rsa_jwk("weak", WEAK_RSA_KEY)) as provider:
            verifier = verifier_of(provider)
            assert await verifier.verify(issued(RSA_KEY, "RS256", "good"))
            for kid in ("enc", "512", "x", "n"):
                with pytest.raises(TokenInvalid, match="unknown"):
                    await verifier.verify(issued(RSA_KEY, "RS256", kid))
            with pytest.warns(UserWarning, match="RSA key"):
                weak = issued(WEAK_RSA_KEY, "RS256", "weak")
            with pytest.raises(TokenInvalid, match="weak"):
                await verifier.verify(weak)

    async def test_unknown_keys_are_fetched_once_in_ten_seconds(self) -> None:
        clock = [0.0]
        new_key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        async with provider_with(rsa_jwk("old")) as provider:
            verifier = verifier_of(provider, lambda: clock[0])
            await verifier.verify(issued(RSA_KEY, "RS256", "old"))
            for n in range(50):
                with pytest.raises(TokenInvalid, match="unknown"):
                    await verifier.verify(issued(RSA_KEY, "RS256", f"guess-{n}"))
            assert provider.fetches == 1
            provider.document = {"keys": [rsa_jwk("new", new_key)]}
            clock[0] = 10.0
            assert await verifier.verify(issued(new_key, "RS256", "new"))
            assert provider.fetches == 2

    async def test_failed_fetch_keeps_keys_new_key_is_unavailable(self) -> None:
        clock = [0.0]
        async with provider_with(rsa_jwk("old")) as provider:
            verifier = verifier_of(provider, lambda: clock[0])
            await verifier.verify(issued(RSA_KEY, "RS256", "old"))
            clock[0], provider.status = 10.0, 500
            with pytest.raises(Unavailable):
                await verifier.verify(issued(RSA_KEY, "RS256", "new"))
            assert await verifier.verify(issued(RSA_KEY, "RS256", "old", name="another token"))
            assert provider.fetches == 2

    @pytest.mark.parametrize("document", [{}, {"keys": []}, {"keys": 5}, [], None, "x", {"keys": [{"kty": "oct"}]}])
    async def test_provider_without_usable_key_is_unavailable(self, document: object) -> None:
        async with provider_with() as provider:
            provider.document = document
            with pytest.raises(Unavailable):
                await verifier_of(provider).verify(issued(RSA_KEY, "RS256", "r"))

    async def test_provider_without_keys_is_retried_after_one_second(self) -> None:
        clock = [0.0]
        async with provider_with(rsa_jwk("r")) as provider:
            provider.status = 503
            verifier = verifier_of(provider, lambda: clock[0])
            for _ in range(5):
                with pytest.raises(Unavailable):
                    await verifier.verify(issued(RSA_KEY, "RS256", "r"))
            assert provider.fetches == 1
            clock[0], provider.status = 1.0, 200
            assert await verifier.verify(issued(RSA_KEY, "RS256", "r"))

    async def test_requests_share_one_fetch_despite_cancellation(self) -> None:
        async with provider_with(rsa_jwk("r")) as provider:
            provider.gate.clear()
            clock = [0.0]
            verifier = verifier_of(provider, lambda: clock[0])
            tasks = [asyncio.create_task(verifier.verify(issued(RSA_KEY, "RS256", "r"))) for _ in range(20)]
            await until(lambda: provider.fetches == 1)
            tasks[0].cancel()
            await until(tasks[0].done)
            clock[0] = 3.0
            tasks.append(asyncio.create_task(verifier.verify(issued(RSA_KEY, "RS256", "r"))))
            await asyncio.sleep(0)
            provider.gate.set()
            results = await asyncio.gather(*tasks, return_exceptions=True)
            assert isinstance(results[0], asyncio.CancelledError)
            assert all(isinstance(claims, Claims) for claims in results[1:])
            assert provider.fetches == 1

    async def test_withdrawn_key_becomes_invalid_in_background(self) -> None:
        clock = [0.0]
        async with provider_with(rsa_jwk("old")) as provider:
            verifier = verifier_of(provider, lambda: clock[0])
            token = issued(RSA_KEY, "RS256", "old")
            await verifier.verify(token)
            provider.document = {"keys": [ec_jwk("e")]}
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
            await TokenVerifier(jwks_url=url).verify(issued(RSA_KEY, "RS256", "r"))


async def until(condition: Callable[[], bool], timeout_s: float = 30.0) -> None:
    """Waits until the condition is true. Raises: TimeoutError."""
    async with asyncio.timeout(timeout_s):
        while not condition():
            await asyncio.sleep(0.005)

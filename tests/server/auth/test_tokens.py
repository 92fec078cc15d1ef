"""Verification of tokens: claims, times, signatures and authorization headers."""

import asyncio
import base64
import math
import time
from typing import Any

import jwt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from server.auth.tokens import TokenClaims, TokenExpired, TokenInvalid, TokenVerifier, bearer_token, mint
from storage.identity.roles import Role
from tests.server.auth.example_tokens import EXP, SECRET, segment, signed_token, unchecked_token


def verify(token: str, **settings: Any) -> TokenClaims:
    """Returns the claims of a token, verified with the shared secret unless the settings say otherwise."""
    return asyncio.run(TokenVerifier(**({"secret": SECRET} | settings)).verify(token))


class TestClaims:
    def test_minted_token_has_requested_claims(self) -> None:
        before = time.time()
        identity = {"user_id": "u1", "organization_id": "acme", "name": "花子", "handle": "hana"}
        claims = verify(mint(SECRET, **identity, roles=["ADMIN"], ttl_s=60))
        assert {field: getattr(claims, field) for field in identity} == identity
        assert claims.roles == {Role.ADMIN}
        assert before + 60 <= claims.expires_at <= time.time() + 60

    @pytest.mark.parametrize("roles", [{}, {"roles": []}, {"roles": None}, {"roles": ["gardener", "admin"]}])
    def test_token_without_known_role_has_role_member(self, roles: dict[str, Any]) -> None:
        assert verify(signed_token(roles)).roles == {Role.MEMBER}

    def test_unknown_roles_are_ignored(self) -> None:
        assert verify(signed_token({"roles": ["SERVICE", "gardener"]})).roles == {Role.SERVICE}

    def test_empty_name_is_none(self) -> None:
        claims = verify(signed_token({"name": "", "handle": None}))
        assert (claims.name, claims.handle) == (None, None)

    @pytest.mark.parametrize("claim", ["sub", "org", "exp"])
    def test_token_without_required_claim_is_invalid(self, claim: str) -> None:
        payload = {"sub": "u1", "org": "acme", "exp": EXP}
        del payload[claim]
        with pytest.raises(TokenInvalid, match=claim):
            verify(jwt.encode(payload, SECRET, algorithm="HS256"))

    @pytest.mark.parametrize("claim", ["sub", "org", "name", "handle"])
    @pytest.mark.parametrize(
        "value", ["\u200b", "\u3164 ", "a\x00b", "a\nb", "x" * 201, "\ud800", True, 1, 1.5, ["u1"], {"$ne": ""}]
    )
    def test_malformed_text_claim_is_invalid(self, claim: str, value: object) -> None:
        with pytest.raises(TokenInvalid):
            verify(unchecked_token({claim: value}))

    @pytest.mark.parametrize("claim", ["sub", "org"])
    def test_empty_user_or_organization_is_invalid(self, claim: str) -> None:
        with pytest.raises(TokenInvalid, match=claim):
            verify(signed_token({claim: ""}))

    @pytest.mark.parametrize("exp", [True, "9999999999", None, math.nan, math.inf, 1e300, -1, [EXP], 10**400])
    def test_malformed_expiry_is_invalid(self, exp: object) -> None:
        with pytest.raises(TokenInvalid, match="exp"):
            verify(unchecked_token({"exp": exp}))

    @pytest.mark.parametrize("roles", ["ADMIN", {"ADMIN": 1}, [["ADMIN"]], [1], True])
    def test_malformed_roles_are_invalid(self, roles: object) -> None:
        with pytest.raises(TokenInvalid, match="roles"):
            verify(signed_token({"roles": roles}))


class TestTime:
    def test_token_expires_without_leeway(self) -> None:
        token = signed_token({"exp": 2000.5})
        assert verify(token, now=lambda: 2000.4).expires_at == 2000.5
        with pytest.raises(TokenExpired):
            verify(token, now=lambda: 2000.5)

    def test_repeated_verification_notices_expiry(self) -> None:
        async def verify_around_expiry() -> None:
            clock = [1000.0]
            verifier = TokenVerifier(secret=SECRET, now=lambda: clock[0])
            token = signed_token({"exp": 1001})
            assert await verifier.verify(token) == await verifier.verify(token)
            clock[0] = 1001.0
            with pytest.raises(TokenExpired):
                await verifier.verify(token)

        asyncio.run(verify_around_expiry())

    @pytest.mark.parametrize("claims", [{"sub": ""}, {"roles": "ADMIN"}, {"nbf": EXP + 9}, {"aud": "elsewhere"}])
    def test_expired_and_malformed_token_is_reported_as_invalid(self, claims: dict[str, Any]) -> None:
        with pytest.raises(TokenInvalid):
            verify(signed_token({"exp": 1000} | claims))

    def test_token_is_invalid_before_nbf(self) -> None:
        assert verify(signed_token({"nbf": 1000}), now=lambda: 1000)
        with pytest.raises(TokenInvalid, match="not valid yet"):
            verify(signed_token({"nbf": 1000}), now=lambda: 999.9)

    def test_iat_in_the_future_is_accepted(self) -> None:
        assert verify(signed_token({"iat": time.time() + 30}))


class TestSignature:
    def test_signature_of_other_secret_is_invalid(self) -> None:
        with pytest.raises(TokenInvalid, match="signature"):
            verify(signed_token({}, secret="another secret that is also long enough"))

    def test_changed_payload_is_invalid(self) -> None:
        header, _, signature = signed_token({}).split(".")
        forged = segment({"sub": "u1", "org": "globex", "exp": EXP, "roles": ["ADMIN"]})
        with pytest.raises(TokenInvalid, match="signature"):
            verify(f"{header}.{forged}.{signature}")

    @pytest.mark.parametrize("alg", ["none", "None", "NONE", "", None, ["HS256"], "HS512", "RS256"])
    def test_algorithm_chosen_by_header_is_invalid(self, alg: object) -> None:
        payload = segment({"sub": "u1", "org": "acme", "exp": EXP})
        with pytest.raises(TokenInvalid):
            verify(f"{segment({'alg': alg})}.{payload}.")

    @pytest.mark.parametrize("algorithm", ["HS384", "HS512"])
    def test_hmac_other_than_hs256_is_invalid(self, algorithm: str) -> None:
        with pytest.raises(TokenInvalid, match="algorithm"):
            verify(signed_token({}, secret=SECRET * 2, algorithm=algorithm), secret=SECRET * 2)

    @pytest.mark.parametrize("token", ["", ".", "..", "a.b", "a.b.c", "\ud800.b.c", "é.b.c", "[" * 9000 + ".a.b"])
    def test_malformed_token_is_invalid(self, token: str) -> None:
        with pytest.raises(TokenInvalid):
            verify(token)

    def test_token_beyond_size_limit_is_invalid(self) -> None:
        with pytest.raises(TokenInvalid, match="too long"):
            verify(signed_token({"filler": "x" * 16_000}))

    def test_deeply_nested_json_is_invalid(self) -> None:
        deep = base64.urlsafe_b64encode(b"[" * 9000).rstrip(b"=").decode()
        with pytest.raises(TokenInvalid):
            verify(f"{deep}.{deep}.{deep}"[:16_000])

    @given(st.text(max_size=60))
    def test_random_text_is_invalid(self, text: str) -> None:
        with pytest.raises(TokenInvalid):
            verify(text)

    def test_audience_and_issuer_are_checked_when_set(self) -> None:
        token = signed_token({"aud": ["noroshi", "other"], "iss": "https://id.example"})
        assert verify(token, audience="noroshi", issuer="https://id.example")
        for settings in ({"audience": "others"}, {"audience": "noroshi", "issuer": "https://evil.example"}):
            with pytest.raises(TokenInvalid, match="not the configured one"):
                verify(token, **settings)
        with pytest.raises(TokenInvalid, match="missing"):
            verify(signed_token({}), audience="noroshi")

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
        assert bearer_token(header) == "a.b.c"

    def test_missing_header_is_no_token(self) -> None:
        assert bearer_token(None) is None

    @pytest.mark.parametrize(
        "header", ["", "Bearer", "Bearer ", "a.b.c", "Basic a.b", "Bearer a b", "Bearer a\n", "Bearer é", "Bearera"]
    )
    def test_other_authorization_header_is_invalid(self, header: str) -> None:
        with pytest.raises(TokenInvalid, match="Bearer"):
            bearer_token(header)

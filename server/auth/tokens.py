"""Verifies bearer tokens, and creates tokens for the command line and for tests.

The settings decide which algorithms are accepted, never the token: HS256 with the shared secret, or RS256 and ES256
with the keys of an identity provider.
"""

import asyncio
import math
import re
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

import httpx2
import jwt
import structlog

from storage.errors import CredentialExpired, Unauthenticated, Unavailable
from storage.identity.roles import Role
from storage.mongo.text_index.visible_characters import has_visible_character

PUBLIC_KEY_ALGORITHMS = ("RS256", "ES256")
TOKEN_MAX_CHARS = 16_384
TEXT_MAX_CHARS = 200
KEYS_MAX_AGE_S = 300.0
KEYS_LIMIT_S = 86_400.0
REFETCH_INTERVAL_S = 10.0
RETRY_WITHOUT_KEYS_S = 1.0
FETCH_TIMEOUT_S = 5.0

# Control characters, line separators, and lone surrogates, which UTF-8 can't encode.
_UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_ADDRESS = re.compile(r"[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+")
_BEARER = re.compile(r"bearer +([A-Za-z0-9._~+/=-]+) *", re.IGNORECASE)

log = structlog.get_logger(__name__)


class TokenInvalid(Unauthenticated):
    """The token is not valid, for another reason than its expiry."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"The bearer token is not valid: {reason}.")
        self.reason = reason


class TokenExpired(CredentialExpired):
    """The token was valid until its `exp`."""

    def __init__(self) -> None:
        super().__init__("The bearer token has expired.")


@dataclass(frozen=True, slots=True)
class TokenClaims:
    """The verified claims of a token. `roles` is never empty. `expires_at` is in Unix seconds."""

    user_id: str
    organization_id: str
    roles: frozenset[Role]
    expires_at: float
    name: str | None
    handle: str | None
    email: str | None = None
    """The claim `email` if it is a mail address, otherwise `sub` if that is one."""

    is_email_verified: bool = False
    """Whether the claim `email` is a mail address, and the claim `email_verified` is true."""


def bearer_token(header: str | None) -> str | None:
    """Returns the token of an Authorization header; None without a header. Raises: TokenInvalid."""
    if header is None:
        return None
    match = _BEARER.fullmatch(header.strip(" \t"))
    if match is None:
        raise TokenInvalid('expected "Bearer <token>"')
    return match[1]


def mint(
    secret: str,
    *,
    user_id: str,
    organization_id: str,
    roles: Iterable[str] = (),
    name: str | None = None,
    handle: str | None = None,
    email: str | None = None,
    ttl_s: float = 86_400,
    audience: str | None = None,
    issuer: str | None = None,
) -> str:
    """Returns an HS256 token for a verifier with the same secret, audience and issuer."""
    now = time.time()
    payload: dict[str, Any] = {"sub": user_id, "org": organization_id, "roles": list(roles)}
    payload |= {"iat": int(now), "exp": now + ttl_s}
    optional = {"name": name, "handle": handle, "email": email, "aud": audience, "iss": issuer}
    payload |= {claim: value for claim, value in optional.items() if value is not None}
    if email is not None:
        payload["email_verified"] = True
    return jwt.encode(payload, secret, algorithm="HS256")


class TokenVerifier:
    """Verifies tokens and returns their claims.

    With a `jwks_url` only the provider's RS256 and ES256 tokens are valid, and the secret is not used.
    """

    def __init__(
        self,
        *,
        secret: str | None = None,
        jwks_url: str | None = None,
        audience: str | None = None,
        issuer: str | None = None,
        now: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        if not jwks_url and not secret:
            raise ValueError("Expected a secret or a JWKS URL to verify tokens with.")
        self._secret = secret or ""
        self._keys = ProviderKeys(jwks_url, monotonic) if jwks_url else None
        self._audience, self._issuer, self._now = audience, issuer, now

    async def verify(self, token: str) -> TokenClaims:
        """Returns the claims of a token that is valid now, without leeway.

        Raises: TokenInvalid; TokenExpired when only the expiry has passed; Unavailable when the provider's
        keys can't be fetched.
        """
        if len(token) > TOKEN_MAX_CHARS:
            raise TokenInvalid("too long")
        claims = await self._check(token)
        self.check_expiry(claims.expires_at)
        return claims

    def generation(self) -> int:
        """Returns the generation of the keys. Claims that were verified under another generation are out of date.

        Also refreshes old keys in the background, so it must be called for every request.
        """
        return self._keys.current_generation() if self._keys else 0

    def check_expiry(self, expires_at: float) -> None:
        """Raises: TokenExpired."""
        if expires_at <= self._now():
            raise TokenExpired

    async def _check(self, token: str) -> TokenClaims:
        """Checks everything except the expiry: signature, audience, issuer, `nbf`, and the form of each claim."""
        try:
            payload = await self._signed_payload(token)
        except (jwt.PyJWTError, ValueError, TypeError) as error:
            raise TokenInvalid(_reason(error)) from error
        not_before = payload.get("nbf")
        if not_before is not None and _unix_time(not_before, "nbf") > self._now():
            raise TokenInvalid("not valid yet")
        return _claims(payload)

    async def _signed_payload(self, token: str) -> dict[str, Any]:
        # Times are checked in this module, with its clock: PyJWT accepts "99" and true as a time.
        options: Any = {"verify_exp": False, "verify_nbf": False, "verify_iat": False, "verify_jti": False}
        checks: Any = {"audience": self._audience, "issuer": self._issuer, "options": options}
        if self._keys is None:
            return jwt.decode(token, self._secret, algorithms=["HS256"], **checks)
        key = await self._keys.for_header(jwt.get_unverified_header(token))
        options["enforce_minimum_key_length"] = True
        return jwt.decode(token, key, algorithms=[key.algorithm_name], **checks)


class ProviderKeys:
    """The public keys of an identity provider, by key id.

    Keys are fetched when first needed, and again for an unknown key id, at most once in 10 s. Keys older than 5 minutes
    are fetched again in the background, so that withdrawn keys become invalid. After a failed fetch, the present keys
    stay valid until they are a day old.
    """

    def __init__(self, url: str, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._url, self._monotonic = url, monotonic
        self._keys: dict[tuple[str | None, str], jwt.PyJWK] = {}
        self._generation = 0
        self._tried_at = self._fetched_at = -math.inf
        self._fetching: asyncio.Task[None] | None = None

    def current_generation(self) -> int:
        """Returns a number that grows with each replacement of the keys. Refreshes old keys in the background."""
        self._refresh_old_keys()
        return self._generation

    def _refresh_old_keys(self) -> None:
        if self._monotonic() - self._fetched_at > KEYS_LIMIT_S:
            self._keys = {}
        if self._keys and self._monotonic() - self._fetched_at > KEYS_MAX_AGE_S:
            self._start_fetch()

    async def for_header(self, header: Mapping[str, Any]) -> jwt.PyJWK:
        """Returns the key that a token's header names. Raises: TokenInvalid; Unavailable when keys can't be fetched."""
        self._refresh_old_keys()
        algorithm, kid = header.get("alg"), header.get("kid")
        if algorithm not in PUBLIC_KEY_ALGORITHMS:
            raise TokenInvalid("its algorithm is not accepted")
        key = self._find(kid, algorithm)
        if key is None:
            await self._fetch_now()
            key = self._find(kid, algorithm)
        return key or self._unknown_key()

    def _find(self, kid: str | None, algorithm: str) -> jwt.PyJWK | None:
        if kid is not None:
            return self._keys.get((kid, algorithm))
        matches = [key for (_, name), key in self._keys.items() if name == algorithm]
        return matches[0] if len(matches) == 1 else None

    def _unknown_key(self) -> NoReturn:
        # After a failed fetch, the provider may have the key. TokenInvalid would make the client give up.
        if self._tried_at > self._fetched_at:
            raise Unavailable("The identity provider's keys can't be fetched.")
        raise TokenInvalid("its key is unknown")

    async def _fetch_now(self) -> None:
        """Waits for the running fetch, or starts one. A cancelled caller does not cancel the fetch."""
        self._start_fetch()
        if self._fetching is not None:
            await asyncio.shield(self._fetching)

    def _start_fetch(self) -> None:
        interval_s = REFETCH_INTERVAL_S if self._keys else RETRY_WITHOUT_KEYS_S
        if self._fetching is None and self._monotonic() - self._tried_at >= interval_s:
            self._tried_at = self._monotonic()
            self._fetching = asyncio.create_task(self._fetch())

    async def _fetch(self) -> None:
        try:
            self._replace(await self._download())
        except (httpx2.HTTPError, httpx2.InvalidURL, TimeoutError, ValueError, RecursionError) as error:
            log.warning("jwks_fetch_failed", error=str(error) or type(error).__name__)
        finally:
            self._fetching = None

    async def _download(self) -> object:
        async with asyncio.timeout(FETCH_TIMEOUT_S), httpx2.AsyncClient(trust_env=False) as client:
            response = await client.get(self._url)
            response.raise_for_status()
            return response.json()

    def _replace(self, document: object) -> None:
        keys = _signing_keys(document)
        if not keys:
            raise ValueError("no RS256 or ES256 key in the key set")
        self._keys = keys
        self._fetched_at = self._monotonic()
        self._generation += 1


def _signing_keys(document: object) -> dict[tuple[str | None, str], jwt.PyJWK]:
    """Returns the keys of a JWK set, without keys for other algorithms or other uses."""
    entries = document.get("keys") if isinstance(document, dict) else None
    if not isinstance(entries, list):
        raise ValueError("not a JWK set")
    keys = [key for entry in entries if isinstance(entry, dict) and (key := _signing_key(entry))]
    return {(key.key_id, key.algorithm_name): key for key in keys}


def _signing_key(entry: dict[str, Any]) -> jwt.PyJWK | None:
    algorithm = {"RSA": "RS256", "EC": "ES256"}.get(str(entry.get("kty")))
    is_for_other_use = entry.get("alg", algorithm) != algorithm or entry.get("use", "sig") != "sig"
    if algorithm is None or is_for_other_use or not isinstance(entry.get("kid"), str | None):
        return None
    try:
        return jwt.PyJWK(entry, algorithm)
    except (jwt.PyJWTError, ValueError, TypeError):
        return None


def _claims(payload: Mapping[str, Any]) -> TokenClaims:
    return TokenClaims(
        user_id=claim_text(payload.get("sub"), "sub"),
        organization_id=claim_text(payload.get("org"), "org"),
        roles=_roles(payload.get("roles")),
        expires_at=_unix_time(payload.get("exp"), "exp"),
        name=optional_claim_text(payload.get("name"), "name"),
        handle=optional_claim_text(payload.get("handle"), "handle"),
        email=_address(payload.get("email")) or _address(payload.get("sub")),
        is_email_verified=payload.get("email_verified") is True and _address(payload.get("email")) is not None,
    )


def claim_text(value: object, claim: str) -> str:
    """Returns the text of a claim. Raises: TokenInvalid."""
    if not isinstance(value, str) or not 1 <= len(value) <= TEXT_MAX_CHARS or _UNPRINTABLE.search(value):
        raise TokenInvalid(f"{claim} must be 1 to {TEXT_MAX_CHARS} characters without control characters")
    if not has_visible_character(value):
        raise TokenInvalid(f"{claim} must have a visible character")
    return value


def optional_claim_text(value: object, claim: str) -> str | None:
    """Returns the text of a claim, or None if it is missing or empty. Raises: TokenInvalid."""
    return None if value is None or value == "" else claim_text(value, claim)


def _address(value: object) -> str | None:
    return value if isinstance(value, str) and is_mail_address(value) else None


def is_mail_address(text: str) -> bool:
    """Returns whether the text has the form of a mail address."""
    return len(text) <= TEXT_MAX_CHARS and _ADDRESS.fullmatch(text) is not None


def _roles(value: object) -> frozenset[Role]:
    """Returns the roles of a token that this version knows; MEMBER if there are none."""
    if value is None:
        return frozenset({Role.MEMBER})
    if not isinstance(value, list) or not all(isinstance(role, str) for role in value):
        raise TokenInvalid("roles must be a list of strings")
    return frozenset(role for role in Role if role.value in value) or frozenset({Role.MEMBER})


def _unix_time(value: object, claim: str) -> float:
    # bool is a subclass of int, and NaN compares as false with every time.
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1e12:
        raise TokenInvalid(f"{claim} must be a number of Unix seconds")
    return float(value)


def _reason(error: Exception) -> str:
    """Returns a reason that repeats no part of the token."""
    reasons: dict[type[Exception], str] = {
        jwt.InvalidSignatureError: "the signature does not match",
        jwt.InvalidAlgorithmError: "its algorithm is not accepted",
        jwt.InvalidAudienceError: "its audience is not the configured one",
        jwt.InvalidIssuerError: "its issuer is not the configured one",
        jwt.MissingRequiredClaimError: "a claim is missing",
        jwt.InvalidKeyError: "its key is too weak",
    }
    return next((reason for kind, reason in reasons.items() if isinstance(error, kind)), "malformed")

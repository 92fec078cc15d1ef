"""An identity provider: its metadata and keys, both cached, and requests to it with limits of time and size."""

import asyncio
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import httpx2
import orjson
import structlog

from server.auth.tokens import ProviderKeys
from storage.errors import Unavailable

METADATA_MAX_AGE_S = 3600.0
"""The age from which metadata are fetched again in the background."""

METADATA_LIMIT_S = 86_400.0
"""The age from which metadata serve no more."""

RETRY_S = 5.0
TIMEOUT_S = 10.0
MAX_ANSWER_BYTES = 1_000_000

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class ProviderMetadata:
    """The result of discovery at the provider."""

    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    userinfo_endpoint: str | None
    end_session_endpoint: str | None
    sends_issuer: bool
    """Whether the provider names itself in the address of the callback (RFC 9207)."""

    takes_basic_authentication: bool
    keys: ProviderKeys


class ProviderRefused(Exception):
    """The provider answered with an error."""


class IdentityProvider:
    """The provider of one issuer.

    Metadata are fetched when first needed. After an hour, one task fetches them again while the old ones serve, for a
    day at most. So a provider that does not answer delays nobody who signs in meanwhile.
    """

    def __init__(self, issuer: str, monotonic: Callable[[], float] = time.monotonic) -> None:
        self.issuer = issuer
        self._monotonic = monotonic
        self._fetching: asyncio.Task[None] | None = None
        self._metadata: ProviderMetadata | None = None
        self._keys: tuple[str, ProviderKeys] | None = None
        self._fetched_at = self._tried_at = -math.inf

    async def metadata(self) -> ProviderMetadata:
        """Returns metadata of the last day. Raises: Unavailable if there are none and they can't be fetched now."""
        if self._age_s() > METADATA_MAX_AGE_S:
            self._start_fetch()
        if self._age_s() > METADATA_LIMIT_S and self._fetching is not None:
            # A caller that is cancelled does not cancel the fetch of the others.
            await asyncio.shield(self._fetching)
        if self._metadata is None or self._age_s() > METADATA_LIMIT_S:
            raise Unavailable("The identity provider does not answer.", int(RETRY_S * 1000))
        return self._metadata

    def _age_s(self) -> float:
        return self._monotonic() - self._fetched_at

    def _start_fetch(self) -> None:
        if self._fetching is None and self._monotonic() - self._tried_at >= RETRY_S:
            self._tried_at = self._monotonic()
            self._fetching = asyncio.create_task(self._fetch())

    async def _fetch(self) -> None:
        try:
            document = await request_json("GET", f"{self.issuer}/.well-known/openid-configuration")
            self._metadata = self._parse(document)
            self._fetched_at = self._monotonic()
        except (Unavailable, ProviderRefused, KeyError, TypeError, ValueError) as error:
            log.warning("oidc_discovery_failed", issuer=self.issuer, error=str(error) or type(error).__name__)
        finally:
            self._fetching = None

    def _parse(self, document: dict[str, Any]) -> ProviderMetadata:
        if str(document["issuer"]).rstrip("/") != self.issuer:
            raise ValueError(f"the issuer is {document['issuer']!r}")
        methods = document.get("token_endpoint_auth_methods_supported", ["client_secret_basic"])
        return ProviderMetadata(
            issuer=document["issuer"],
            authorization_endpoint=_address(document["authorization_endpoint"]),
            token_endpoint=_address(document["token_endpoint"]),
            userinfo_endpoint=_optional_address(document.get("userinfo_endpoint")),
            end_session_endpoint=_optional_address(document.get("end_session_endpoint")),
            sends_issuer=document.get("authorization_response_iss_parameter_supported") is True,
            takes_basic_authentication="client_secret_basic" in methods,
            keys=self._keys_at(_address(document["jwks_uri"])),
        )

    def _keys_at(self, url: str) -> ProviderKeys:
        if self._keys is None or self._keys[0] != url:
            self._keys = url, ProviderKeys(url)
        return self._keys[1]


async def request_json(method: str, url: str, **options: Any) -> dict[str, Any]:
    """Sends a request, and returns the object in the answer. Raises: ProviderRefused, Unavailable."""
    try:
        async with (
            asyncio.timeout(TIMEOUT_S),
            httpx2.AsyncClient(trust_env=False) as client,
            client.stream(method, url, **options) as response,
        ):
            body = bytearray()
            async for chunk in response.aiter_bytes():
                body += chunk
                if len(body) > MAX_ANSWER_BYTES:
                    raise ProviderRefused("the answer is too large")
    except (httpx2.HTTPError, httpx2.InvalidURL, TimeoutError) as error:
        raise Unavailable(f"The identity provider does not answer: {type(error).__name__}.") from error
    if response.status_code >= 500:
        raise Unavailable(f"The identity provider answers with status {response.status_code}.")
    document = _object(bytes(body))
    if response.status_code != 200 or document is None:
        raise ProviderRefused(f"status {response.status_code}, error {(document or {}).get('error')!r:.100}")
    return document


def _object(body: bytes) -> dict[str, Any] | None:
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError:
        return None
    return document if isinstance(document, dict) else None


def _address(value: object) -> str:
    if not isinstance(value, str) or not value.startswith(("https://", "http://")):
        raise ValueError("an endpoint is not an http or https address")
    return value


def _optional_address(value: object) -> str | None:
    return None if value is None else _address(value)

"""Web Push: sends encrypted messages to browsers through their push services.

Implements RFC 8030 (the request), RFC 8291 and RFC 8188 (encryption), and RFC 8292 (VAPID). Requests pass the address
guard, since the address of a push service comes from a client.
"""

import asyncio
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass

import httpx2
import jwt
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from jobs.providers.egress import EgressRefused, GuardedTransport, web_url
from jobs.providers.retry_after import retry_after_s
from storage.notifications.channels import PushSubscription
from storage.secrets.vapid_keys import VapidKey

MAX_PLAINTEXT_BYTES = 3800
"""Push services accept bodies of 4096 bytes (RFC 8030, 7.2). Header, padding delimiter and tag take 103 bytes."""

TTL_S = 24 * 3600
"""How long a push service keeps a push for a browser that is offline."""

TIMEOUT_S = 10.0
CONNECT_TIMEOUT_S = 5.0
TOKEN_LIFETIME_S = 12 * 3600
"""Lifetime of a VAPID token. Push services refuse more than 24 hours (RFC 8292, 2)."""

MAX_RETRY_S = 3600.0
RECORD_SIZE = 4096


class PushGone(Exception):
    """The push service does not know the subscription any more (404, 410)."""


class PushRefused(Exception):
    """The push service or the address guard refuses the push for good. A retry would fail in the same way."""


class PushDelayed(Exception):
    """The push service is unreachable, or accepts no push now. A retry may succeed after `retry_s`, if it is known."""

    def __init__(self, message: str, retry_s: float | None = None) -> None:
        super().__init__(message)
        self.retry_s = retry_s


@dataclass(frozen=True, slots=True)
class PushMessage:
    """A message to one browser. A later message with the same topic replaces one that was not delivered yet."""

    plaintext: bytes
    topic: str
    """At most 32 characters of base64url (RFC 8030, 5.4)."""


class WebPush:
    """Sends pushes, signed with the installation's VAPID key."""

    def __init__(self, transport: GuardedTransport, key: VapidKey, contact: str) -> None:
        """`contact` is a mailto: or https: URL by which operators of push services reach the operator."""
        self._transport = transport
        self._key = key
        self._contact = contact

    async def send(self, subscription: PushSubscription, message: PushMessage) -> None:
        """Sends a push. Raises: PushGone, PushRefused, PushDelayed."""
        try:
            async with asyncio.timeout(TIMEOUT_S):
                status, headers = await self._post(subscription, message)
        except EgressRefused as error:
            raise PushRefused(str(error)) from error
        except (httpx2.HTTPError, OSError, TimeoutError) as error:
            raise PushDelayed(f"{type(error).__name__}: {error}") from error
        if status in (404, 410):
            raise PushGone(f"HTTP {status}")
        if status == 429 or status >= 500:
            requested_s = retry_after_s(headers.get("retry-after", ""))
            raise PushDelayed(f"HTTP {status}", None if requested_s is None else min(requested_s, MAX_RETRY_S))
        if not 200 <= status < 300:
            raise PushRefused(f"HTTP {status}")

    async def _post(self, subscription: PushSubscription, message: PushMessage) -> tuple[int, httpx2.Headers]:
        url = web_url(subscription.url)
        if url.scheme != "https":
            raise EgressRefused("a push service has an https address")
        timeout = httpx2.Timeout(None, connect=CONNECT_TIMEOUT_S)
        request = httpx2.Request(
            "POST",
            url,
            headers=self._headers(url, message),
            content=encrypt(message.plaintext, subscription.public_key, subscription.auth_secret),
            extensions={"timeout": timeout.as_dict()},
        )
        response = await self._transport.handle_async_request(request)
        try:
            return response.status_code, response.headers
        finally:
            await response.aclose()

    def _headers(self, url: httpx2.URL, message: PushMessage) -> Mapping[str, str]:
        origin = f"{url.scheme}://{url.netloc.decode('ascii')}"
        claims = {"aud": origin, "exp": int(time.time()) + TOKEN_LIFETIME_S, "sub": self._contact}
        token = jwt.encode(claims, self._key.private_key, algorithm="ES256")
        return {
            "Authorization": f"vapid t={token}, k={self._key.public_text}",
            "Content-Encoding": "aes128gcm",
            "Content-Type": "application/octet-stream",
            "TTL": str(TTL_S),
            "Topic": message.topic,
            "Urgency": "normal",
        }


def encrypt(
    plaintext: bytes,
    receiver_key: bytes,
    auth_secret: bytes,
    sender_key: ec.EllipticCurvePrivateKey | None = None,
    salt: bytes | None = None,
) -> bytes:
    """Returns the body of a push, with the content coding aes128gcm in one record.

    `sender_key` and `salt` are random, unless a test passes those of an example.
    """
    own_key = sender_key or ec.generate_private_key(ec.SECP256R1())
    own_public = own_key.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
    random_salt = salt or os.urandom(16)
    shared = own_key.exchange(ec.ECDH(), ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), receiver_key))
    # RFC 8291, 3.4, then RFC 8188, 2.2 and 2.3.
    input_key = _hkdf(auth_secret, shared, b"WebPush: info\0" + receiver_key + own_public, 32)
    content_key = _hkdf(random_salt, input_key, b"Content-Encoding: aes128gcm\0", 16)
    nonce = _hkdf(random_salt, input_key, b"Content-Encoding: nonce\0", 12)
    # 0x02 delimits the last record from its padding, which is empty.
    record = AESGCM(content_key).encrypt(nonce, plaintext + b"\x02", None)
    header = random_salt + RECORD_SIZE.to_bytes(4, "big") + bytes([len(own_public)]) + own_public
    return header + record


def _hkdf(salt: bytes, key: bytes, info: bytes, length: int) -> bytes:
    return HKDF(SHA256(), length, salt, info).derive(key)

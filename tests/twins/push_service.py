"""A push service and its browsers: accepts what RFC 8030, 8291 and 8292 allow, and decrypts it as a browser does."""

import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import jwt
import orjson
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from storage.secrets.vapid_keys import base64url, base64url_bytes
from tests.certificates import create_tls_contexts
from tests.http_server import http_server

HOST = "127.0.0.1"


@dataclass
class SubscribedBrowser:
    """A browser with one subscription. `shown` has the displayed notifications by id, as the service worker keeps."""

    url: str
    private_key: ec.EllipticCurvePrivateKey = field(default_factory=lambda: ec.generate_private_key(ec.SECP256R1()))
    auth_secret: bytes = b"sixteen bytes..."
    pushes: list[dict[str, Any]] = field(default_factory=list)
    topics: list[str] = field(default_factory=list)
    statuses: list[int] = field(default_factory=list)
    """Statuses of the next answers. Afterwards, pushes are accepted."""

    @property
    def public_key(self) -> bytes:
        return self.private_key.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)

    @property
    def input(self) -> dict[str, str]:
        """The input of `registerPushDevice`."""
        key, secret = base64url(self.public_key), base64url(self.auth_secret)
        return {"endpoint": self.url, "publicKey": key, "authSecret": secret}

    @property
    def shown(self) -> dict[str, dict[str, Any]]:
        return {push["id"]: push for push in self.pushes}

    @property
    def titles(self) -> list[str]:
        return [push["title"] for push in self.pushes]


@dataclass
class PushService:
    """The running service."""

    origin: str
    browsers: dict[str, SubscribedBrowser] = field(default_factory=dict)
    on_push: Callable[[SubscribedBrowser], Awaitable[None]] | None = None
    """Runs after a push was delivered, and before it is answered."""

    def browser(self) -> SubscribedBrowser:
        """Returns a new browser that has subscribed."""
        name = str(len(self.browsers))
        browser = self.browsers[name] = SubscribedBrowser(f"{self.origin}/push/{name}")
        return browser

    async def receive(self, request: Request) -> Response:
        browser = self.browsers.get(request.path_params["name"])
        if browser is None:
            return Response(status_code=404)
        body = await request.body()
        refusal = self._refusal(request, body)
        if refusal is not None:
            return Response(refusal, 400)
        status = browser.statuses.pop(0) if browser.statuses else 201
        if status == 201:
            browser.pushes.append(orjson.loads(decrypt(browser, body)))
            browser.topics.append(request.headers["topic"])
            if self.on_push is not None:
                await self.on_push(browser)
        return Response(status_code=status, headers={"Retry-After": "7"} if status == 429 else {})

    def _refusal(self, request: Request, body: bytes) -> str | None:
        """Returns what is wrong with a push, or None."""
        headers = request.headers
        if not headers.get("ttl", "").isdigit():
            return "RFC 8030, 5.2: TTL is required."
        if not re.fullmatch(r"[\w-]{1,32}", headers.get("topic", ""), re.ASCII):
            return "RFC 8030, 5.4: Topic has at most 32 characters of base64url."
        if headers.get("content-encoding") != "aes128gcm" or len(body) > 4096:
            return "RFC 8291, 4: one record of aes128gcm; RFC 8030, 7.2: at most 4096 bytes."
        return self._vapid_refusal(headers.get("authorization", ""))

    def _vapid_refusal(self, authorization: str) -> str | None:
        match = re.fullmatch(r"vapid t=([\w.-]+), k=([\w-]+)", authorization, re.ASCII)
        if match is None:
            return "RFC 8292, 3: Authorization: vapid t=, k="
        key = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), base64url_bytes(match[2], 65))
        claims = jwt.decode(match[1], key, algorithms=["ES256"], audience=self.origin)
        if claims["exp"] > time.time() + 24 * 3600 or urlsplit(claims["sub"]).scheme not in ("mailto", "https"):
            return "RFC 8292, 2: exp at most 24 h ahead; sub is a mailto: or https: URI."
        return None


def decrypt(browser: SubscribedBrowser, body: bytes) -> bytes:
    """Returns the plaintext of a push (RFC 8291, 3.4; RFC 8188, 2.1)."""
    salt, key_length = body[:16], body[20]
    assert int.from_bytes(body[16:20], "big") >= len(body[21 + key_length :])
    sender, record = body[21 : 21 + key_length], body[21 + key_length :]
    shared = browser.private_key.exchange(
        ec.ECDH(), ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), sender)
    )
    info = b"WebPush: info\x00" + browser.public_key + sender
    input_key = HKDF(SHA256(), 32, browser.auth_secret, info).derive(shared)
    key = HKDF(SHA256(), 16, salt, b"Content-Encoding: aes128gcm\x00").derive(input_key)
    nonce = HKDF(SHA256(), 12, salt, b"Content-Encoding: nonce\x00").derive(input_key)
    plaintext = AESGCM(key).decrypt(nonce, record, None).rstrip(b"\x00")
    assert plaintext[-1] == 2, "The delimiter of the last record"
    return plaintext[:-1]


@asynccontextmanager
async def push_service(folder: Path) -> AsyncIterator[tuple[PushService, Any]]:
    """Serves a push service by TLS. Yields it with the client's context that trusts it."""
    server_side, client_side = create_tls_contexts(HOST, folder)
    service = PushService("")
    app = Starlette(routes=[Route("/push/{name}", service.receive, methods=["POST"])])
    async with http_server(app, server_side) as port:
        service.origin = f"https://{HOST}:{port}"
        yield service, client_side

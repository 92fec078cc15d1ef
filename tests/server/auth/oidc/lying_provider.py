"""An identity provider on a real socket that a test makes lie: in its metadata, its ID token or its userinfo."""

import asyncio
import base64
import hashlib
import json
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import parse_qs, parse_qsl, urlsplit

import jwt

from tests.server.auth.identity_provider import RSA_KEY, rsa_jwk

CLIENT_ID, SUB = "noroshi", "42"
DISCOVERY = "/.well-known/openid-configuration"


class LyingProvider:
    """A provider that checks PKCE and gives a token for one code. Each attribute with claims changes true answers.

    Discovery waits until `gate` is set. A claim whose value is `...` is left out.
    """

    def __init__(self) -> None:
        self.issuer = ""
        self.metadata: dict[str, Any] = {}
        self.claims: dict[str, Any] = {}
        self.user_info: dict[str, Any] = {}
        self.key, self.algorithm, self.header = RSA_KEY, "RS256", {"kid": "k"}
        self.status = 200
        self.requests: Counter[str] = Counter()
        self.gate = asyncio.Event()
        self.gate.set()
        self._authorization: dict[str, str] = {}

    def authorize(self, url: str) -> dict[str, str]:
        """Returns the parameters of the callback for the address that begins a sign-in."""
        self._authorization = {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()}
        return {"code": "c", "state": self._authorization["state"], "iss": self.issuer}

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answers one request."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        length = next((line[15:] for line in head.lower().splitlines() if line.startswith("content-length:")), "0")
        form = dict(parse_qsl((await reader.readexactly(int(length))).decode()))
        path = head.split()[1]
        self.requests[path] += 1
        if path == DISCOVERY:
            await self.gate.wait()
        status, document = self._answer(path, form)
        body = json.dumps({name: value for name, value in document.items() if value is not ...}).encode()
        writer.write(f"HTTP/1.1 {status} X\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode() + body)
        await writer.drain()
        writer.close()

    def _answer(self, path: str, form: dict[str, str]) -> tuple[int, dict[str, Any]]:
        if path == DISCOVERY:
            return self.status, self._metadata() | self.metadata
        if path == "/keys":
            return 200, {"keys": [rsa_jwk("k")]}
        if path == "/userinfo":
            return 200, {"sub": SUB, "name": "Ann"} | self.user_info
        challenge = form.get("code_verifier", "")
        if self._authorization.get("code_challenge_method") == "S256":
            digest = hashlib.sha256(challenge.encode()).digest()
            challenge = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
        if challenge != self._authorization.get("code_challenge"):
            return 400, {"error": "invalid_grant"}
        return 200, {"access_token": "a", "id_token": self._id_token()}

    def _metadata(self) -> dict[str, Any]:
        names = {"authorization_endpoint": "/authorize", "token_endpoint": "/token", "jwks_uri": "/keys"}
        names |= {"userinfo_endpoint": "/userinfo"}
        addresses = {name: f"{self.issuer}{path}" for name, path in names.items()}
        return addresses | {"issuer": self.issuer, "authorization_response_iss_parameter_supported": True}

    def _id_token(self) -> str:
        now = int(time.time())
        claims = {"iss": self.issuer, "aud": CLIENT_ID, "sub": SUB, "iat": now, "exp": now + 60}
        claims |= {"nonce": self._authorization.get("nonce"), **self.claims}
        present = {name: value for name, value in claims.items() if value is not ...}
        return jwt.encode(present, self.key, algorithm=self.algorithm, headers=self.header)


@asynccontextmanager
async def lying_provider() -> AsyncIterator[LyingProvider]:
    """Serves a provider, which tells the truth at first."""
    provider = LyingProvider()
    server = await asyncio.start_server(provider.serve, "127.0.0.1", 0)
    provider.issuer = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        async with server:
            yield provider
    finally:
        provider.gate.set()

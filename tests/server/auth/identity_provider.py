"""An identity provider for tests: its keys, the tokens that it signs, and its HTTP server."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from server.auth.tokens import TokenVerifier
from tests.server.auth.example_tokens import EXP, SECRET


class FakeIdentityProvider:
    """An identity provider on a real socket. Tests change its key set and its status.

    Answers wait until `gate` is set.
    """

    def __init__(self) -> None:
        self.url, self.fetches, self.status = "", 0, 200
        self.key_set: object = {"keys": []}
        self.gate = asyncio.Event()
        self.gate.set()

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        self.fetches += 1
        await self.gate.wait()
        body = json.dumps(self.key_set).encode()
        head = f"HTTP/1.1 {self.status} X\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        writer.write(head.encode() + body)
        await writer.drain()
        writer.close()


@asynccontextmanager
async def provider_with(*keys: dict[str, Any]) -> AsyncIterator[FakeIdentityProvider]:
    """Serves an identity provider with these keys."""
    provider = FakeIdentityProvider()
    provider.key_set = {"keys": list(keys)}
    server = await asyncio.start_server(provider.answer, "127.0.0.1", 0)
    provider.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/jwks.json"
    async with server:
        yield provider


RSA_KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)
WEAK_RSA_KEY = rsa.generate_private_key(public_exponent=65537, key_size=1024)
EC_KEY = ec.generate_private_key(ec.SECP256R1())
P384_KEY = ec.generate_private_key(ec.SECP384R1())


def rsa_jwk(kid: str | None, key: rsa.RSAPrivateKey = RSA_KEY, **more: Any) -> dict[str, Any]:
    id_field = {} if kid is None else {"kid": kid}
    return jwt.algorithms.RSAAlgorithm.to_jwk(key.public_key(), as_dict=True) | id_field | more


def ec_jwk(kid: str, key: ec.EllipticCurvePrivateKey = EC_KEY) -> dict[str, Any]:
    return jwt.algorithms.ECAlgorithm.to_jwk(key.public_key(), as_dict=True) | {"kid": kid}


def provider_token(key: Any, algorithm: str, kid: str | None = None, **claims: Any) -> str:
    """Returns a token that is signed with a key of the identity provider."""
    headers = None if kid is None else {"kid": kid}
    return jwt.encode({"sub": "u1", "org": "acme", "exp": EXP} | claims, key, algorithm=algorithm, headers=headers)


def verifier_of(provider: FakeIdentityProvider, monotonic: Callable[[], float] = time.monotonic) -> TokenVerifier:
    return TokenVerifier(secret=SECRET, jwks_url=provider.url, monotonic=monotonic)

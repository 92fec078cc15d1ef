"""An authenticator of passkeys in software, which can also answer wrongly."""

import base64
import hashlib
import json
import secrets
import struct
from dataclasses import dataclass, field, replace
from typing import Any

import cbor2
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec

PRESENT, VERIFIED, MAY_BE_COPIED, HAS_CREDENTIAL = 0x01, 0x04, 0x08, 0x40


def encoded(value: bytes) -> str:
    return base64.urlsafe_b64encode(value).rstrip(b"=").decode()


def decoded(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


@dataclass
class SoftwareAuthenticator:
    """One passkey on a device, and the browser that uses it. Tests may set each field to a false value."""

    origin: str
    rp_id: str
    flags: int = PRESENT | VERIFIED
    counter: int = 0
    step: int = 1
    """How much the counter rises with each use."""

    is_framed: bool = False
    credential: bytes = field(default_factory=lambda: secrets.token_bytes(32))
    key: ec.EllipticCurvePrivateKey = field(default_factory=lambda: ec.generate_private_key(ec.SECP256R1()))
    handle: bytes = b""

    def lying(self, **fields: Any) -> "SoftwareAuthenticator":
        """Returns a copy with the same key, and with the given, false fields."""
        return replace(self, **fields)

    def create(self, options: dict[str, Any]) -> dict[str, Any]:
        """Returns the answer to options of a registration."""
        self.handle = decoded(options["user"]["id"])
        numbers = self.key.public_key().public_numbers()
        key = {1: 2, 3: -7, -1: 1, -2: numbers.x.to_bytes(32, "big"), -3: numbers.y.to_bytes(32, "big")}
        attested = bytes(16) + struct.pack(">H", len(self.credential)) + self.credential + cbor2.dumps(key)
        data = self._data(HAS_CREDENTIAL) + attested
        attestation = cbor2.dumps({"fmt": "none", "attStmt": {}, "authData": data})
        client_data = self._client_data("webauthn.create", options)
        return self._answer({"clientDataJSON": encoded(client_data), "attestationObject": encoded(attestation)})

    def sign_in(self, options: dict[str, Any]) -> dict[str, Any]:
        """Returns the answer to options of a sign-in."""
        self.counter += self.step
        data, client_data = self._data(), self._client_data("webauthn.get", options)
        signature = self.key.sign(data + hashlib.sha256(client_data).digest(), ec.ECDSA(hashes.SHA256()))
        response = {"clientDataJSON": client_data, "authenticatorData": data, "signature": signature}
        return self._answer({name: encoded(value) for name, value in (response | {"userHandle": self.handle}).items()})

    def _data(self, more_flags: int = 0) -> bytes:
        return hashlib.sha256(self.rp_id.encode()).digest() + struct.pack(">BI", self.flags | more_flags, self.counter)

    def _client_data(self, kind: str, options: dict[str, Any]) -> bytes:
        data = {"type": kind, "challenge": options["challenge"], "origin": self.origin, "crossOrigin": self.is_framed}
        return json.dumps(data).encode()

    def _answer(self, response: dict[str, str]) -> dict[str, Any]:
        id_ = encoded(self.credential)
        return {"id": id_, "rawId": id_, "type": "public-key", "response": response, "clientExtensionResults": {}}

"""VAPID keys: the key pair by which push services recognize this installation (RFC 8292)."""

import base64
from dataclasses import dataclass

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

PRIVATE_KEY_BYTES = 32
_CURVE = ec.SECP256R1()


@dataclass(frozen=True, slots=True)
class VapidKey:
    """A key pair on the curve P-256."""

    private_key: ec.EllipticCurvePrivateKey

    @property
    def public_text(self) -> str:
        """The public key as browsers and push services expect it: an uncompressed point in base64url."""
        point = self.private_key.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
        return base64url(point)

    @property
    def private_text(self) -> str:
        """The private key as the setting holds it: 32 bytes in base64url."""
        number = self.private_key.private_numbers().private_value
        return base64url(number.to_bytes(PRIVATE_KEY_BYTES, "big"))


def new_vapid_key() -> VapidKey:
    """Returns a new random key pair."""
    return VapidKey(ec.generate_private_key(_CURVE))


def vapid_key(private_text: str) -> VapidKey:
    """Returns the key pair of a private key. Raises: ValueError for any other text."""
    number = int.from_bytes(base64url_bytes(private_text, PRIVATE_KEY_BYTES), "big")
    return VapidKey(ec.derive_private_key(number, _CURVE))


def base64url(data: bytes) -> str:
    """Returns the bytes in base64url without padding."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def base64url_bytes(text: str, length: int) -> bytes:
    """Returns so many bytes, written in base64url with or without padding. Raises: ValueError for any other text."""
    unpadded = text.rstrip("=")
    data = base64.b64decode(unpadded + "=" * (-len(unpadded) % 4), altchars=b"-_", validate=True)
    if len(data) != length:
        raise ValueError(f"expected {length} bytes in base64url")
    return data


def is_curve_point(data: bytes) -> bool:
    """Returns whether the bytes are an uncompressed point of P-256."""
    try:
        ec.EllipticCurvePublicKey.from_encoded_point(_CURVE, data)
    except ValueError:
        return False
    return len(data) == 65

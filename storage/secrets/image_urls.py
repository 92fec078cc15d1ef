"""Signed URLs under which this server serves remote images: /images/{signature}/{encoded URL}. Pure; no I/O.

Without the signature, the image route would be an open proxy. With it, the route serves only images that the API has
returned.
"""

import hmac
from base64 import urlsafe_b64decode, urlsafe_b64encode

_KEY_LABEL = b"noroshi/image-urls/v1"
_SIGNATURE_BYTES = 16


class ImageUrls:
    """Signs and verifies image URLs. The key is derived from `secret` for this purpose only."""

    def __init__(self, base_url: str, secret: bytes) -> None:
        self._base_url = base_url.rstrip("/")
        self._key = hmac.digest(secret, _KEY_LABEL, "sha256")

    def sign(self, remote_url: str) -> str:
        """Returns this server's URL for the image at `remote_url`. The same input gives the same URL."""
        encoded = _encode(remote_url.encode())
        return f"{self._base_url}/images/{self._signature(encoded)}/{encoded}"

    def verify(self, signature: str, encoded: str) -> str | None:
        """Returns the remote URL, or None for an invalid signature. Compares in constant time."""
        if not hmac.compare_digest(signature.encode(), self._signature(encoded).encode()):
            return None
        return urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4)).decode()

    def _signature(self, encoded: str) -> str:
        return _encode(hmac.digest(self._key, encoded.encode(), "sha256")[:_SIGNATURE_BYTES])


def _encode(data: bytes) -> str:
    return urlsafe_b64encode(data).rstrip(b"=").decode()

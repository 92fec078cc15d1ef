"""Addresses of remote images on this server, /images/{signature}/{encoded URL}. Pure: signs and verifies, no more.

The signature keeps the image route from being an open proxy: it serves only what the API has shown.
"""

import hmac
from base64 import urlsafe_b64decode, urlsafe_b64encode

_KEY_LABEL = b"noroshi/image-urls/v1"
_SIGNATURE_BYTES = 16


class ImageUrls:
    """Signs with a key of its own, derived from the auth secret, so that neither can stand in for the other."""

    def __init__(self, base_url: str, secret: bytes) -> None:
        self._base_url = base_url.rstrip("/")
        self._key = hmac.digest(secret, _KEY_LABEL, "sha256")

    def sign(self, remote_url: str) -> str:
        """The address under which this server shows the image at `remote_url`: the same one every time."""
        encoded = _encode(remote_url.encode())
        return f"{self._base_url}/images/{self._signature(encoded)}/{encoded}"

    def verify(self, signature: str, encoded: str) -> str | None:
        """The remote URL, or None when this server never signed it. Takes the same time for each wrong signature."""
        if not hmac.compare_digest(signature.encode(), self._signature(encoded).encode()):
            return None
        return urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4)).decode()

    def _signature(self, encoded: str) -> str:
        return _encode(hmac.digest(self._key, encoded.encode(), "sha256")[:_SIGNATURE_BYTES])


def _encode(data: bytes) -> str:
    return urlsafe_b64encode(data).rstrip(b"=").decode()

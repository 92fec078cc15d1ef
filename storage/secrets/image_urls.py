"""Signed URLs under which this server serves remote images: /images/{signature}/{encoded URL}/{id of a copy}. No I/O.

Images of which no copy is ever stored, such as media of posts, have URLs without the last segment.

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

    def sign(self, remote_url: str, copy_id: str = "") -> str:
        """Returns this server's URL for the image at `remote_url`. The same input gives the same URL.

        `copy_id` is the id that a stored copy of the image has, if there is one.
        """
        path = _path(_encode(remote_url.encode()), copy_id)
        return f"{self._base_url}/images/{self._signature(path)}/{path}"

    def verify(self, signature: str, encoded: str, copy_id: str = "") -> str | None:
        """Returns the remote URL, or None for an invalid signature. Compares in constant time."""
        if not hmac.compare_digest(signature.encode(), self._signature(_path(encoded, copy_id)).encode()):
            return None
        return urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4)).decode()

    def _signature(self, encoded: str) -> str:
        return _encode(hmac.digest(self._key, encoded.encode(), "sha256")[:_SIGNATURE_BYTES])


def _path(encoded: str, copy_id: str) -> str:
    return f"{encoded}/{copy_id}" if copy_id else encoded


def _encode(data: bytes) -> str:
    return urlsafe_b64encode(data).rstrip(b"=").decode()

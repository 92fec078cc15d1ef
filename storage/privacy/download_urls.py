"""Signed URLs for downloads of exports: /exports/{id}?expires=…&signature=…, valid for ten minutes. Pure; no I/O."""

import hmac
import time

VALID_S = 600
_KEY_LABEL = b"noroshi/export-urls/v1"


class DownloadUrls:
    """Signs and verifies URLs. The key is derived from `secret` for this purpose only."""

    def __init__(self, base_url: str, secret: bytes) -> None:
        self._base_url = base_url.rstrip("/")
        self._key = hmac.digest(secret, _KEY_LABEL, "sha256")

    def sign(self, export_id: str) -> str:
        """Returns the URL of an export, valid for ten minutes by the clock of this host."""
        expires = str(int(time.time()) + VALID_S)
        return f"{self._base_url}/exports/{export_id}?expires={expires}&signature={self._signature(export_id, expires)}"

    def is_valid(self, export_id: str, expires: str, signature: str) -> bool:
        """Returns whether the URL was signed and has not expired. Compares in constant time."""
        if not hmac.compare_digest(signature.encode(), self._signature(export_id, expires).encode()):
            return False
        return int(expires) > time.time()

    def _signature(self, export_id: str, expires: str) -> str:
        return hmac.digest(self._key, f"{export_id}\0{expires}".encode(), "sha256").hex()

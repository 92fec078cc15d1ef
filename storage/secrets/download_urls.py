"""Signed URLs for downloads from a folder of this server: /exports/{id}?expires=…&signature=…, or /media/{id}?…"""

import hmac
import time

from storage.mongo import Mongo
from storage.secrets.shared_secrets import shared_secret

VALID_S = 600
MEDIA_FOLDER = "media"
_KEY_LABEL = b"noroshi/export-urls/v1"


class DownloadUrls:
    """Signs and verifies the URLs of a folder. The key is derived from `secret`, which each folder has for itself."""

    def __init__(self, base_url: str, secret: bytes, folder: str = "exports") -> None:
        self._folder_url = f"{base_url.rstrip('/')}/{folder}"
        self._key = hmac.digest(secret, _KEY_LABEL, "sha256")

    def sign(self, id_: str) -> str:
        """Returns the URL of a download, valid for ten minutes by the clock of this host."""
        return self.sign_until(id_, int(time.time()) + VALID_S)

    def sign_until(self, id_: str, expires_at_s: int) -> str:
        """Returns the URL of a download, valid until a Unix time. The same input gives the same URL."""
        expires = str(expires_at_s)
        return f"{self._folder_url}/{id_}?expires={expires}&signature={self._signature(id_, expires)}"

    def is_valid(self, id_: str, expires: str, signature: str) -> bool:
        """Returns whether the URL was signed and has not expired. Compares in constant time."""
        if not hmac.compare_digest(signature.encode(), self._signature(id_, expires).encode()):
            return False
        return int(expires) > time.time()

    def _signature(self, id_: str, expires: str) -> str:
        return hmac.digest(self._key, f"{id_}\0{expires}".encode(), "sha256").hex()


async def media_urls(mongo: Mongo, base_url: str) -> DownloadUrls:
    """Returns the URLs of files of scheduled posts, with the secret that all processes share."""
    return DownloadUrls(base_url, await shared_secret(mongo, "media_urls"), MEDIA_FOLDER)

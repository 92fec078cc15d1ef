"""Encrypts what connected accounts are opened with. The keys come from the settings, newest first.

AES-256-GCM, bound to the account that it belongs to, so that a ciphertext moved to another document opens nothing.
"""

import hashlib
import hmac
import secrets
from collections.abc import Mapping

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from storage.errors import Unavailable
from storage.mongo import Document

NONCE_BYTES = 12


class CredentialsLost(Exception):
    """The key that encrypted them is not among the keys, or they are not what was encrypted."""


class CredentialCipher:
    """Seals with the newest key; opens with whichever sealed."""

    def __init__(self, keys: Mapping[str, bytes]) -> None:
        """`keys` by version, newest first; without any nothing can be sealed."""
        self._keys = dict(keys)

    def fingerprint(self, secret: str) -> str:
        """The same for the same secret, under the newest key; tells nothing to who lacks it. Raises: Unavailable."""
        return hmac.new(self._newest()[1], secret.encode(), hashlib.sha256).hexdigest()

    def seal(self, secret: str, account_id: str) -> Document:
        """The stored form. Raises: Unavailable without a key."""
        version, key = self._newest()
        nonce = secrets.token_bytes(NONCE_BYTES)
        sealed = AESGCM(key).encrypt(nonce, secret.encode(), account_id.encode())
        return {"version": version, "nonce": nonce, "sealed": sealed}

    def open(self, stored: Document, account_id: str) -> str:
        """What was sealed. Raises: CredentialsLost."""
        key = self._keys.get(stored["version"])
        if key is None:
            raise CredentialsLost(f"There is no key of version {stored['version']}.")
        try:
            return AESGCM(key).decrypt(stored["nonce"], stored["sealed"], account_id.encode()).decode()
        except InvalidTag:
            raise CredentialsLost("The key does not open these credentials.") from None

    def _newest(self) -> tuple[str, bytes]:
        for version, key in self._keys.items():
            return version, key
        raise Unavailable("No accounts can be connected: NOROSHI_CREDENTIAL_KEYS is not set on this server.")

"""Encryption of connected accounts' credentials, with keys from the settings.

Uses AES-256-GCM with the account's id as associated data. A ciphertext that was copied to another account's document
can therefore not be decrypted.
"""

import hashlib
import hmac
import secrets
from collections.abc import Mapping
from typing import TypedDict

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from storage.errors import Unavailable

NONCE_BYTES = 12


class CredentialsLost(Exception):
    """Stored credentials cannot be decrypted: their key is missing, or they were changed."""


class SealedSecret(TypedDict):
    """An encrypted secret, as stored in its account's document."""

    version: str
    """Version of the key."""

    nonce: bytes
    """Random nonce of 12 bytes, used once."""

    sealed: bytes
    """Ciphertext and authentication tag."""


class CredentialCipher:
    """Encrypts with the newest key, and decrypts with the key by which the secret was encrypted."""

    def __init__(self, keys: Mapping[str, bytes]) -> None:
        """Takes `keys` by version, newest first. Without keys, nothing can be encrypted."""
        self._keys = dict(keys)

    def fingerprint(self, secret: str) -> str:
        """Returns the secret's HMAC under the newest key, by which secrets are compared. Raises: Unavailable."""
        return hmac.new(self._newest()[1], secret.encode(), hashlib.sha256).hexdigest()

    def seal(self, secret: str, account_id: str) -> SealedSecret:
        """Returns the secret encrypted for an account. Raises: Unavailable without a key."""
        version, key = self._newest()
        nonce = secrets.token_bytes(NONCE_BYTES)
        sealed = AESGCM(key).encrypt(nonce, secret.encode(), account_id.encode())
        return {"version": version, "nonce": nonce, "sealed": sealed}

    def open(self, stored: SealedSecret, account_id: str) -> str:
        """Returns the decrypted secret. Raises: CredentialsLost."""
        key = self._keys.get(stored["version"])
        if key is None:
            raise CredentialsLost(f"The encryption key of version {stored['version']!r} is not configured.")
        try:
            return AESGCM(key).decrypt(stored["nonce"], stored["sealed"], account_id.encode()).decode()
        except InvalidTag:
            raise CredentialsLost("The credentials cannot be decrypted with their key.") from None

    def _newest(self) -> tuple[str, bytes]:
        for version, key in self._keys.items():
            return version, key
        raise Unavailable(
            "Accounts cannot be connected, because this server has no encryption keys. Set NOROSHI_CREDENTIAL_KEYS."
        )

"""Encrypts what connected accounts are opened with. The keys come from the settings, newest first.

AES-256-GCM, bound to the account that it belongs to, so that a ciphertext moved to another document opens nothing.
"""

import base64
import binascii
import secrets
from collections.abc import Mapping

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from storage.errors import Unavailable
from storage.mongo import Document

KEY_BYTES = 32
NONCE_BYTES = 12


class CredentialsLost(Exception):
    """The key that encrypted them is not among the keys, or they are not what was encrypted."""


def credential_keys(pairs: str) -> dict[str, bytes]:
    """Keys by version, in the order given: "2:base64,1:base64". Raises: ValueError, which never tells a key."""
    keys: dict[str, bytes] = {}
    for pair in filter(None, (each.strip() for each in pairs.split(","))):
        version, colon, encoded = pair.partition(":")
        if not (version and colon) or version in keys:
            raise ValueError("not version:base64 pairs of different versions")
        keys[version] = _decoded(encoded)
    return keys


def _decoded(encoded: str) -> bytes:
    try:
        key = base64.b64decode(encoded.translate({ord("-"): "+", ord("_"): "/"}).rstrip("=") + "==", validate=True)
    except binascii.Error:
        raise ValueError("a key is not base64") from None
    if len(key) != KEY_BYTES:
        raise ValueError(f"a key is not {KEY_BYTES} bytes long")
    return key


class Credentials:
    """Seals with the newest key; opens with whichever sealed."""

    def __init__(self, keys: Mapping[str, bytes]) -> None:
        """`keys` by version, newest first; without any nothing can be sealed."""
        self._ciphers = {version: AESGCM(key) for version, key in keys.items()}

    def seal(self, secret: str, account_id: str) -> Document:
        """The stored form. Raises: Unavailable without a key."""
        version = next(iter(self._ciphers), None)
        if version is None:
            raise Unavailable("No accounts can be connected: NOROSHI_CREDENTIAL_KEYS is not set on this server.")
        nonce = secrets.token_bytes(NONCE_BYTES)
        sealed = self._ciphers[version].encrypt(nonce, secret.encode(), account_id.encode())
        return {"version": version, "nonce": nonce, "sealed": sealed}

    def open(self, stored: Document, account_id: str) -> str:
        """What was sealed. Raises: CredentialsLost."""
        cipher = self._ciphers.get(stored["version"])
        if cipher is None:
            raise CredentialsLost(f"There is no key of version {stored['version']}.")
        try:
            return cipher.decrypt(stored["nonce"], stored["sealed"], account_id.encode()).decode()
        except InvalidTag:
            raise CredentialsLost("The key does not open these credentials.") from None

"""Encrypted cookies, in which a browser holds values between two requests of a sign-in."""

import base64
from collections.abc import Sequence
from typing import Any

import orjson
from cryptography.fernet import Fernet, InvalidToken


class SealedCookies:
    """Encrypts values, and decrypts them again for a limited time. All processes share the key."""

    def __init__(self, key: bytes, lifetime_s: int) -> None:
        """Takes a key of 32 bytes."""
        self._fernet = Fernet(base64.urlsafe_b64encode(key))
        self._lifetime_s = lifetime_s

    def seal(self, values: Sequence[object]) -> str:
        """Returns the value of a cookie that holds the values."""
        return self._fernet.encrypt(orjson.dumps(values)).decode()

    def open(self, cookie: str | None) -> list[Any] | None:
        """Returns the values of a cookie. None without a cookie, for a forged cookie, and after its lifetime."""
        try:
            token = (cookie or "").encode("utf-8", "replace")
            values: list[Any] = orjson.loads(self._fernet.decrypt(token, ttl=self._lifetime_s))
        except InvalidToken:
            return None
        return values

"""The keys that webhook secrets stand for (docs/interfaces.md, Signed webhooks)."""

import base64
import binascii

PREFIX = "whsec_"


def webhook_key(secret: str) -> bytes:
    """The key that a secret stands for. Raises: ValueError when it is no base64 after `whsec_`, or empty."""
    try:
        key = base64.b64decode(secret[len(PREFIX) :], validate=True) if secret.startswith(PREFIX) else secret.encode()
    except binascii.Error:
        raise ValueError(f"no base64 after {PREFIX}") from None
    if not key:
        raise ValueError("empty")
    return key

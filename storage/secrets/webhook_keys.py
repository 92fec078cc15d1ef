"""Signing keys of webhook secrets (docs/interfaces.md, Signed webhooks)."""

import base64
import binascii

PREFIX = "whsec_"


def webhook_key(secret: str) -> bytes:
    """Returns the key of a secret: the decoded base64 after `whsec_`, or the bytes of a secret without this prefix.

    Raises: ValueError for invalid base64 and for an empty key.
    """
    try:
        key = base64.b64decode(secret[len(PREFIX) :], validate=True) if secret.startswith(PREFIX) else secret.encode()
    except binascii.Error:
        raise ValueError(f"The part after {PREFIX} is not valid base64.") from None
    if not key:
        raise ValueError("The secret is empty.")
    return key

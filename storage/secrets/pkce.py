"""Proof Key for Code Exchange (RFC 7636), with the method S256."""

import base64
import hashlib


def challenge(verifier: str) -> str:
    """Returns the hash of a verifier. The provider gets the hash first, and the verifier with the code."""
    digest = hashlib.sha256(verifier.encode()).digest()
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()

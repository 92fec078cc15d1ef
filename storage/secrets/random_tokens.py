"""Random tokens, such as the tokens of links and sessions. Only their digests are stored."""

import hashlib
import secrets

TOKEN_BYTES = 32


def new_token() -> str:
    """Returns a token of 256 random bits, in letters that a URL and a cookie may contain."""
    return secrets.token_urlsafe(TOKEN_BYTES)


def token_digest(token: str) -> str:
    """Returns the form in which a token is stored and found. A token is random, so the SHA-256 needs no salt."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()

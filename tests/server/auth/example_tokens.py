"""Tokens of tests: valid tokens, and tokens that PyJWT refuses to sign."""

import base64
import hmac
import json
import time
from typing import Any

import jwt

SECRET = "a secret of the tests, longer than 32 bytes"
EXP = time.time() + 3600


def signed_token(payload: dict[str, Any], secret: str = SECRET, algorithm: str = "HS256") -> str:
    """Returns a token with valid claims, changed by `payload`."""
    return jwt.encode({"sub": "u1", "org": "acme", "exp": EXP} | payload, secret, algorithm=algorithm)


def segment(value: object) -> str:
    """Returns a token's header or payload: JSON in base64url."""
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()


def hmac_signed_token(header: dict[str, Any], payload: dict[str, Any], secret: bytes) -> str:
    """Returns a signed token, even with a header or payload that PyJWT refuses to sign."""
    signing_input = f"{segment(header)}.{segment(payload)}"
    signature = hmac.digest(secret, signing_input.encode(), "sha256")
    return f"{signing_input}.{base64.urlsafe_b64encode(signature).rstrip(b'=').decode()}"


def unchecked_token(claims: dict[str, Any]) -> str:
    """Returns a token with valid claims, changed by `claims`, without PyJWT's checks."""
    payload = {"sub": "u1", "org": "acme", "exp": EXP} | claims
    return hmac_signed_token({"alg": "HS256"}, payload, SECRET.encode())

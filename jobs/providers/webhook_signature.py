"""Standard Webhooks: how a request says who sent it, and how that is checked (interfaces.md)."""

import base64
import hashlib
import hmac

from storage.webhook_keys import webhook_key

TOLERANCE_S = 300


def signed_headers(secret: str, id_: str, at_s: int, content: bytes) -> dict[str, str]:
    """The three headers. `content` is the body, or the path of a GET."""
    return {
        "webhook-id": id_,
        "webhook-timestamp": str(at_s),
        "webhook-signature": _signature(secret, id_, str(at_s), content),
    }


def is_signed(secret: str, id_: str, timestamp: str, signatures: str, content: bytes, now_s: float) -> bool:
    """Whether one of the signatures is right and not older or newer than 300 s."""
    if not timestamp.isdecimal() or abs(now_s - int(timestamp)) > TOLERANCE_S:
        return False
    expected = _signature(secret, id_, timestamp, content).encode()
    return any(hmac.compare_digest(expected, each.encode()) for each in signatures.split(" "))


def _signature(secret: str, id_: str, timestamp: str, content: bytes) -> str:
    signed = b".".join((id_.encode(), timestamp.encode(), content))
    digest = hmac.new(webhook_key(secret), signed, hashlib.sha256).digest()
    return f"v1,{base64.b64encode(digest).decode()}"

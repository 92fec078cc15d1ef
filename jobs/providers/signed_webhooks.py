"""Standard Webhooks: signing what we send, and checking what is sent to us (docs/interfaces.md). Pure; keeps nothing.

Whoever receives must remember ids itself: a message that was signed once may come again.
"""

import base64
import hashlib
import hmac
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from storage.secrets.webhook_keys import webhook_key

ID, TIMESTAMP, SIGNATURE = "webhook-id", "webhook-timestamp", "webhook-signature"
TOLERANCE_S = 300
MAX_SIGNATURES = 10

_VERSION = "v1,"


class SignatureRefused(Exception):
    """The message is not signed by the secret, or not recently. The message says which."""


@dataclass(frozen=True, slots=True)
class Signed:
    """What was checked: the id that names the message on every try, and when it was signed (Unix seconds)."""

    id: str
    timestamp: int


def sign(secret: str, id_: str, timestamp: int, content: bytes) -> dict[str, str]:
    """The headers of a message. `content` is the body as it is sent; of a GET the path with its query."""
    return {ID: id_, TIMESTAMP: str(timestamp), SIGNATURE: _VERSION + _digest(secret, id_, timestamp, content)}


def verify(secret: str, headers: Mapping[str, str], content: bytes, now_s: float) -> Signed:
    """What the headers say, once they are believed. `headers` are asked for in lower case.

    Raises: SignatureRefused for a missing header, one more than 300 s old or ahead, and no signature that fits.
    """
    id_, timestamp = headers.get(ID, ""), headers.get(TIMESTAMP, "")
    if not (id_ and timestamp.isascii() and timestamp.isdigit() and len(timestamp) <= 12):
        raise SignatureRefused(f"{ID} or {TIMESTAMP} is missing or malformed")
    signed = Signed(id_, int(timestamp))
    if abs(now_s - signed.timestamp) > TOLERANCE_S:
        raise SignatureRefused(f"{TIMESTAMP} is more than {TOLERANCE_S} s away from now")
    expected = _digest(secret, id_, signed.timestamp, content).encode()
    # Every one is compared, each in constant time.
    fitting = [hmac.compare_digest(each.encode(), expected) for each in _signatures(headers.get(SIGNATURE, ""))]
    if not any(fitting):
        raise SignatureRefused(f"no {SIGNATURE} fits")
    return signed


def _signatures(header: str) -> Iterator[str]:
    for part in header.split(" ")[:MAX_SIGNATURES]:
        if part.startswith(_VERSION):
            yield part.removeprefix(_VERSION)


def _digest(secret: str, id_: str, timestamp: int, content: bytes) -> str:
    message = f"{id_}.{timestamp}.".encode() + content
    return base64.b64encode(hmac.new(webhook_key(secret), message, hashlib.sha256).digest()).decode()

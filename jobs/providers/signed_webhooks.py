"""Standard Webhooks: signs outgoing messages and verifies incoming messages (docs/interfaces.md).

This module keeps no state. A signed message may be replayed, so receivers must remember the ids of messages.
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
    """The signature is missing, does not match, or is too old. The exception's message says which."""


@dataclass(frozen=True, slots=True)
class VerifiedMessage:
    """A verified message. Every attempt has the same `id`; `timestamp` is when it was signed (Unix seconds)."""

    id: str
    timestamp: int


def sign(secret: str, id_: str, timestamp: int, content: bytes) -> dict[str, str]:
    """Returns the headers of a message. `content` is the body, or the path with its query for GET."""
    return {ID: id_, TIMESTAMP: str(timestamp), SIGNATURE: _VERSION + _digest(secret, id_, timestamp, content)}


def verify(secret: str, headers: Mapping[str, str], content: bytes, now_s: float) -> VerifiedMessage:
    """Verifies a message by its headers, whose names are in lower case.

    Raises: SignatureRefused if a header is missing, the timestamp is more than 300 s from now, or no signature matches.
    """
    id_, timestamp = headers.get(ID, ""), headers.get(TIMESTAMP, "")
    if not (id_ and timestamp.isascii() and timestamp.isdigit() and len(timestamp) <= 12):
        raise SignatureRefused(f"{ID} or {TIMESTAMP} is missing or malformed")
    signed = VerifiedMessage(id_, int(timestamp))
    if abs(now_s - signed.timestamp) > TOLERANCE_S:
        raise SignatureRefused(f"{TIMESTAMP} is more than {TOLERANCE_S} s away from now")
    expected = _digest(secret, id_, signed.timestamp, content).encode()
    # Compares every signature, each in constant time.
    matches = [hmac.compare_digest(each.encode(), expected) for each in _signatures(headers.get(SIGNATURE, ""))]
    if not any(matches):
        raise SignatureRefused(f"no {SIGNATURE} matches")
    return signed


def _signatures(header: str) -> Iterator[str]:
    for part in header.split(" ")[:MAX_SIGNATURES]:
        if part.startswith(_VERSION):
            yield part.removeprefix(_VERSION)


def _digest(secret: str, id_: str, timestamp: int, content: bytes) -> str:
    message = f"{id_}.{timestamp}.".encode() + content
    return base64.b64encode(hmac.new(webhook_key(secret), message, hashlib.sha256).digest()).decode()

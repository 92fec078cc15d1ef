"""Keys from the settings, as version:base64 pairs, newest first. Versions make key rotation possible."""

import base64
import binascii

KEY_BYTES = 32


def versioned_keys(pairs: str) -> dict[str, bytes]:
    """Returns the keys of "2:base64,1:base64" by version, in the order of the pairs.

    Raises: ValueError, whose message never contains a key.
    """
    keys: dict[str, bytes] = {}
    for pair in filter(None, (each.strip() for each in pairs.split(","))):
        version, colon, encoded = pair.partition(":")
        if not (version and colon) or version in keys:
            raise ValueError("Expected version:base64 pairs with different versions.")
        keys[version] = _decoded(encoded)
    return keys


def _decoded(encoded: str) -> bytes:
    """Decodes a key in the standard or the URL-safe base64 alphabet, with or without padding."""
    plain = encoded.replace("-", "+").replace("_", "/").rstrip("=")
    try:
        key = base64.b64decode(plain + "=" * (-len(plain) % 4), validate=True)
    except binascii.Error:
        raise ValueError("A key is not valid base64.") from None
    if len(key) != KEY_BYTES:
        raise ValueError(f"A key must have {KEY_BYTES} bytes.")
    return key

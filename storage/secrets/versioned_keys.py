"""Keys that operators write down as version:base64 pairs, the newest first, so that they can be exchanged."""

import base64
import binascii

KEY_BYTES = 32


def versioned_keys(pairs: str) -> dict[str, bytes]:
    """Keys by version, in the order given: "2:base64,1:base64". Raises: ValueError, which never tells a key."""
    keys: dict[str, bytes] = {}
    for pair in filter(None, (each.strip() for each in pairs.split(","))):
        version, colon, encoded = pair.partition(":")
        if not (version and colon) or version in keys:
            raise ValueError("not version:base64 pairs of different versions")
        keys[version] = _decoded(encoded)
    return keys


def _decoded(encoded: str) -> bytes:
    """Of either alphabet, padded or not."""
    plain = encoded.replace("-", "+").replace("_", "/").rstrip("=")
    try:
        key = base64.b64decode(plain + "=" * (-len(plain) % 4), validate=True)
    except binascii.Error:
        raise ValueError("a key is not base64") from None
    if len(key) != KEY_BYTES:
        raise ValueError(f"a key is not {KEY_BYTES} bytes long")
    return key

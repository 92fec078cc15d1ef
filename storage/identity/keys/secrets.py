"""The format of service keys: `nrk_<id>_<secret><checksum>`.

With the checksum, a server rejects a mistyped key, and a secret scanner recognizes a key, without the database. Only a
digest of the key is stored.
"""

import hashlib
import re
import secrets
import string
import zlib
from typing import NamedTuple

PREFIX = "nrk_"
SECRET_BITS = 256
SECRET_CHARS = 43
CHECKSUM_CHARS = 6

_ALPHABET = string.digits + string.ascii_letters
_FORM = re.compile(rf"nrk_([0-9a-z]{{26}})_([0-9A-Za-z]{{{SECRET_CHARS}}})([0-9A-Za-z]{{{CHECKSUM_CHARS}}})")


class MalformedKey(ValueError):
    """The text is no service key: it is mistyped or incomplete."""


class ParsedKey(NamedTuple):
    """The id of a key, and the digest by which its secret is recognized."""

    id: str
    digest: str


def new_key_text(key_id: str) -> str:
    """Returns a new key with a random secret, as its holder keeps it."""
    body = f"{PREFIX}{key_id}_{_base62(secrets.randbits(SECRET_BITS), SECRET_CHARS)}"
    return body + _checksum(body)


def parse_key(text: str) -> ParsedKey:
    """Returns the id and the digest of a key. Raises: MalformedKey."""
    match = _FORM.fullmatch(text)
    if match is None or _checksum(text[:-CHECKSUM_CHARS]) != match[3]:
        raise MalformedKey
    return ParsedKey(match[1], key_digest(text))


def key_digest(text: str) -> str:
    """Returns the digest of a key. A plain SHA-256 suffices, because nobody can guess 256 random bits."""
    return hashlib.sha256(text.encode()).hexdigest()


def _checksum(body: str) -> str:
    return _base62(zlib.crc32(body.encode()), CHECKSUM_CHARS)


def _base62(number: int, length: int) -> str:
    digits = []
    for _ in range(length):
        number, digit = divmod(number, 62)
        digits.append(_ALPHABET[digit])
    return "".join(reversed(digits))

"""Mail addresses: their normalized form, and the keyed hashes under which they are stored, never in the clear.

An organization has keys of its own, derived from the operator's: one address has unrelated hashes in two organizations.
"""

import hmac
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

import idna
from email_validator import EmailNotValidError, validate_email

from storage.errors import Unavailable
from storage.versioned_keys import versioned_keys

MAX_LENGTH = 254
MAX_LOCAL = 64
VERSION_BYTES = 2

# Dots may stand anywhere: Japanese carriers gave out addresses such as a..b@ and a.@ for years, and they are in use.
_LOCAL = r"[a-z0-9!#$%&'*+/=?^_`{|}~.-]+"
_LABEL = r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
_DOMAIN = rf"(?:{_LABEL}\.)+[a-z](?:[a-z0-9-]{{0,61}}[a-z0-9])?"
_PLAIN = re.compile(f"({_LOCAL})@({_DOMAIN})", re.ASCII)
_PLAIN_DOMAIN = re.compile(_DOMAIN, re.ASCII)


@dataclass(frozen=True, slots=True)
class Address:
    """A mail address in lower case, its domain as IDNA spells it."""

    text: str
    domain: str


def normalize(written: str) -> Address | None:
    """The address that was written; None when it is none."""
    lowered = written.lower()
    plain = _PLAIN.fullmatch(lowered) if written.isascii() and len(written) <= MAX_LENGTH else None
    # Two hyphens in a row may be an encoded name, which the library has to look at.
    if plain is not None and "--" not in plain[2]:
        return Address(lowered, plain[2]) if len(plain[1]) <= MAX_LOCAL else None
    return _unusual(written) if len(written) <= MAX_LENGTH else None


def _unusual(written: str) -> Address | None:
    try:
        found = validate_email(written, check_deliverability=False, allow_quoted_local=True, globally_deliverable=False)
    except EmailNotValidError:
        return None
    domain = normalize_domain(found.ascii_domain)
    return None if domain is None else Address(f"{found.local_part.lower()}@{domain}", domain)


@lru_cache(4096)
def normalize_domain(written: str) -> str | None:
    """The domain in lower case as IDNA spells it; None when mail can't be sent to it."""
    lowered = written.lower().removesuffix(".")
    if len(lowered) > MAX_LENGTH or not lowered.isascii() or "--" in lowered:
        try:
            lowered = idna.encode(lowered, uts46=True).decode()
        except (idna.IDNAError, UnicodeError):
            return None
    return lowered if _PLAIN_DOMAIN.fullmatch(lowered) else None


class AddressKeys:
    """Turns addresses into what they are stored as: two bytes of key version, then HMAC-SHA256 of the address."""

    def __init__(self, keys: Iterable[tuple[int, bytes]] = ()) -> None:
        """The operator's keys with their versions, newest first. Older ones find what was stored under them."""
        self._keys = tuple(keys)
        self._derived: dict[str, tuple[tuple[bytes, bytes], ...]] = {}

    def id(self, organization_id: str, address: str) -> bytes:
        """What a normalized address is stored as from now on. Raises: Unavailable without any key."""
        version, key = self._of(organization_id)[0]
        return version + hmac.digest(key, address.encode(), "sha256")

    def ids(self, organization_id: str, address: str) -> list[bytes]:
        """What it may be stored as, the newest key's first. Raises: Unavailable without any key."""
        message = address.encode()
        return [version + hmac.digest(key, message, "sha256") for version, key in self._of(organization_id)]

    def _of(self, organization_id: str) -> tuple[tuple[bytes, bytes], ...]:
        derived = self._derived.get(organization_id)
        if derived is None:
            if not self._keys:
                raise Unavailable("The address book has no keys: NOROSHI_ADDRESS_KEYS is not set.", 60_000)
            derived = self._derived[organization_id] = tuple(
                (version.to_bytes(VERSION_BYTES), hmac.digest(key, organization_id.encode(), "sha256"))
                for version, key in self._keys
            )
        return derived


def address_keys(pairs: str) -> AddressKeys:
    """The keys of "2:base64,1:base64", newest first. Raises: ValueError, which never tells a key."""
    keys: dict[int, bytes] = {}
    for version, key in versioned_keys(pairs).items():
        number = int(version) if version.isascii() and version.isdigit() else 0
        if not 1 <= number < 256**VERSION_BYTES or number in keys:
            raise ValueError("not number:base64 pairs of different numbers")
        keys[number] = key
    return AddressKeys(keys.items())

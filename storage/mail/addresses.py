"""Mail addresses: their normalized form, and the keyed hashes under which they are stored, never in the clear.

An organization has keys of its own, derived from the operator's: one address has unrelated hashes in two organizations.
"""

import hmac
import re
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache, partial
from typing import NamedTuple

import idna
from email_validator import EmailNotValidError, validate_email

from storage.errors import Unavailable
from storage.secrets.versioned_keys import versioned_keys

MAX_LENGTH = 254
MAX_LOCAL = 64
VERSION_BYTES = 2
REMEMBERED_DOMAINS = 20_000

# Dots may stand anywhere: Japanese carriers gave out addresses such as a..b@ and a.@ for years, and they are in use.
_LOCAL = rf"[a-z0-9!#$%&'*+/=?^_`{{|}}~.-]{{1,{MAX_LOCAL}}}"
_LABEL = r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
_DOMAIN = rf"(?:{_LABEL}\.)+[a-z](?:[a-z0-9-]{{0,61}}[a-z0-9])?"
_PLAIN = re.compile(rf"{_LOCAL}@([a-z0-9.-]+)", re.ASCII)
# Never longer than MAX_LENGTH.
_PLAIN_LINE = re.compile(rf"^({_LOCAL}@([a-z0-9.-]{{1,{MAX_LENGTH - MAX_LOCAL - 1}}}))$", re.ASCII | re.MULTILINE)
_PLAIN_DOMAIN = re.compile(_DOMAIN, re.ASCII)


class Address(NamedTuple):
    """A mail address in lower case, its domain as IDNA spells it."""

    text: str
    domain: str


# What Address(text, domain) does, in half the time.
_address: Callable[[tuple[str, str]], Address] = partial(tuple.__new__, Address)


def normalize(written: str) -> Address | None:
    """The address that was written; None when it is none."""
    if len(written) > MAX_LENGTH:
        return None
    # Nearly all are plain: these few lines cost each of them half a microsecond.
    lowered = written.lower()
    plain = _PLAIN.fullmatch(lowered)
    if plain and written.isascii() and (domain := _plain_domain(plain[1])):
        return _address((lowered, domain))
    return _unusual(written)


def normalize_all(written: Sequence[str]) -> Sequence[tuple[str, str] | None]:
    """What `normalize` says of each, as text and domain."""
    return _all_plain(written) or [normalize(each) for each in written]


def _all_plain(written: Sequence[str]) -> list[tuple[str, str]] | None:
    """The addresses, a lookup's thousand at once: half the time of one after the other. None unless all are plain."""
    lines = "\n".join(written)
    # What has lines of its own would be taken for several.
    if lines.count("\n") != len(written) - 1:
        return None
    found = _PLAIN_LINE.findall(lines.lower())
    return found if len(found) == len(written) and all(map(_plain_domain, {domain for _, domain in found})) else None


@lru_cache(REMEMBERED_DOMAINS)
def _plain_domain(domain: str) -> str | None:
    """The domain, the same object each time; None when it has to be looked at more closely."""
    # Two hyphens in a row may be an encoded name.
    return domain if "--" not in domain and _PLAIN_DOMAIN.fullmatch(domain) else None


def _unusual(written: str) -> Address | None:
    try:
        found = validate_email(written, check_deliverability=False, allow_quoted_local=True, globally_deliverable=False)
    except EmailNotValidError:
        return None
    domain = normalize_domain(found.ascii_domain)
    return (
        None
        if domain is None or len(found.local_part) > MAX_LOCAL
        else Address(f"{found.local_part.lower()}@{domain}", domain)
    )


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


class _Key:
    """A key of an organization: hashes with HMAC-SHA256."""

    def __init__(self, version: bytes, key: bytes) -> None:
        self._version = version
        # A copy skips the hashing of the key, a third of the time. A lookup hashes up to a thousand addresses.
        self._hmac = hmac.new(key, digestmod="sha256")

    def id(self, message: bytes) -> bytes:
        keyed = self._hmac.copy()
        keyed.update(message)
        return self._version + keyed.digest()


class AddressKeys:
    """Turns addresses into what they are stored as: two bytes of key version, then HMAC-SHA256 of the address."""

    def __init__(self, keys: Iterable[tuple[int, bytes]] = ()) -> None:
        """The operator's keys with their versions, newest first. Older ones find what was stored under them."""
        self._keys = tuple(keys)
        self._derived: dict[str, tuple[_Key, ...]] = {}

    def id(self, organization_id: str, address: str) -> bytes:
        """What a normalized address is stored as from now on. Raises: Unavailable without any key."""
        return self._of(organization_id)[0].id(address.encode())

    def ids(self, organization_id: str, address: str) -> list[bytes]:
        """What it may be stored as, the newest key's first. Raises: Unavailable without any key."""
        message = address.encode()
        return [key.id(message) for key in self._of(organization_id)]

    def all_ids(self, organization_id: str, addresses: Sequence[str]) -> list[list[bytes]]:
        """What many may be stored as, in their order: a list for each key, the newest key's first.

        Raises: Unavailable without any key.
        """
        messages = [address.encode() for address in addresses]
        return [list(map(key.id, messages)) for key in self._of(organization_id)]

    def _of(self, organization_id: str) -> tuple["_Key", ...]:
        derived = self._derived.get(organization_id)
        if derived is None:
            if not self._keys:
                raise Unavailable("The address book has no keys: NOROSHI_ADDRESS_KEYS is not set.", 60_000)
            derived = self._derived[organization_id] = tuple(
                _Key(version.to_bytes(VERSION_BYTES), hmac.digest(key, organization_id.encode(), "sha256"))
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

"""Mail addresses: their normalized form, the keyed hashes under which they are stored, and their encryption.

Each organization has keys of its own, derived from the operator's keys. An address therefore has unrelated hashes in
two organizations. Organizations may choose to keep addresses readable, encrypted by these keys.
"""

import hmac
import re
import secrets
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache, partial
from typing import NamedTuple

import idna
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from email_validator import EmailNotValidError, validate_email

from storage.errors import Unavailable
from storage.secrets.versioned_keys import versioned_keys

MAX_LENGTH = 254
MAX_LOCAL = 64
VERSION_BYTES = 2
NONCE_BYTES = 12
CACHED_DOMAINS = 20_000

# Dots are allowed anywhere. Japanese carriers issued addresses such as a..b@ and a.@, which are still in use.
_LOCAL = rf"[a-z0-9!#$%&'*+/=?^_`{{|}}~.-]{{1,{MAX_LOCAL}}}"
_LABEL = r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
_DOMAIN = rf"(?:{_LABEL}\.)+[a-z](?:[a-z0-9-]{{0,61}}[a-z0-9])?"
_PLAIN = re.compile(rf"{_LOCAL}@([a-z0-9.-]+)", re.ASCII)
# The domain is limited in length, so that no match is longer than MAX_LENGTH.
_PLAIN_LINE = re.compile(rf"^({_LOCAL}@([a-z0-9.-]{{1,{MAX_LENGTH - MAX_LOCAL - 1}}}))$", re.ASCII | re.MULTILINE)
_PLAIN_DOMAIN = re.compile(_DOMAIN, re.ASCII)


class Address(NamedTuple):
    """A mail address in lower case, with its domain in IDNA form."""

    text: str
    domain: str


# Equivalent to Address(text, domain), but takes half the time.
_address: Callable[[tuple[str, str]], Address] = partial(tuple.__new__, Address)


def normalize(written: str) -> Address | None:
    """Returns the normalized address; None if `written` is not an address."""
    if len(written) > MAX_LENGTH:
        return None
    # Fast path for plain addresses, which are nearly all addresses. It takes half a microsecond.
    lowered = written.lower()
    plain = _PLAIN.fullmatch(lowered)
    if plain and written.isascii() and (domain := _plain_domain(plain[1])):
        return _address((lowered, domain))
    return _normalize_unusual(written)


def normalize_all(written: Sequence[str]) -> Sequence[tuple[str, str] | None]:
    """Normalizes many addresses. Returns the text and the domain of each, or None for an invalid address."""
    return _all_plain(written) or [normalize(each) for each in written]


def _all_plain(written: Sequence[str]) -> list[tuple[str, str]] | None:
    """Normalizes all addresses with one match, which halves the time. Returns None unless all are plain."""
    lines = "\n".join(written)
    # An entry with a line break would match as several addresses.
    if lines.count("\n") != len(written) - 1:
        return None
    matches = _PLAIN_LINE.findall(lines.lower())
    return (
        matches if len(matches) == len(written) and all(map(_plain_domain, {domain for _, domain in matches})) else None
    )


@lru_cache(CACHED_DOMAINS)
def _plain_domain(domain: str) -> str | None:
    """Returns the domain if it is plain; None if it needs the full check. Cached, so equal domains are one object."""
    # Two hyphens in a row may mark an encoded name.
    return domain if "--" not in domain and _PLAIN_DOMAIN.fullmatch(domain) else None


def _normalize_unusual(written: str) -> Address | None:
    try:
        valid = validate_email(written, check_deliverability=False, allow_quoted_local=True, globally_deliverable=False)
    except EmailNotValidError:
        return None
    domain = normalize_domain(valid.ascii_domain)
    return (
        None
        if domain is None or len(valid.local_part) > MAX_LOCAL
        else Address(f"{valid.local_part.lower()}@{domain}", domain)
    )


@lru_cache(4096)
def normalize_domain(written: str) -> str | None:
    """Returns the domain in lower case and IDNA form; None if it is not a domain that can receive mail."""
    lowered = written.lower().removesuffix(".")
    if len(lowered) > MAX_LENGTH or not lowered.isascii() or "--" in lowered:
        try:
            lowered = idna.encode(lowered, uts46=True).decode()
        except (idna.IDNAError, UnicodeError):
            return None
    return lowered if _PLAIN_DOMAIN.fullmatch(lowered) else None


class _OrganizationKey:
    """An organization's key for HMAC-SHA256, and the key for AES-256-GCM that is derived from it."""

    def __init__(self, version: bytes, key: bytes) -> None:
        self.version = version
        # No address is "readable", so no stored hash is this key.
        self._cipher = AESGCM(hmac.digest(key, b"readable", "sha256"))
        # Copied for each address, of which a lookup has up to 1,000. This saves hashing the key, a third of the time.
        self._hmac = hmac.new(key, digestmod="sha256")

    def id(self, message: bytes) -> bytes:
        keyed = self._hmac.copy()
        keyed.update(message)
        return self.version + keyed.digest()

    def seal(self, message: bytes) -> bytes:
        nonce = secrets.token_bytes(NONCE_BYTES)
        return self.version + nonce + self._cipher.encrypt(nonce, message, None)

    def open(self, sealed: bytes) -> bytes | None:
        start = VERSION_BYTES + NONCE_BYTES
        try:
            return self._cipher.decrypt(sealed[VERSION_BYTES:start], sealed[start:], None)
        except InvalidTag:
            return None


class AddressKeys:
    """Computes the stored ids of addresses: two bytes of key version, then HMAC-SHA256 of the address.

    Also encrypts addresses: two bytes of key version, a nonce of 12 bytes, and the ciphertext of AES-256-GCM.
    """

    def __init__(self, keys: Iterable[tuple[int, bytes]] = ()) -> None:
        """Takes the operator's keys with their versions, newest first. Older keys find addresses stored under them."""
        self._keys = tuple(keys)
        self._derived: dict[str, tuple[_OrganizationKey, ...]] = {}

    @property
    def has_keys(self) -> bool:
        """Whether there is a key."""
        return bool(self._keys)

    def id(self, organization_id: str, address: str) -> bytes:
        """Returns the id of a normalized address by the newest key. Raises: Unavailable without keys."""
        return self._organization_keys(organization_id)[0].id(address.encode())

    def ids(self, organization_id: str, address: str) -> list[bytes]:
        """Returns the ids by all keys, the newest key's first. Raises: Unavailable without keys."""
        message = address.encode()
        return [key.id(message) for key in self._organization_keys(organization_id)]

    def all_ids(self, organization_id: str, addresses: Sequence[str]) -> list[list[bytes]]:
        """Returns the ids of many addresses, in their order: a list per key, the newest key's first.

        Raises: Unavailable without keys.
        """
        messages = [address.encode() for address in addresses]
        return [list(map(key.id, messages)) for key in self._organization_keys(organization_id)]

    def seal(self, organization_id: str, address: str) -> bytes:
        """Returns a normalized address, encrypted by the newest key. Raises: Unavailable without keys."""
        return self._organization_keys(organization_id)[0].seal(address.encode())

    def open(self, organization_id: str, sealed: bytes) -> str | None:
        """Returns an encrypted address; None if its key is no longer set. Raises: Unavailable without keys."""
        for key in self._organization_keys(organization_id):
            if sealed.startswith(key.version):
                opened = key.open(sealed)
                return None if opened is None else opened.decode()
        return None

    def _organization_keys(self, organization_id: str) -> tuple["_OrganizationKey", ...]:
        derived = self._derived.get(organization_id)
        if derived is None:
            if not self._keys:
                raise Unavailable("The address book has no keys. Set NOROSHI_ADDRESS_KEYS.", 60_000)
            derived = self._derived[organization_id] = tuple(
                _OrganizationKey(version.to_bytes(VERSION_BYTES), hmac.digest(key, organization_id.encode(), "sha256"))
                for version, key in self._keys
            )
        return derived


def address_keys(pairs: str) -> AddressKeys:
    """Parses "2:base64,1:base64", newest first. Raises: ValueError, without the keys in its message."""
    keys: dict[int, bytes] = {}
    for version, key in versioned_keys(pairs).items():
        number = int(version) if version.isascii() and version.isdigit() else 0
        if not 1 <= number < 256**VERSION_BYTES or number in keys:
            raise ValueError("expected number:base64 pairs with different numbers")
        keys[number] = key
    return AddressKeys(keys.items())

"""Fields of settings and the types of their values, whose validators raise ValueError for values not allowed."""

import re
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import Annotated, Any
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field
from pydantic.config import JsonDict

from storage.identity.roles import Role
from storage.mail.addresses import address_keys
from storage.redis.connections import is_sentinel_url, parse_sentinel_url
from storage.secrets.vapid_keys import vapid_key
from storage.secrets.versioned_keys import versioned_keys

AUTH_SECRET_MIN_BYTES = 32
FILE_SCHEMES = ("s3", "gs", "az")
DEFAULT_PORTS = {"http": 80, "https": 443}
NO_PROXY = "none"


def setting(default: object, *, expected: str, description: str, secret: bool = False, **options: Any) -> Any:
    """Returns a field of Settings. `expected` describes valid values. The value of a secret is never shown."""
    extra: JsonDict = {"expected": expected}
    return Field(default, description=description, repr=not secret, json_schema_extra=extra, **options)


def origin_of(address: str) -> str:
    """Returns the origin of an http or https address as browsers send it: in lower case, without the default port.

    Raises: ValueError for an address without a host, or with a wrong port.
    """
    parts = urlsplit(address.lower())
    if parts.scheme not in DEFAULT_PORTS or not parts.hostname:
        raise ValueError("expected an http or https address")
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    port = "" if parts.port in (None, DEFAULT_PORTS[parts.scheme]) else f":{parts.port}"
    return f"{parts.scheme}://{host}{port}"


def _split_list(value: object) -> object:
    if not isinstance(value, str):
        return value
    return tuple(item for item in (part.strip() for part in value.split(",")) if item)


def _address_with_scheme(*schemes: str) -> AfterValidator:
    def check(value: str) -> str:
        parts = urlsplit(value)
        if parts.scheme not in schemes or not (parts.netloc or parts.path):
            raise ValueError(f"expected an address with one of the schemes {schemes}")
        return value.rstrip("/") if parts.scheme.startswith("http") else value

    return AfterValidator(check)


def _checked_sentinel_url(value: str) -> str:
    if is_sentinel_url(value):
        parse_sentinel_url(value)
    return value


def _normalized_origin(value: str) -> str:
    parts = urlsplit(value.rstrip("/"))
    if parts.path or parts.query or parts.username is not None:
        raise ValueError("expected an origin")
    return origin_of(value)


def _checked_public_address(value: str) -> str:
    origin_of(value)
    return value


def _checked_proxy(value: str) -> str:
    if value != NO_PROXY and ip_network(value).prefixlen == 0:
        raise ValueError("every client would be a proxy")
    return value


def _checked_proxies(value: tuple[str, ...]) -> tuple[str, ...]:
    if NO_PROXY in value and len(value) > 1:
        raise ValueError(f"{NO_PROXY} stands alone")
    return value


def _checked_host(value: str) -> str:
    if value != "*" and not re.fullmatch(r"(\*\.)?[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*", value):
        raise ValueError("expected a host name")
    return value.lower()


def _checked_files_address(value: str) -> str:
    scheme, separator, rest = value.partition("://")
    if separator and (scheme not in FILE_SCHEMES or not rest.strip("/")):
        raise ValueError(f"expected a folder, or an address with one of the schemes {FILE_SCHEMES}")
    return value


def _checked_secret(value: str) -> str:
    if len(value.encode()) < AUTH_SECRET_MIN_BYTES:
        raise ValueError("too short")
    return value


def _checked_credential_keys(value: str) -> str:
    if not versioned_keys(value):
        raise ValueError("expected at least one key")
    return value


def _checked_address_keys(value: str) -> str:
    address_keys(value)
    return value


def _checked_vapid_key(value: str) -> str:
    vapid_key(value)
    return value


def _checked_recipient(value: str) -> str:
    parts = urlsplit(value)
    if not (parts.scheme in ("http", "https") and parts.hostname) and not re.fullmatch(r"[^\s@/]+@[^\s@/]+", value):
        raise ValueError("expected a mail address or a URL")
    return value


def _checked_claim_pointer(value: str) -> str:
    if not re.fullmatch(r"(org|roles|name|handle|email)=(/[^/]+)+", value):
        raise ValueError("expected a name and a JSON pointer")
    return value


def _checked_role_mapping(value: str) -> str:
    if not re.fullmatch(rf"[^:]+:({'|'.join(role.value for role in Role)})", value):
        raise ValueError("expected a role of the provider and a role")
    return value


def _lower(value: object) -> object:
    return value.lower() if isinstance(value, str) else value


HttpAddress = Annotated[str, _address_with_scheme("http", "https")]
PublicAddress = Annotated[HttpAddress, AfterValidator(_checked_public_address)]
RedisAddress = Annotated[
    str,
    _address_with_scheme("redis", "rediss", "unix", "redis+sentinel", "rediss+sentinel"),
    AfterValidator(_checked_sentinel_url),
]
Origin = Annotated[str, AfterValidator(_normalized_origin)]
HostName = Annotated[str, AfterValidator(_checked_host)]
IpNetwork = Annotated[IPv4Network | IPv6Network, BeforeValidator(lambda value: ip_network(value))]
TrustedProxy = Annotated[str, AfterValidator(_checked_proxy)]
TRUSTED_PROXIES = AfterValidator(_checked_proxies)
MongoAddress = Annotated[str, _address_with_scheme("mongodb", "mongodb+srv")]
SmtpAddress = Annotated[str, _address_with_scheme("smtp", "smtps")]
FilesAddress = Annotated[str, AfterValidator(_checked_files_address)]
Secret = Annotated[str, AfterValidator(_checked_secret)]
CredentialKeysText = Annotated[str, AfterValidator(_checked_credential_keys)]
AddressKeysText = Annotated[str, AfterValidator(_checked_address_keys)]
VapidKeyText = Annotated[str, AfterValidator(_checked_vapid_key)]
Recipient = Annotated[str, AfterValidator(_checked_recipient)]
ClaimPointer = Annotated[str, AfterValidator(_checked_claim_pointer)]
RoleMapping = Annotated[str, AfterValidator(_checked_role_mapping)]
COMMA_SEPARATED = BeforeValidator(_split_list)
LOWER_CASE = BeforeValidator(_lower)

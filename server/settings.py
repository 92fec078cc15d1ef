"""The settings of a process: the only module that reads the environment.

Read once at start, frozen, and handed on as plain values. A bad value is one line that names its variable.
"""

import os
import re
import sys
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import Annotated, Literal, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field, ValidationError
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from server.processes import StartupError
from storage.mail.addresses import AddressKeys, address_keys
from storage.secrets.versioned_keys import versioned_keys

PREFIX = "NOROSHI_"
UNPREFIXED = {"mongodb_uri": "MONGODB_URI", "redis_url": "REDIS_URL"}
# Kept out of error messages and representations; the addresses may hold a password.
CONFIDENTIAL = {
    *("address_keys", "auth_secret", "credential_keys", "telephony_secret", "twilio_token"),
    *("bounce_report_to", "mongodb_uri", "redis_url", "smtp_url"),
}
AUTH_SECRET_MIN_BYTES = 32


class SettingsError(StartupError):
    """A setting can't be used: one line that names the variable and what was expected, never a secret."""


def _items(value: object) -> object:
    if not isinstance(value, str):
        return value
    return tuple(item for item in (part.strip() for part in value.split(",")) if item)


def _address(*schemes: str) -> AfterValidator:
    def check(value: str) -> str:
        parts = urlsplit(value)
        if parts.scheme not in schemes or not (parts.netloc or parts.path):
            raise ValueError(f"not an address of {schemes}")
        return value.rstrip("/") if parts.scheme.startswith("http") else value

    return AfterValidator(check)


def _origin(value: str) -> str:
    parts = urlsplit(value.rstrip("/").lower())
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.path or parts.query:
        raise ValueError("not an origin")
    return parts.geturl()


def _longer_than_a_guess(value: str) -> str:
    if len(value.encode()) < AUTH_SECRET_MIN_BYTES:
        raise ValueError("too short")
    return value


def _credential_keys(value: str) -> str:
    if not versioned_keys(value):
        raise ValueError("no key")
    return value


def _address_keys(value: str) -> str:
    address_keys(value)
    return value


def _recipient(value: str) -> str:
    parts = urlsplit(value)
    if not (parts.scheme in ("http", "https") and parts.hostname) and not re.fullmatch(r"[^\s@/]+@[^\s@/]+", value):
        raise ValueError("neither a mail address nor a URL")
    return value


def _lower(value: object) -> object:
    return value.lower() if isinstance(value, str) else value


def _default_log_format() -> Literal["console", "json"]:
    return "console" if sys.stderr.isatty() else "json"


HttpAddress = Annotated[str, _address("http", "https")]
Origin = Annotated[str, AfterValidator(_origin)]
Network = Annotated[IPv4Network | IPv6Network, BeforeValidator(lambda value: ip_network(value))]


class Settings(BaseSettings):
    """What the operator decides. Each description says what is expected; errors repeat it."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX, env_ignore_empty=True, frozen=True, extra="ignore", populate_by_name=True
    )

    mongodb_uri: Annotated[str, _address("mongodb", "mongodb+srv")] | None = Field(
        default=None,
        validation_alias=UNPREFIXED["mongodb_uri"],
        repr=False,
        description="mongodb://host:port/?replicaSet=..",
    )
    redis_url: Annotated[str, _address("redis", "rediss", "unix")] | None = Field(
        default=None, validation_alias=UNPREFIXED["redis_url"], repr=False, description="redis://host:port/number"
    )
    database: str = Field(
        default="noroshi",
        pattern=r"^[A-Za-z0-9_-]{1,38}$",
        description="a name of 1 to 38 letters, digits, _ and -",
    )
    mongo_driver: Literal["motor", "pymongo"] = Field(default="motor", description="motor or pymongo")
    auth_secret: Annotated[str, AfterValidator(_longer_than_a_guess)] | None = Field(
        default=None, repr=False, description=f"at least {AUTH_SECRET_MIN_BYTES} bytes"
    )
    auth_jwks_url: HttpAddress | None = Field(default=None, description="an http or https address")
    auth_audience: str | None = Field(default=None, description="the `aud` claim that tokens must have")
    auth_issuer: str | None = Field(default=None, description="the `iss` claim that tokens must have")
    allowed_origins: Annotated[tuple[Origin, ...], NoDecode, BeforeValidator(_items)] = Field(
        default=(), description="origins such as https://example.org, separated by commas"
    )
    public_url: HttpAddress | None = Field(default=None, description="an http or https address")
    egress_allow: Annotated[tuple[Network, ...], NoDecode, BeforeValidator(_items)] = Field(
        default=(), description="address ranges such as 10.0.0.0/8, separated by commas"
    )
    telephony: Literal["simulator", "webhook", "twilio"] = Field(
        default="simulator", description="simulator, webhook or twilio"
    )
    telephony_url: HttpAddress | None = Field(default=None, description="an http or https address")
    telephony_secret: str | None = Field(default=None, repr=False, description="the secret that webhooks are signed by")
    twilio_account: str | None = Field(default=None, description="the account's SID")
    twilio_token: str | None = Field(default=None, repr=False, description="the account's auth token")
    twilio_from: str | None = Field(default=None, description="the number that calls come from, such as +15005550006")
    simulator_speed: float = Field(default=1.0, ge=0.1, le=1000, description="a number from 0.1 to 1000")
    credential_keys: Annotated[str, AfterValidator(_credential_keys)] | None = Field(
        default=None, repr=False, description="version:base64 pairs of 32 bytes, newest first, separated by commas"
    )
    smtp_url: Annotated[str, _address("smtp", "smtps")] | None = Field(
        default=None, repr=False, description="smtp://user:password@host:port or smtps://.."
    )
    mail_from: str = Field(
        default="Noroshi <noroshi@localhost>", pattern=r"^[^\r\n]+@[^\r\n]+$", description="a mail address"
    )
    address_keys: Annotated[str, AfterValidator(_address_keys)] | None = Field(
        default=None, repr=False, description="number:base64 pairs of 32 bytes, newest first, separated by commas"
    )
    legacy_book_url: HttpAddress | None = Field(default=None, description="an http or https address")
    legacy_share: int = Field(default=0, ge=0, le=100, description="a number from 0 to 100")
    bounce_alarm_percent: float = Field(default=2, gt=0, le=100, description="a number above 0, at most 100")
    bounce_report_to: Annotated[str, AfterValidator(_recipient)] | None = Field(
        default=None, repr=False, description="a mail address, or an http or https address"
    )
    fan_out_max_followers: int = Field(
        default=10_000, ge=0, le=100_000_000, description="a number of followers from 0 to 100000000"
    )
    data_dir: Path = Field(default=Path(".noroshi"), description="a folder")
    embedded_mongod: str | None = Field(default=None, description="a path of a program, or its name on PATH")
    embedded_redis: str | None = Field(default=None, description="a path of a program, or its name on PATH")
    host: str = Field(default="127.0.0.1", description="a host name or address to listen on")
    port: int = Field(default=8000, ge=0, le=65535, description="a number from 0 to 65535")
    demo: bool = Field(default=False, description="true or false")
    log_format: Annotated[Literal["console", "json"], BeforeValidator(_lower)] = Field(
        default_factory=_default_log_format, description="console or json"
    )
    log_level: Annotated[Literal["debug", "info", "warning", "error"], BeforeValidator(_lower)] = Field(
        default="info", description="debug, info, warning or error"
    )

    @classmethod
    def from_environment(cls, **overrides: object) -> Self:
        """The environment's settings; an override that is not None wins. Raises: SettingsError."""
        given = {name: value for name, value in overrides.items() if value is not None}
        try:
            return cls(**given)  # type: ignore[arg-type]
        except ValidationError as error:
            raise SettingsError(_first_line(error)) from None

    def with_values(self, **values: object) -> Self:
        """A copy with values that need no check, such as the address of a server just started."""
        return self.model_copy(update=values)

    def environment(self) -> dict[str, str]:
        """This process's environment with every setting spelled out, for a child process to read."""
        names = {name: variable(name) for name in type(self).model_fields}
        rest = {key: value for key, value in os.environ.items() if key.upper() not in names.values()}
        own = {names[name]: _spelled(getattr(self, name)) for name in names}
        return rest | {key: value for key, value in own.items() if value}

    @property
    def keys_of_addresses(self) -> AddressKeys:
        """What mail addresses are hashed with; none when it is not set."""
        return address_keys(self.address_keys or "")

    @property
    def base_url(self) -> str:
        """How the outside reaches this server, without a slash at the end."""
        return self.public_url or f"http://127.0.0.1:{self.port}"


def variable(name: str) -> str:
    """The environment variable of a field: `auth_secret` -> `NOROSHI_AUTH_SECRET`."""
    return UNPREFIXED.get(name, PREFIX + name.upper())


def _spelled(value: object) -> str:
    if isinstance(value, tuple):
        return ",".join(str(item) for item in value)
    return "" if value is None else str(value)


def _first_line(error: ValidationError) -> str:
    first = error.errors()[0]
    name = _field_name(str(first["loc"][0]))
    given = "" if name in CONFIDENTIAL else f", got {str(first['input'])[:100]!r}"
    return f"{variable(name)}: expected {Settings.model_fields[name].description}{given}"


def _field_name(location: str) -> str:
    by_variable = {variable(name).lower(): name for name in Settings.model_fields}
    return by_variable.get(location.lower(), location)

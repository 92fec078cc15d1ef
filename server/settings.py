"""The settings of a process. No other module reads the environment.

Settings are read once at start and never change. An invalid value is a one-line error that names its variable.
"""

import os
import sys
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, ValidationError
from pydantic.fields import FieldInfo
from pydantic_settings import NoDecode, SettingsConfigDict

from server.processes import StartupError
from server.setting_groups.database import UNPREFIXED
from server.setting_groups.mail_inlets import MailInletSettings
from server.setting_groups.values import (
    COMMA_SEPARATED,
    LOWER_CASE,
    AddressKeysText,
    CredentialKeysText,
    FilesAddress,
    HttpAddress,
    IpNetwork,
    Recipient,
    SmtpAddress,
    VapidKeyText,
    setting,
)
from storage.mail.addresses import AddressKeys, address_keys

PREFIX = "NOROSHI_"


class SettingsError(StartupError):
    """An invalid setting. The message names the variable and what was expected, and repeats no secret."""


def _default_log_format() -> Literal["console", "json"]:
    return "console" if sys.stderr.isatty() else "json"


def _cost_setting(default: int, whose: str) -> Any:
    return setting(
        default,
        ge=1_000_000,
        expected="a number from 1,000,000",
        description=f"The cost of operations that {whose} may spend in a minute in each web process: docs/limits.md.",
    )


def _write_setting(default: int, activity: str) -> Any:
    return setting(
        default,
        ge=1,
        expected="a number from 1",
        description=f"How often a user may {activity} in a minute, in each web process: docs/limits.md.",
    )


def _size_setting(default: int, greatest: int, description: str) -> Any:
    return setting(
        default, ge=1, le=greatest, expected=f"a number of MiB from 1 to {greatest}", description=description
    )


class Settings(MailInletSettings):
    """The settings that the operator chooses. docs/settings.md is generated from these fields."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX, env_ignore_empty=True, frozen=True, extra="ignore", populate_by_name=True
    )

    execution_timeout_s: float = setting(
        10.0,
        gt=0,
        le=60,
        expected="seconds above 0, at most 60",
        description="The time after which a query or mutation is stopped and answered with UNAVAILABLE. Operations "
        "that accept large lists have 60 s. The execution of a subscription's event is stopped and repeated.",
    )
    viewer_cost_per_minute: int = _cost_setting(3_000_000, "a person")
    service_cost_per_minute: int = _cost_setting(20_000_000, "a service key, or a token with the role SERVICE,")
    organization_cost_per_minute: int = _cost_setting(30_000_000, "an organization's people, and also its services,")
    messages_per_minute: int = _write_setting(300, "post, edit and delete messages")
    reactions_per_minute: int = _write_setting(600, "add and remove reactions")
    follows_per_minute: int = _write_setting(300, "follow, block and mute")
    posts_per_minute: int = _write_setting(120, "create and delete posts")
    schedules_per_minute: int = _write_setting(300, "schedule posts")
    joins_per_minute: int = _write_setting(
        120, "join, leave and create communities and topics, and change conversations"
    )
    moderation_per_minute: int = _write_setting(120, "moderate communities")
    reports_per_minute: int = _write_setting(30, "report content")
    uploads_per_minute: int = _write_setting(120, "create uploads")
    presence_per_minute: int = _write_setting(120, "signal that they are typing")
    operations_per_minute: int = _write_setting(120, "change accounts, publications, call jobs and mail addresses")
    organization_writes_factor: int = setting(
        100,
        ge=1,
        expected="a number from 1",
        description="The factor by which an organization's limits of writes exceed those of one user, which are above.",
    )
    service_writes_factor: int = setting(
        10,
        ge=1,
        expected="a number from 1",
        description="The factor by which a service key's limits of writes exceed those of one user, which are above.",
    )
    egress_allow: Annotated[tuple[IpNetwork, ...], NoDecode, COMMA_SEPARATED] = setting(
        (),
        expected="address ranges such as 10.0.0.0/8, separated by commas",
        description="Private address ranges that URLs of users may reach. By default, only public addresses.",
    )
    telephony: Literal["simulator", "webhook", "twilio"] | None = setting(
        None,
        expected="simulator, webhook or twilio",
        description="The telephony provider of call jobs, the same for all processes. Without one no job can be "
        "launched. The simulator calls nobody and invents outcomes; it is the provider of --demo.",
    )
    telephony_url: HttpAddress | None = setting(
        None,
        expected="an http or https address",
        description="The provider's address, required by webhook. For twilio, replaces the address of Twilio's API.",
    )
    telephony_secret: str | None = setting(
        None,
        secret=True,
        expected="the secret that webhooks are signed by",
        description="The secret that signs requests and callbacks of webhook, for web and worker processes.",
    )
    twilio_account: str | None = setting(
        None, expected="the account's SID", description="The Twilio account, required by twilio."
    )
    twilio_token: str | None = setting(
        None,
        secret=True,
        expected="the account's auth token",
        description="The Twilio account's auth token, required by twilio.",
    )
    twilio_from: str | None = setting(
        None,
        expected="the number that calls come from, such as +15005550006",
        description="The number that Twilio's calls come from, required by twilio.",
    )
    simulator_speed: float = setting(
        1.0,
        ge=0.1,
        le=1000,
        expected="a number from 0.1 to 1000",
        description="The factor by which simulated calls are faster than real calls. With 60, a minute takes a second.",
    )
    credential_keys: CredentialKeysText | None = setting(
        None,
        secret=True,
        expected="version:base64 pairs of 32 bytes, newest first, separated by commas",
        description="The keys that encrypt credentials of connected accounts, the same for all processes. "
        "If unset, `noroshi up` generates a key in the data folder.",
    )
    smtp_url: SmtpAddress | None = setting(
        None,
        secret=True,
        expected="smtp://user:password@host:port or smtps://..",
        description="The mail server for notices and reports. With smtp://, a server on another host, or with a "
        "password, must offer STARTTLS. If unset, mails are files in `mail` of the data folder.",
    )
    mail_from: str = setting(
        "Noroshi <noroshi@localhost>",
        pattern=r"^[^\r\n]+@[^\r\n]+$",
        expected="a mail address",
        description="The sender of notices and reports.",
    )
    address_keys: AddressKeysText | None = setting(
        None,
        secret=True,
        expected="number:base64 pairs of 32 bytes, newest first, separated by commas",
        description="The keys that hash mail addresses of the bounce address book, the same for all processes. Without "
        "the keys the book is unreadable. If unset, `noroshi up` generates a key in the data folder.",
    )
    vapid_key: VapidKeyText | None = setting(
        None,
        secret=True,
        expected="a private key in base64url, as `noroshi vapid-key` prints",
        description="The key by which push services recognize this installation, for web and worker processes. Without "
        "a key, nothing is pushed to devices.",
    )
    vapid_contact: str | None = setting(
        None,
        pattern=r"^(mailto:[^\s@]+@[^\s@]+|https://[^\s/]+\S*)$",
        expected="a mailto: or https: address",
        description="The address at which operators of push services reach you. If unset, NOROSHI_PUBLIC_URL.",
    )
    push_delay_s: float = setting(
        60.0,
        ge=1,
        le=3600,
        expected="seconds from 1 to 3600",
        description="How long a notification waits until it is pushed to people who have not read it. With less than "
        "10 s, a notification that is committed slowly may not be pushed.",
    )
    digest_delay_s: float = setting(
        900.0,
        ge=1,
        le=86_400,
        expected="seconds from 1 to 86400",
        description="How long a notification waits unread until it is mailed to people who chose digests.",
    )
    webhook_retry_s: float = setting(
        259_200.0,
        ge=1,
        le=259_200,
        expected="seconds from 1 to 259200",
        description="How long failed requests of a webhook are repeated before it is disabled. The pauses between them "
        "grow to 1/72 of this time, which is an hour of three days.",
    )
    legacy_book_url: HttpAddress | None = setting(
        None,
        expected="an http or https address",
        description="The legacy book: the bounce book to migrate from. It answers a share of the lookups.",
    )
    legacy_share: int = setting(
        0,
        ge=0,
        le=100,
        expected="a number from 0 to 100",
        description="The percentage of addresses for which the legacy book answers.",
    )
    bounce_alarm_percent: float = setting(
        2.0,
        gt=0,
        le=100,
        expected="a number above 0, at most 100",
        description="The daily bounce rate in percent above which an organization or a domain raises an alarm.",
    )
    bounce_report_to: Recipient | None = setting(
        None,
        secret=True,
        expected="a mail address, or an http or https address",
        description="The recipient of bounce alarms and daily summaries. The password of a URL signs its webhooks.",
    )
    contacts_per_day: int = setting(
        100,
        ge=1,
        expected="a number from 1",
        description="How many people a person may bring into direct messages in 24 hours, in all processes together.",
    )
    files: FilesAddress | None = setting(
        None,
        expected="a folder, or an address such as s3://bucket/path, gs://bucket/path or az://container/path",
        description="Where uploaded files are stored, the same for all processes. If unset, the folder `files` of the "
        "data folder. Addresses take credentials from the variables of the provider, such as AWS_ACCESS_KEY_ID.",
    )
    file_max_mib: int = _size_setting(256, 2047, "The greatest size of a file in MiB.")
    user_files_mib: int = _size_setting(2048, 2**31, "The size of all files of a user together in MiB.")
    organization_files_mib: int = _size_setting(
        102_400, 2**31, "The size of all files of an organization together in MiB."
    )
    open_uploads: int = setting(
        100,
        ge=1,
        le=10_000,
        expected="a number from 1 to 10000",
        description="How many files a user may have that are not attached.",
    )
    fan_out_max_followers: int = setting(
        10_000,
        ge=0,
        le=100_000_000,
        expected="a number of followers from 0 to 100000000",
        description="Posts of authors with more followers are merged into home feeds on read instead of being pushed. "
        "The same for all processes.",
    )
    data_dir: Path = setting(
        Path(".noroshi"),
        expected="a folder",
        description="The data folder, which holds embedded servers and generated secrets. Option: --data-dir.",
    )
    embedded_mongod: str | None = setting(
        None,
        expected="a path of a program, or its name on PATH",
        description="The mongod that `noroshi up` starts, instead of the pinned one.",
    )
    embedded_redis: str | None = setting(
        None,
        expected="a path of a program, or its name on PATH",
        description="The Redis or Valkey server that `noroshi up` starts, instead of the pinned Valkey.",
    )
    demo: bool = setting(
        False,
        expected="true or false",
        description="Adds demo data. On a loopback host everyone may sign in as a demo user. Option: --demo.",
    )
    log_format: Annotated[Literal["console", "json"], LOWER_CASE] = Field(
        default_factory=_default_log_format,
        json_schema_extra={"expected": "console or json"},
        description="The format of log lines. By default console on a terminal, else json.",
    )
    log_level: Annotated[Literal["debug", "info", "warning", "error"], LOWER_CASE] = setting(
        "info", expected="debug, info, warning or error", description="The lowest level that is logged."
    )

    @classmethod
    def from_environment(cls, **overrides: object) -> Self:
        """Returns the settings of the environment. Overrides other than None replace them. Raises: SettingsError."""
        set_values = {name: value for name, value in overrides.items() if value is not None}
        try:
            return cls(**set_values)  # type: ignore[arg-type]
        except ValidationError as error:
            raise SettingsError(_first_line(error)) from None

    def with_values(self, **values: object) -> Self:
        """Returns a copy with other values, which are not validated, such as the address of an embedded server."""
        return self.model_copy(update=values)

    def environment(self) -> dict[str, str]:
        """Returns the environment for a child process: this process's environment, with every setting as text."""
        names = {name: variable(name) for name in type(self).model_fields}
        others = {key: value for key, value in os.environ.items() if key.upper() not in names.values()}
        settings = {names[name]: _as_text(getattr(self, name)) for name in names}
        return others | {key: value for key, value in settings.items() if value}

    @property
    def keys_of_addresses(self) -> AddressKeys:
        """The parsed address keys; empty when none are set."""
        return address_keys(self.address_keys or "")

    @property
    def files_address(self) -> str:
        """The folder or the address at which files are stored."""
        return self.files or str(self.data_dir / "files")


def variable(name: str) -> str:
    """Returns the environment variable of a field: `auth_secret` -> `NOROSHI_AUTH_SECRET`."""
    return UNPREFIXED.get(name, PREFIX + name.upper())


def expected_value(field: FieldInfo) -> str:
    """Returns the form of a setting's value, as errors and docs/settings.md show it."""
    assert isinstance(field.json_schema_extra, dict)
    return str(field.json_schema_extra["expected"])


def _as_text(value: object) -> str:
    if isinstance(value, tuple):
        return ",".join(str(item) for item in value)
    return "" if value is None else str(value)


def _first_line(error: ValidationError) -> str:
    first = error.errors()[0]
    name = _field_name(str(first["loc"][0]))
    field = Settings.model_fields[name]
    got = f", got {str(first['input'])[:100]!r}" if field.repr else ""
    return f"{variable(name)}: expected {expected_value(field)}{got}"


def _field_name(location: str) -> str:
    by_variable = {variable(name).lower(): name for name in Settings.model_fields}
    return by_variable.get(location.lower(), location)

"""Adds the data folder's secrets to the settings, and signs tokens for the command line and for demo users."""

from collections.abc import Iterable
from typing import Protocol

from server.embedded import existing_secret, prepare_data_dir, stored_secret
from server.processes import StartupError
from server.settings import Settings


class TokenUser(Protocol):
    """The fields of a user that become claims of a token."""

    @property
    def id(self) -> str: ...
    @property
    def handle(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def organization_id(self) -> str: ...
    @property
    def roles(self) -> tuple[str, ...]: ...


def with_auth_secret(settings: Settings) -> Settings:
    """Returns the settings, with the data folder's token secret if they have neither a secret nor a JWKS URL.

    Raises: StartupError.
    """
    if settings.auth_secret or settings.auth_jwks_url:
        return settings
    return settings.with_values(auth_secret=_data_dir_secret(settings, "auth_secret"))


def with_credential_keys(settings: Settings) -> Settings:
    """Returns the settings, with the data folder's key for encrypting credentials if they have no such key.

    Raises: StartupError.
    """
    if settings.credential_keys:
        return settings
    return settings.with_values(credential_keys=_as_version_1(_data_dir_secret(settings, "credential_key")))


def with_address_keys(settings: Settings) -> Settings:
    """Returns the settings, with the data folder's key for hashing mail addresses if they have no such key.

    Raises: StartupError.
    """
    if settings.address_keys:
        return settings
    return settings.with_values(address_keys=_as_version_1(_data_dir_secret(settings, "address_key")))


def with_existing_auth_secret(settings: Settings) -> Settings:
    """Returns the settings, with the data folder's token secret, which must exist. Raises: StartupError."""
    if not (settings.auth_secret or settings.auth_jwks_url):
        _require_secret(settings, "auth_secret", "NOROSHI_AUTH_SECRET")
    return with_auth_secret(settings)


def with_existing_address_keys(settings: Settings) -> Settings:
    """Returns the settings, with the data folder's key for hashing mail addresses, which must exist.

    Raises: StartupError.
    """
    if not settings.address_keys:
        _require_secret(settings, "address_key", "NOROSHI_ADDRESS_KEYS")
    return with_address_keys(settings)


def _require_secret(settings: Settings, name: str, variable: str) -> None:
    """Raises: StartupError if the data folder has no such secret. A new one would not be that of the product."""
    if existing_secret(settings.data_dir, name) is None:
        raise StartupError(
            f"{variable} is not set, and the data folder {settings.data_dir.absolute()} has no such secret: set "
            f"{variable}, or name the folder of `noroshi up` with --data-dir."
        )


def _data_dir_secret(settings: Settings, name: str) -> str:
    return stored_secret(prepare_data_dir(settings.data_dir), name)


def _as_version_1(key: str) -> str:
    """Returns the value of a setting for versioned keys: this key with the version 1."""
    return f"1:{key}"


def require_no_identity_provider(settings: Settings) -> None:
    """Raises: StartupError when an identity provider is set, because then only the provider's tokens are accepted."""
    if settings.auth_jwks_url:
        raise StartupError("Tokens come from the identity provider: unset NOROSHI_AUTH_JWKS_URL to sign them locally.")


def sign_token(
    settings: Settings,
    *,
    user_id: str,
    organization_id: str,
    roles: Iterable[str] = (),
    name: str | None = None,
    handle: str | None = None,
    email: str | None = None,
    ttl_s: float = 86_400,
) -> str:
    """Returns a token that is valid for `ttl_s` seconds.

    The settings must have a secret, as `with_auth_secret` returns them. Raises: StartupError.
    """
    # Imported here, because server.auth.tokens imports an HTTP client, which most commands don't need.
    from server.auth.tokens import is_mail_address, mint

    require_no_identity_provider(settings)
    if email is not None and not is_mail_address(email):
        raise StartupError(f"{email!r} is not a mail address.")
    assert settings.auth_secret, "call with_auth_secret first"
    return mint(
        settings.auth_secret,
        user_id=user_id,
        organization_id=organization_id,
        roles=roles,
        name=name,
        handle=handle,
        email=email,
        ttl_s=ttl_s,
        audience=settings.auth_audience,
        issuer=settings.auth_issuer,
    )


def sign_user_token(settings: Settings, user: TokenUser) -> str:
    """Returns a token of the user that is valid for one day. Raises: StartupError."""
    return sign_token(
        settings,
        user_id=user.id,
        organization_id=user.organization_id,
        roles=user.roles,
        name=user.name,
        handle=user.handle,
    )

"""Tokens that the product signs with its own secret, for the command line and the demo users."""

from collections.abc import Iterable
from typing import Protocol

from server.embedded import prepare_data_dir, stored_secret
from server.processes import StartupError
from server.settings import Settings


class DemoUser(Protocol):
    """The user data that a token carries."""

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
    """Returns the settings with the data folder's token secret, unless a secret or a JWKS URL is set.

    Raises: StartupError.
    """
    if settings.auth_secret or settings.auth_jwks_url:
        return settings
    return settings.with_values(auth_secret=_stored_secret(settings, "auth_secret"))


def with_credential_keys(settings: Settings) -> Settings:
    """Returns the settings with the data folder's key for connected accounts, unless keys are set.

    Raises: StartupError.
    """
    if settings.credential_keys:
        return settings
    return settings.with_values(credential_keys=f"1:{_stored_secret(settings, 'credential_key')}")


def with_address_keys(settings: Settings) -> Settings:
    """Returns the settings with the data folder's key for mail addresses, unless keys are set.

    Raises: StartupError.
    """
    if settings.address_keys:
        return settings
    return settings.with_values(address_keys=f"1:{_stored_secret(settings, 'address_key')}")


def _stored_secret(settings: Settings, name: str) -> str:
    return stored_secret(prepare_data_dir(settings.data_dir), name)


def require_own_tokens(settings: Settings) -> None:
    """Raises: StartupError when the product accepts only the tokens of an identity provider."""
    if settings.auth_jwks_url:
        raise StartupError("Tokens come from the identity provider: unset NOROSHI_AUTH_JWKS_URL to sign them here.")


def sign(
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
    """Returns a token that this product accepts. The settings must have a secret. Raises: StartupError."""
    # Imported here: verification imports an HTTP client, which most commands don't need.
    from server.auth.tokens import is_address, mint

    require_own_tokens(settings)
    if email is not None and not is_address(email):
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


def sign_for(settings: Settings, user: DemoUser) -> str:
    """Returns a token for a demo user, valid for one day. Raises: StartupError."""
    return sign(
        settings,
        user_id=user.id,
        organization_id=user.organization_id,
        roles=user.roles,
        name=user.name,
        handle=user.handle,
    )

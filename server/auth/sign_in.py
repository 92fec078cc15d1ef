"""Tokens that this product signs itself: for the command line and the demo users, by the shared secret."""

from collections.abc import Iterable
from typing import Protocol

from server.embedded import prepare, secret
from server.processes import StartupError
from server.settings import Settings


class DemoUser(Protocol):
    """What a token says about somebody."""

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
    """The settings with the data folder's secret, unless tokens are verified in another way. Raises: StartupError."""
    if settings.auth_secret or settings.auth_jwks_url:
        return settings
    return settings.with_values(auth_secret=secret(prepare(settings.data_dir), "auth_secret"))


def with_credential_keys(settings: Settings) -> Settings:
    """The settings with the data folder's key for connected accounts, unless keys are set. Raises: StartupError."""
    if settings.credential_keys:
        return settings
    return settings.with_values(credential_keys=f"1:{secret(prepare(settings.data_dir), 'credential_key')}")


def with_address_keys(settings: Settings) -> Settings:
    """The settings with the data folder's key for mail addresses, unless keys are set. Raises: StartupError."""
    if settings.address_keys:
        return settings
    return settings.with_values(address_keys=f"1:{secret(prepare(settings.data_dir), 'address_key')}")


def require_own_tokens(settings: Settings) -> None:
    """Raises: StartupError when only an identity provider's tokens count."""
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
    """A token that this product accepts. The settings must have a secret. Raises: StartupError."""
    # Imported here: verifying brings an HTTP client along, which most commands don't need.
    from server.auth.tokens import is_address, mint

    require_own_tokens(settings)
    if email is not None and not is_address(email):
        raise StartupError(f"{email!r} is no mail address.")
    assert settings.auth_secret, "see with_auth_secret"
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
    """A day's token for a demo user. Raises: StartupError."""
    return sign(
        settings,
        user_id=user.id,
        organization_id=user.organization_id,
        roles=user.roles,
        name=user.name,
        handle=user.handle,
    )

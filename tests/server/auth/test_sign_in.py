"""Tokens that Noroshi itself signs, for the command line and for demo users.

The tokens are signed with the configured secret, or with the secret of the data folder.
"""

from dataclasses import dataclass
from pathlib import Path

import pytest

from server.auth.sign_in import sign_user_token, with_auth_secret
from server.auth.tokens import TokenVerifier
from server.processes import StartupError
from server.settings import Settings
from storage.identity.roles import Role


@dataclass(frozen=True)
class ExampleUser:
    id: str = "u1"
    handle: str = "mika"
    name: str = "Mika"
    organization_id: str = "o1"
    roles: tuple[str, ...] = ("MEMBER", "ADMIN")


@pytest.mark.anyio
async def test_signed_token_passes_audience_and_issuer_checks(data_dir: Path) -> None:
    settings = with_auth_secret(Settings(data_dir=data_dir, auth_audience="us", auth_issuer="me"))
    verifier = TokenVerifier(secret=settings.auth_secret, audience="us", issuer="me")
    claims = await verifier.verify(sign_user_token(settings, ExampleUser()))
    assert (claims.user_id, claims.organization_id, claims.name, claims.handle) == ("u1", "o1", "Mika", "mika")
    assert claims.roles == {Role.MEMBER, Role.ADMIN}


def test_configured_secret_overrides_stored_secret(data_dir: Path) -> None:
    settings = Settings(data_dir=data_dir)
    assert with_auth_secret(settings).auth_secret == with_auth_secret(settings).auth_secret
    configured = settings.with_values(auth_secret="configured")
    assert with_auth_secret(configured) == configured


def test_signing_is_refused_if_an_identity_provider_is_set(data_dir: Path) -> None:
    settings = with_auth_secret(Settings(data_dir=data_dir, auth_jwks_url="https://issuer.example/keys"))
    assert settings.auth_secret is None
    with pytest.raises(StartupError, match="NOROSHI_AUTH_JWKS_URL"):
        sign_user_token(settings, ExampleUser())

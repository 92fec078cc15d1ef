"""Tokens of our own: signed so that the product accepts them."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from server.auth.sign_in import sign_for, with_auth_secret
from server.auth.tokens import TokenVerifier
from server.processes import StartupError
from server.settings import Settings
from storage.identity.roles import Role


@dataclass(frozen=True)
class Visitor:
    id: str = "u1"
    handle: str = "mika"
    name: str = "Mika"
    organization_id: str = "o1"
    roles: tuple[str, ...] = ("MEMBER", "ADMIN")


@pytest.mark.anyio
async def test_a_demo_users_token_is_accepted_with_audience_and_issuer(data_dir: Path) -> None:
    settings = with_auth_secret(Settings(data_dir=data_dir, auth_audience="us", auth_issuer="me"))
    verifier = TokenVerifier(secret=settings.auth_secret, audience="us", issuer="me")
    claims = await verifier.verify(sign_for(settings, Visitor()))
    assert (claims.user_id, claims.organization_id, claims.name, claims.handle) == ("u1", "o1", "Mika", "mika")
    assert claims.roles == {Role.MEMBER, Role.ADMIN}


def test_the_data_folders_secret_stays_the_same_and_a_given_one_comes_first(data_dir: Path) -> None:
    settings = Settings(data_dir=data_dir)
    assert with_auth_secret(settings).auth_secret == with_auth_secret(settings).auth_secret
    given = settings.with_values(auth_secret="given")
    assert with_auth_secret(given) == given


def test_an_identity_providers_tokens_are_not_signed_here(data_dir: Path) -> None:
    settings = with_auth_secret(Settings(data_dir=data_dir, auth_jwks_url="https://issuer.example/keys"))
    assert settings.auth_secret is None
    with pytest.raises(StartupError, match="NOROSHI_AUTH_JWKS_URL"):
        sign_for(settings, Visitor())

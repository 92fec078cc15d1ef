"""Creates the client of the identity provider that the settings name."""

from server.auth.oidc.claims import ClaimMap, parse_pairs
from server.auth.oidc.client import ClientRegistration, OidcClient
from server.auth.oidc.provider import IdentityProvider
from server.http.oidc import CALLBACK
from server.processes import StartupError
from server.settings import Settings
from storage.identity.roles import Role


def oidc_client(settings: Settings) -> OidcClient | None:
    """Returns the client, or None if people do not sign in by OpenID Connect. Raises: StartupError."""
    if settings.oidc_issuer is None:
        return None
    if not settings.oidc_client_id or "openid" not in settings.oidc_scopes:
        raise StartupError("NOROSHI_OIDC_ISSUER needs NOROSHI_OIDC_CLIENT_ID, and openid in NOROSHI_OIDC_SCOPES.")
    registration = ClientRegistration(
        settings.oidc_client_id,
        settings.oidc_client_secret,
        settings.oidc_scopes,
        f"{settings.base_url}{CALLBACK}",
    )
    return OidcClient(IdentityProvider(settings.oidc_issuer), registration, _claim_map(settings))


def _claim_map(settings: Settings) -> ClaimMap:
    roles = {name: Role(value) for name, value in parse_pairs(settings.oidc_roles, ":").items()}
    return ClaimMap(
        parse_pairs(settings.oidc_claims, "="), settings.organization, roles, frozenset(settings.oidc_mail_domains)
    )

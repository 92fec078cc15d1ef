"""Settings of tokens, sign-in and sessions (docs/sign-in.md)."""

from typing import Annotated
from urllib.parse import urlsplit

from pydantic_settings import NoDecode

from server.setting_groups.database import DatabaseSettings
from server.setting_groups.values import (
    AUTH_SECRET_MIN_BYTES,
    COMMA_SEPARATED,
    ClaimPointer,
    HostName,
    HttpAddress,
    RoleMapping,
    Secret,
    setting,
)


class SignInSettings(DatabaseSettings):
    """The settings of tokens, sign-in and sessions."""

    auth_secret: Secret | None = setting(
        None,
        secret=True,
        expected=f"at least {AUTH_SECRET_MIN_BYTES} bytes",
        description="The secret of HS256 tokens, the same for all processes. "
        "If unset, `noroshi up` generates a secret in the data folder.",
    )
    auth_jwks_url: HttpAddress | None = setting(
        None,
        expected="an http or https address",
        description="The key set of an identity provider. If set, only RS256 and ES256 tokens of these keys are valid.",
    )
    auth_audience: str | None = setting(
        None,
        expected="the `aud` claim that tokens must have",
        description="The audience that tokens must name. If unset, tokens that name an audience are refused.",
    )
    auth_issuer: str | None = setting(
        None,
        expected="the `iss` claim that tokens must have",
        description="The issuer that tokens must name. If unset, any issuer is accepted.",
    )
    roles_last_days: int = setting(
        90,
        ge=1,
        le=3650,
        expected="a number of days from 1 to 3650",
        description="The number of days for which the scheduled posts of a user are published with a role, counted "
        "from the user's last token with the role. The same for all processes.",
    )
    roles_from_tokens: bool = setting(
        True,
        expected="true or false",
        description="Whether users have the roles of their tokens until roles are granted to them. With `false` they "
        "are at most MEMBERs until then, and a token can't widen any rights. The same for all processes.",
    )
    organization: str = setting(
        "main",
        pattern=r"^[^\s\x00-\x1f\x7f]{1,200}$",
        expected="an organization id of 1 to 200 characters without spaces",
        description="The organization of people who sign in here, unless the identity provider names another one.",
    )
    session_idle_hours: int = setting(
        168,
        ge=1,
        le=8760,
        expected="a number of hours from 1 to 8760",
        description="The hours after which a signed-in browser that is not used has to sign in again.",
    )
    session_max_hours: int = setting(
        720,
        ge=1,
        le=8760,
        expected="a number of hours from 1 to 8760",
        description="The hours after which a signed-in browser has to sign in again in any case.",
    )
    local_accounts: bool | None = setting(
        None,
        expected="true or false",
        description="Whether people may have accounts of this server; `true` also allows them beside an identity "
        "provider. If unset, true where neither NOROSHI_OIDC_ISSUER nor NOROSHI_AUTH_JWKS_URL is set.",
    )
    open_registration: bool = setting(
        False,
        expected="true or false",
        description="Lets everyone with a mail address make an account. Otherwise an account needs an invitation.",
    )
    oidc_issuer: HttpAddress | None = setting(
        None,
        expected="an http or https address",
        description="The issuer at which people sign in by OpenID Connect. Needs NOROSHI_OIDC_CLIENT_ID.",
    )
    oidc_client_id: str | None = setting(
        None, expected="the id of a client", description="The client by which the issuer knows this product."
    )
    oidc_client_secret: str | None = setting(
        None,
        secret=True,
        expected="the secret of the client",
        description="The secret of the client. If unset, the product is a public client.",
    )
    oidc_name: str | None = setting(
        None,
        expected="a name",
        description="The provider's name on the sign-in screen. If unset, the host of the issuer.",
    )
    oidc_scopes: Annotated[tuple[str, ...], NoDecode, COMMA_SEPARATED] = setting(
        ("openid", "profile", "email"),
        expected="scopes separated by commas, openid among them",
        description="The scopes to ask for.",
    )
    oidc_claims: Annotated[tuple[ClaimPointer, ...], NoDecode, COMMA_SEPARATED] = setting(
        ("name=/name", "handle=/preferred_username", "email=/email"),
        expected="pairs such as roles=/realm_access/roles, separated by commas",
        description="The JSON pointers of the claims that hold org, roles, name, handle and email.",
    )
    oidc_roles: Annotated[tuple[RoleMapping, ...], NoDecode, COMMA_SEPARATED] = setting(
        (),
        expected="pairs such as noroshi-admin:ADMIN, separated by commas",
        description="Pairs of a role of the provider and the role that a sign-in grants for it. If unset, a sign-in "
        "grants no roles.",
    )
    oidc_mail_domains: Annotated[tuple[HostName, ...], NoDecode, COMMA_SEPARATED] = setting(
        (),
        expected="domains such as example.org, separated by commas",
        description="The domains of verified mail addresses that may sign in. If unset, everybody may.",
    )

    @property
    def has_local_accounts(self) -> bool:
        """Whether people may have accounts of this server: where there is no identity provider, or beside it."""
        if self.local_accounts is not None:
            return self.local_accounts
        return self.auth_jwks_url is None and self.oidc_issuer is None

    @property
    def oidc_display_name(self) -> str:
        """The provider's name on the sign-in screen."""
        return self.oidc_name or urlsplit(self.oidc_issuer or "").hostname or ""

"""Maps the claims of an identity provider to a person of an organization."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from server.auth.oidc.failures import SignInFailed, SignInFailure
from server.auth.tokens import TokenInvalid, claim_text, is_mail_address, optional_claim_text
from storage.identity.provider_logins import PersonClaims
from storage.identity.roles import Role

NAMES = ("org", "roles", "name", "handle", "email")
"""The values that a claim map may name."""


@dataclass(frozen=True, slots=True)
class ClaimMap:
    """Rules by which the claims of a provider are read."""

    pointers: Mapping[str, str]
    """JSON pointers into the claims, by the names of NAMES."""

    organization: str
    """The organization of all people, unless `pointers` names a claim for the organization."""

    roles: Mapping[str, Role]
    """The role that each role of the provider grants. Other roles of the provider grant nothing."""

    mail_domains: frozenset[str] = frozenset()
    """The domains of verified mail addresses that may sign in; empty if all people may."""

    def person(self, claims: Mapping[str, Any]) -> PersonClaims:
        """Returns the person that the claims describe. Raises: SignInFailed."""
        try:
            values = {name: value_at(claims, pointer) for name, pointer in self.pointers.items()}
            email = self._checked_email(values.get("email"), claims.get("email_verified"))
            return PersonClaims(
                user_id=claim_text(claims.get("sub"), "sub"),
                organization_id=claim_text(values["org"], "org") if "org" in values else self.organization,
                roles=self._roles(values.get("roles")),
                name=optional_claim_text(values.get("name"), "name"),
                handle=optional_claim_text(values.get("handle"), "handle"),
                email=email,
                is_email_verified=email is not None and claims.get("email_verified") is True,
            )
        except TokenInvalid as error:
            raise SignInFailed(SignInFailure.CLAIMS, error.reason) from None

    def _checked_email(self, value: object, is_verified: object) -> str | None:
        email = value if isinstance(value, str) and is_mail_address(value) else None
        if not self.mail_domains:
            return email
        domain = "" if email is None else email.rpartition("@")[2].lower()
        if domain not in self.mail_domains or is_verified is not True:
            raise SignInFailed(SignInFailure.DOMAIN, "no verified mail address of an allowed domain")
        return email

    def _roles(self, value: object) -> frozenset[Role] | None:
        if not self.roles:
            return None
        names = [name for name in value if isinstance(name, str)] if isinstance(value, list) else []
        return frozenset({Role.MEMBER, *(self.roles[name] for name in names if name in self.roles)})


def value_at(document: object, pointer: str) -> Any:
    """Returns the value at a JSON pointer (RFC 6901), or None if there is none."""
    for part in pointer.split("/")[1:]:
        key = part.replace("~1", "/").replace("~0", "~")
        if isinstance(document, dict):
            document = document.get(key)
        elif isinstance(document, list) and key.isdecimal() and int(key) < len(document):
            document = document[int(key)]
        else:
            return None
    return document


def parse_pairs(texts: tuple[str, ...], separator: str) -> dict[str, str]:
    """Returns the pairs of a setting such as `name=/name`."""
    return dict(text.split(separator, 1) for text in texts)

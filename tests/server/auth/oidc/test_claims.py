"""Claims become a person by JSON pointers. Unknown roles grant nothing, and other mail domains are refused."""

from typing import Any

import pytest

from server.auth.oidc.claims import ClaimMap, value_at
from server.auth.oidc.failures import SignInFailed, SignInFailure
from storage.identity.roles import Role

POINTERS = {"org": "/org", "roles": "/realm_access/roles", "email": "/email"}
CLAIMS = {
    "sub": "42",
    "org": "acme",
    "realm_access": {"roles": ["chief", "other", 5]},
    "email": "ann@Example.org",
    "email_verified": True,
}


def claim_map(**changes: Any) -> ClaimMap:
    values = {"organization": "main", "roles": {"chief": Role.ADMIN}, "mail_domains": frozenset({"example.org"})}
    return ClaimMap(POINTERS, **(values | changes))


def test_named_roles_are_granted_and_no_others() -> None:
    person = claim_map().person(CLAIMS)
    assert (person.user_id, person.organization_id) == ("42", "acme")
    assert person.roles == frozenset({Role.ADMIN, Role.MEMBER})
    for value in (None, "chief", {"chief": True}, ["ADMIN", "SERVICE"]):
        assert claim_map().person({**CLAIMS, "realm_access": {"roles": value}}).roles == frozenset({Role.MEMBER})
    assert claim_map(roles={}).person(CLAIMS).roles is None


@pytest.mark.parametrize(
    "change",
    [{"email": "ann@example.org.evil"}, {"email": None}, {"email": ["ann@example.org"]}]
    + [{"email_verified": value} for value in (False, None, "true", 1)],
)
def test_unverified_address_or_other_domain_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(SignInFailed) as raised:
        claim_map().person({**CLAIMS, **change})
    assert raised.value.failure is SignInFailure.DOMAIN


@pytest.mark.parametrize("change", [{"org": None}, {"org": ""}, {"org": ["acme"]}, {"sub": None}, {"sub": "a\n"}])
def test_missing_claim_never_means_the_default_organization(change: dict[str, Any]) -> None:
    with pytest.raises(SignInFailed) as raised:
        claim_map().person({**CLAIMS, **change})
    assert raised.value.failure is SignInFailure.CLAIMS


def test_pointers_follow_rfc_6901() -> None:
    document = {"a/b": {"~c": [1, {"d": 2}]}}
    assert value_at(document, "/a~1b/~0c/1/d") == 2
    for pointer in ("/a", "/a~1b/~0c/2", "/a~1b/~0c/x", "/a~1b/~0c/0/d"):
        assert value_at(document, pointer) is None

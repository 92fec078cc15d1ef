"""Administration of users through the API: who may do it, and what it answers."""

import pytest

from storage.identity.roles import Role
from tests.resolvers.people import SignIn

pytestmark = pytest.mark.anyio

ORGANIZATION_USERS = """
query ($query: String, $role: Role, $deactivated: Boolean, $after: ID, $limit: Int! = 10) {
  organizationUsers(query: $query, role: $role, deactivated: $deactivated, after: $after, limit: $limit) {
    id roles deactivated
  }
}
"""
SET_ROLES = "mutation ($id: ID!, $roles: [Role!]!) { done: setUserRoles(userId: $id, roles: $roles) { roles } }"
DEACTIVATE = """
mutation ($id: ID!, $reason: String! = "left") { done: deactivateUser(userId: $id, reason: $reason) { deactivated } }
"""
REACTIVATE = "mutation ($id: ID!) { done: reactivateUser(userId: $id) { deactivated } }"


async def test_only_administrators_administer(sign_in: SignIn) -> None:
    await sign_in("bob")
    for role in (Role.MEMBER, Role.OPERATOR, Role.SERVICE):
        other = await sign_in(f"user-{role.value}", roles=[role])
        assert await other.code(ORGANIZATION_USERS) == "FORBIDDEN"
        assert await other.code(SET_ROLES, id="bob", roles=["ADMIN"]) == "FORBIDDEN"
        assert await other.code(DEACTIVATE, id="bob") == "FORBIDDEN"
        assert await other.code(REACTIVATE, id="bob") == "FORBIDDEN"


async def test_administrator_changes_and_lists_users(sign_in: SignIn) -> None:
    ada = await sign_in("ada", roles=[Role.ADMIN])
    await sign_in("bob")
    assert await ada.do(SET_ROLES, id="bob", roles=["OPERATOR", "MEMBER"]) == {"roles": ["MEMBER", "OPERATOR"]}
    assert await ada.do(DEACTIVATE, id="bob") == {"deactivated": True}
    deactivated = {"id": "bob", "roles": ["MEMBER", "OPERATOR"], "deactivated": True}
    assert (await ada.run(ORGANIZATION_USERS, deactivated=True))["organizationUsers"] == [deactivated]
    assert (await ada.run(ORGANIZATION_USERS, after="ada", role="OPERATOR"))["organizationUsers"] == [deactivated]
    assert [each["id"] for each in (await ada.run(ORGANIZATION_USERS, query="@AD"))["organizationUsers"]] == ["ada"]
    assert await ada.do(REACTIVATE, id="bob") == {"deactivated": False}


async def test_invalid_arguments_name_the_field(sign_in: SignIn) -> None:
    ada = await sign_in("ada", roles=[Role.ADMIN])
    await sign_in("bob")
    assert (await ada.fails(SET_ROLES, id="bob", roles=[]))["field"] == "roles"
    assert (await ada.fails(DEACTIVATE, id="bob", reason=" "))["field"] == "reason"
    assert (await ada.fails(DEACTIVATE, id="bob", reason="x" * 501))["field"] == "reason"
    assert (await ada.fails(ORGANIZATION_USERS, query=" "))["field"] == "query"
    assert (await ada.fails(ORGANIZATION_USERS, limit=0))["field"] == "limit"
    assert await ada.code(DEACTIVATE, id="nobody") == "NOT_FOUND"
    assert await ada.code(DEACTIVATE, id="ada") == "FORBIDDEN"
    assert await ada.code(ORGANIZATION_USERS, after="nobody") == "NOT_FOUND"

"""Administration of users through the API: who may do it, and what it answers."""

import pytest

from storage.identity.roles import Role
from storage.identity.session_records import NewSession, SignInMethod
from storage.ids import UserKey
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
END_SESSIONS = """
mutation ($id: ID!, $reason: String! = "lost", $session: ID) {
  done: endUserSessions(userId: $id, reason: $reason, sessionId: $session)
}
"""
ENDINGS = "{ auditLog(action: USER_SESSIONS_ENDED) { details { value } } }"
SESSIONS = "query ($id: ID!) { userSessions(userId: $id) { id method address userAgent current } }"
REACTIVATE = "mutation ($id: ID!) { done: reactivateUser(userId: $id) { deactivated } }"


async def test_only_administrators_administer(sign_in: SignIn) -> None:
    await sign_in("bob")
    for role in (Role.MEMBER, Role.OPERATOR, Role.SERVICE):
        other = await sign_in(f"user-{role.value}", roles=[role])
        assert await other.code(ORGANIZATION_USERS) == "FORBIDDEN"
        assert await other.code(SET_ROLES, id="bob", roles=["ADMIN"]) == "FORBIDDEN"
        assert await other.code(DEACTIVATE, id="bob") == "FORBIDDEN"
        assert await other.code(REACTIVATE, id="bob") == "FORBIDDEN"
        assert await other.code(END_SESSIONS, id="bob") == "FORBIDDEN"
        assert await other.code(SESSIONS, id="bob") == "FORBIDDEN"


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


async def test_administrator_signs_user_out_of_one_browser_then_all(sign_in: SignIn) -> None:
    ada = await sign_in("ada", roles=[Role.ADMIN])
    bob = await sign_in("bob")
    for agent in ("laptop", "phone", "tablet"):
        await bob.stores.sessions.begin(NewSession(UserKey("acme", "bob"), SignInMethod.DEMO, user_agent=agent))
    sessions = (await ada.run(SESSIONS, id="bob"))["userSessions"]
    ids = {each["userAgent"]: each["id"] for each in sessions}
    assert {"method": "DEMO", "address": None, "current": False}.items() <= sessions[0].items()

    assert await ada.do(END_SESSIONS, id="bob", session=ids["phone"]) == 1
    assert {each["userAgent"] for each in (await ada.run(SESSIONS, id="bob"))["userSessions"]} == {"laptop", "tablet"}
    assert await ada.code(END_SESSIONS, id="bob", session=ids["phone"]) == "NOT_FOUND"
    assert await ada.code(END_SESSIONS, id="ada", session=ids["laptop"]) == "NOT_FOUND"
    assert await ada.do(END_SESSIONS, id="bob") == 2
    assert (await ada.run(SESSIONS, id="bob"))["userSessions"] == []
    entries = (await ada.run(ENDINGS))["auditLog"]
    assert [[detail["value"] for detail in entry["details"]] for entry in entries] == [["2", "lost"], ["1", "lost"]]


async def test_invalid_arguments_name_the_field(sign_in: SignIn) -> None:
    ada = await sign_in("ada", roles=[Role.ADMIN])
    await sign_in("bob")
    assert (await ada.fails(SET_ROLES, id="bob", roles=[]))["field"] == "roles"
    assert (await ada.fails(DEACTIVATE, id="bob", reason=" "))["field"] == "reason"
    assert (await ada.fails(DEACTIVATE, id="bob", reason="x" * 501))["field"] == "reason"
    assert (await ada.fails(END_SESSIONS, id="bob", reason="x" * 501))["field"] == "reason"
    assert await ada.code(END_SESSIONS, id="nobody") == "NOT_FOUND"
    assert await ada.code(SESSIONS, id="nobody") == "NOT_FOUND"
    assert (await ada.fails(ORGANIZATION_USERS, query=" "))["field"] == "query"
    assert (await ada.fails(ORGANIZATION_USERS, limit=0))["field"] == "limit"
    assert await ada.code(DEACTIVATE, id="nobody") == "NOT_FOUND"
    assert await ada.code(DEACTIVATE, id="ada") == "FORBIDDEN"
    assert await ada.code(ORGANIZATION_USERS, after="nobody") == "NOT_FOUND"

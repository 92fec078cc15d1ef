"""The audit log through the API: what an entry says, filters and pages."""

import pytest

from storage.identity.roles import Role
from tests.resolvers.people import SignIn

pytestmark = pytest.mark.anyio

DEACTIVATE = """
mutation ($id: ID!, $reason: String! = "left") { done: deactivateUser(userId: $id, reason: $reason) { deactivated } }
"""
AUDIT = """
query ($since: DateTime, $action: AuditAction, $after: ID) {
  auditLog(since: $since, action: $action, after: $after) {
    id at actorId actor { name } action targetKind targetId details { name value } address userAgent
  }
}
"""
BAN = """
mutation ($community: ID!) { banMember(communityId: $community, userId: "bob", reason: "spam") { bannedAt } }
"""


async def test_audit_log_says_who_did_what_to_whom(sign_in: SignIn) -> None:
    ada = await sign_in("ada", roles=[Role.ADMIN], name="Ada")
    await sign_in("bob")
    await ada.do(DEACTIVATE, id="bob", reason="left the company")
    (entry,) = (await ada.run(AUDIT, action="USER_DEACTIVATED"))["auditLog"]
    assert entry["details"] == [{"name": "reason", "value": "left the company"}]
    assert (entry["actorId"], entry["actor"], entry["targetKind"], entry["targetId"]) == (
        "ada",
        {"name": "Ada"},
        "USER",
        "bob",
    )
    assert (await ada.run(AUDIT, since=entry["at"]))["auditLog"] == [entry]
    assert (await ada.run(AUDIT, after=entry["id"]))["auditLog"] == []
    assert (await ada.run(AUDIT, action="USER_REACTIVATED"))["auditLog"] == []


async def test_only_administrators_read_the_audit_log(sign_in: SignIn) -> None:
    for role in (Role.MEMBER, Role.OPERATOR, Role.SERVICE):
        other = await sign_in(f"user-{role.value}", roles=[role])
        assert await other.code(AUDIT) == "FORBIDDEN"


async def test_unknown_entry_is_not_found(sign_in: SignIn) -> None:
    ada = await sign_in("ada", roles=[Role.ADMIN])
    assert await ada.code(AUDIT, after="nothing") == "NOT_FOUND"


async def test_private_community_hides_reasons_from_non_members(sign_in: SignIn) -> None:
    ada = await sign_in("ada", roles=[Role.ADMIN])
    owner, _ = await sign_in("owl", roles=[Role.ADMIN]), await sign_in("bob")
    for visibility in ("PUBLIC", "PRIVATE"):
        community = await owner.create_community(visibility, visibility=visibility)
        await owner.run(BAN, community=community)
    reasons = []
    for reader in (ada, owner):
        found = (await reader.run(AUDIT, action="COMMUNITY_MEMBER_BANNED"))["auditLog"]
        reasons.append(
            [detail["value"] for entry in found for detail in entry["details"] if detail["name"] == "reason"]
        )
    assert reasons == [["spam"], ["spam", "spam"]]

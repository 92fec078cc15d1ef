"""The audit log through the API: what an entry says, filters and pages."""

import pytest

from resolvers.administration.audit import HIDDEN_ID
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

DESCRIBE = 'mutation ($community: ID!) { updateCommunity(id: $community, description: "new") { id } }'


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


async def test_private_community_is_not_named_to_non_members(sign_in: SignIn) -> None:
    ada = await sign_in("ada", roles=[Role.ADMIN])
    owner, _ = await sign_in("owl", roles=[Role.ADMIN]), await sign_in("bob")
    communities = [await owner.create_community(each, visibility=each) for each in ("PUBLIC", "PRIVATE")]
    for community in communities:
        await owner.run(BAN, community=community)
        await owner.run(DESCRIBE, community=community)
    for reader, seen in ((ada, communities[:1]), (owner, communities)):
        bans = (await reader.run(AUDIT, action="COMMUNITY_MEMBER_BANNED"))["auditLog"]
        assert [each["targetId"] for each in bans] == ["bob", "bob"]
        details = [detail["value"] for entry in bans for detail in entry["details"] if detail["name"] != "until"]
        assert sorted(details) == sorted([*seen, *[HIDDEN_ID] * (2 - len(seen)), *["spam"] * len(seen)])
        changes = (await reader.run(AUDIT, action="COMMUNITY_CHANGED"))["auditLog"]
        assert [each["targetId"] for each in changes] == [*[HIDDEN_ID] * (2 - len(seen)), *reversed(seen)]


async def test_private_community_has_no_entries_for_non_members(sign_in: SignIn) -> None:
    """An ADMIN cannot find out by the filter that the community exists."""
    ada, owner = await sign_in("ada", roles=[Role.ADMIN]), await sign_in("owl", roles=[Role.ADMIN])
    community = await owner.create_community("Hut", visibility="PRIVATE")
    await owner.run(DESCRIBE, community=community)
    of_target = "query ($id: ID!) { done: auditLog(targetId: $id) { action } }"
    assert await ada.do(of_target, id=community) == []
    assert await owner.do(of_target, id=community) == [{"action": "COMMUNITY_CHANGED"}]

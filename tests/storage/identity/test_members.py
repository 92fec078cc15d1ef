"""Administration of users: granted roles, deactivated users, and changes at the same time."""

import asyncio

import pytest

from storage.errors import Forbidden, NotFound
from storage.identity.audit import Actor, AuditAction, AuditDetail, AuditFilter
from storage.identity.members import MemberFilter
from storage.identity.roles import Role
from storage.stores import Stores

pytestmark = pytest.mark.anyio

ALL = AuditFilter()


async def test_granted_roles_no_longer_follow_tokens(shared_stores: Stores, admin: Actor) -> None:
    org, users = admin.organization_id, shared_stores.users
    await shared_stores.members.set_roles(admin, "ann", {Role.OPERATOR})
    user = await users.sign_in(org, "ann", [Role.ADMIN], "Ann", None)
    assert (user.roles, user.has_granted_roles) == ((Role.OPERATOR,), True)
    assert await users.lasting_roles(org, "ann") == {Role.OPERATOR}


async def test_token_seen_during_the_grant_does_not_replace_it(shared_stores: Stores, admin: Actor) -> None:
    org, users = admin.organization_id, shared_stores.users
    for roles in ([Role.OPERATOR], [Role.MEMBER]) * 5:
        signing = (users.sign_in(org, "ann", [Role.ADMIN, *roles], f"Ann {n}", None) for n in range(5))
        await asyncio.gather(shared_stores.members.set_roles(admin, "ann", set(roles)), *signing)
        assert (await users.get(org, "ann")).roles == tuple(roles)


async def test_each_change_leaves_one_audit_entry(shared_stores: Stores, admin: Actor) -> None:
    members = shared_stores.members
    for _ in range(2):
        await members.set_roles(admin, "ann", {Role.OPERATOR, Role.MEMBER})
        await members.deactivate(admin, "ann", "left the company")
    await members.reactivate(admin, "ann")
    entries = await shared_stores.audit.list_entries(admin.organization_id, ALL, None, 10)
    assert {each.target_id for each in entries} == {"ann"}
    assert [(each.action, each.details) for each in entries] == [
        (AuditAction.MEMBER_REACTIVATED, []),
        (AuditAction.MEMBER_DEACTIVATED, [AuditDetail("reason", "left the company")]),
        (AuditAction.MEMBER_ROLES_SET, [AuditDetail("before", "MEMBER"), AuditDetail("after", "MEMBER, OPERATOR")]),
    ]
    assert {(each.actor_id, each.address, each.user_agent) for each in entries} == {("ada", "192.0.2.1", "Firefox")}


async def test_refused_change_leaves_no_entry(shared_stores: Stores, admin: Actor) -> None:
    with pytest.raises(NotFound):
        await shared_stores.members.set_roles(admin, "nobody", {Role.ADMIN})
    for change in (
        shared_stores.members.set_roles(admin, "ada", {Role.MEMBER}),
        shared_stores.members.deactivate(admin, "ada", "bye"),
    ):
        with pytest.raises(Forbidden):
            await change
    assert await shared_stores.audit.list_entries(admin.organization_id, ALL, None, 10) == []


async def test_deactivated_user_has_no_roles_for_later_work(shared_stores: Stores, admin: Actor) -> None:
    org = admin.organization_id
    await shared_stores.members.deactivate(admin, "ann", "left")
    assert (await shared_stores.users.get(org, "ann")).is_deactivated
    assert await shared_stores.users.lasting_roles(org, "ann") == frozenset()
    await shared_stores.members.reactivate(admin, "ann")
    assert not (await shared_stores.users.get(org, "ann")).is_deactivated
    assert await shared_stores.users.lasting_roles(org, "ann") == {Role.MEMBER}


async def test_former_administrator_changes_nothing(shared_stores: Stores, admin: Actor) -> None:
    members = shared_stores.members
    await members.set_roles(admin, "bob", {Role.ADMIN})
    bob = Actor(admin.organization_id, "bob")
    await members.deactivate(bob, "ada", "left")
    with pytest.raises(Forbidden):
        await members.set_roles(admin, "ann", {Role.ADMIN})
    await members.reactivate(bob, "ada")
    await members.set_roles(bob, "ada", {Role.MEMBER})
    with pytest.raises(Forbidden):
        await members.set_roles(admin, "ann", {Role.ADMIN})


async def test_of_administrators_who_demote_each_other_one_remains(shared_stores: Stores, admin: Actor) -> None:
    members, org = shared_stores.members, admin.organization_id
    await members.set_roles(admin, "bob", {Role.ADMIN})
    bob = Actor(org, "bob")
    await members.set_roles(bob, "ada", {Role.ADMIN})
    for _ in range(10):
        changes = members.set_roles(admin, "bob", {Role.MEMBER}), members.set_roles(bob, "ada", {Role.MEMBER})
        results = await asyncio.gather(*changes, return_exceptions=True)
        assert [type(each) for each in results].count(Forbidden) == 1, results
        (left,) = await members.list_members(org, MemberFilter(role=Role.ADMIN), None, 10)
        demoted = "bob" if left.id == "ada" else "ada"
        await members.set_roles(Actor(org, left.id), demoted, {Role.ADMIN})


async def test_list_is_filtered_and_paged_by_handle(shared_stores: Stores, admin: Actor) -> None:
    members, org = shared_stores.members, admin.organization_id
    await members.deactivate(admin, "bob", "left")

    async def ids(wanted: MemberFilter, after: str | None = None, limit: int = 10) -> list[str]:
        return [user.id for user in await members.list_members(org, wanted, after, limit)]

    assert await ids(MemberFilter()) == ["ada", "ann", "bob"]
    assert await ids(MemberFilter(), "ada", 1) == ["ann"]
    assert await ids(MemberFilter(role=Role.ADMIN)) == ["ada"]
    assert await ids(MemberFilter(is_deactivated=True)) == ["bob"]
    assert await ids(MemberFilter(is_deactivated=False, prefix="an")) == ["ann"]
    assert await members.list_members(org + "x", MemberFilter(), None, 10) == []

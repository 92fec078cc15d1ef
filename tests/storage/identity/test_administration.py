"""Administration of users: granted roles, deactivated users, and changes at the same time."""

import asyncio

import pytest

from storage.errors import Forbidden, NotFound
from storage.identity.administration import UserFilter
from storage.identity.audit import Actor, AuditAction, AuditDetail, AuditFilter
from storage.identity.roles import Role
from storage.identity.session_records import NewSession, SignInMethod
from storage.ids import UserKey
from storage.stores import Stores

pytestmark = pytest.mark.anyio

ALL = AuditFilter()


async def test_granted_roles_no_longer_follow_tokens(shared_stores: Stores, admin: Actor) -> None:
    org, users = admin.organization_id, shared_stores.users
    await shared_stores.user_administration.set_roles(admin, "ann", {Role.OPERATOR})
    user = await users.sign_in(org, "ann", [Role.ADMIN], "Ann", None)
    assert (user.roles, user.has_granted_roles) == ((Role.OPERATOR,), True)
    assert await users.lasting_roles(org, "ann") == {Role.OPERATOR}


async def test_token_seen_during_the_grant_does_not_replace_it(shared_stores: Stores, admin: Actor) -> None:
    org, users = admin.organization_id, shared_stores.users
    for roles in ([Role.OPERATOR], [Role.MEMBER]) * 5:
        sign_ins = (users.sign_in(org, "ann", [Role.ADMIN, *roles], f"Ann {n}", None) for n in range(5))
        await asyncio.gather(shared_stores.user_administration.set_roles(admin, "ann", set(roles)), *sign_ins)
        assert (await users.get(org, "ann")).roles == tuple(roles)


async def test_each_change_leaves_one_audit_entry(shared_stores: Stores, admin: Actor) -> None:
    administration = shared_stores.user_administration
    for _ in range(2):
        await administration.set_roles(admin, "ann", {Role.OPERATOR, Role.MEMBER})
        await administration.deactivate(admin, "ann", "left the company")
    await administration.reactivate(admin, "ann")
    entries = await shared_stores.audit.list_entries(admin.organization_id, ALL, None, 10)
    assert {each.target_id for each in entries} == {"ann"}
    assert [(each.action, each.details) for each in entries] == [
        (AuditAction.USER_REACTIVATED, []),
        (AuditAction.USER_DEACTIVATED, [AuditDetail("reason", "left the company")]),
        (AuditAction.USER_ROLES_SET, [AuditDetail("before", "MEMBER"), AuditDetail("after", "MEMBER, OPERATOR")]),
    ]
    assert {(each.actor_id, each.address, each.user_agent) for each in entries} == {("ada", "192.0.2.1", "Firefox")}


async def test_sessions_ended_concurrently_leave_one_entry(shared_stores: Stores, admin: Actor) -> None:
    org, sessions = admin.organization_id, shared_stores.sessions
    ann = UserKey(org, "ann")
    tokens = [await sessions.begin(NewSession(ann, SignInMethod.DEMO)) for _ in range(3)]
    other = await sessions.begin(NewSession(UserKey(org, "ada"), SignInMethod.DEMO))
    end = shared_stores.user_administration.end_sessions
    assert sorted(await asyncio.gather(*(end(admin, "ann", "lost laptop") for _ in range(4)))) == [0, 0, 0, 3]
    assert [await sessions.find(token) for token in tokens] == [None] * 3
    assert await sessions.find(other) is not None
    (entry,) = await shared_stores.audit.list_entries(org, ALL, None, 10)
    assert (entry.action, entry.target_id) == (AuditAction.USER_SESSIONS_ENDED, "ann")
    assert list(entry.details) == [AuditDetail("sessions", "3"), AuditDetail("reason", "lost laptop")]
    assert await sessions.find(await sessions.begin(NewSession(ann, SignInMethod.DEMO))) is not None


async def test_refused_change_leaves_no_entry(shared_stores: Stores, admin: Actor) -> None:
    with pytest.raises(NotFound):
        await shared_stores.user_administration.set_roles(admin, "nobody", {Role.ADMIN})
    with pytest.raises(NotFound):
        await shared_stores.user_administration.end_sessions(admin, "nobody", "lost laptop")
    for change in (
        shared_stores.user_administration.set_roles(admin, "ada", {Role.MEMBER}),
        shared_stores.user_administration.deactivate(admin, "ada", "bye"),
    ):
        with pytest.raises(Forbidden):
            await change
    assert await shared_stores.audit.list_entries(admin.organization_id, ALL, None, 10) == []


async def test_deactivated_user_has_no_roles_for_later_work(shared_stores: Stores, admin: Actor) -> None:
    org = admin.organization_id
    await shared_stores.user_administration.deactivate(admin, "ann", "left")
    assert (await shared_stores.users.get(org, "ann")).is_deactivated
    assert await shared_stores.users.lasting_roles(org, "ann") == frozenset()
    await shared_stores.user_administration.reactivate(admin, "ann")
    assert not (await shared_stores.users.get(org, "ann")).is_deactivated
    assert await shared_stores.users.lasting_roles(org, "ann") == {Role.MEMBER}


async def test_former_administrator_changes_nothing(shared_stores: Stores, admin: Actor) -> None:
    administration = shared_stores.user_administration
    await administration.set_roles(admin, "bob", {Role.ADMIN})
    bob = Actor(admin.organization_id, "bob")
    await administration.deactivate(bob, "ada", "left")
    with pytest.raises(Forbidden):
        await administration.set_roles(admin, "ann", {Role.ADMIN})
    await administration.reactivate(bob, "ada")
    await administration.set_roles(bob, "ada", {Role.MEMBER})
    with pytest.raises(Forbidden):
        await administration.set_roles(admin, "ann", {Role.ADMIN})


async def test_administrators_who_demote_each_other_leave_one_admin(shared_stores: Stores, admin: Actor) -> None:
    administration, org = shared_stores.user_administration, admin.organization_id
    await administration.set_roles(admin, "bob", {Role.ADMIN})
    bob = Actor(org, "bob")
    await administration.set_roles(bob, "ada", {Role.ADMIN})
    for _ in range(10):
        changes = (
            administration.set_roles(admin, "bob", {Role.MEMBER}),
            administration.set_roles(bob, "ada", {Role.MEMBER}),
        )
        results = await asyncio.gather(*changes, return_exceptions=True)
        assert [type(each) for each in results].count(Forbidden) == 1, results
        (remaining_admin,) = await administration.list_users(org, UserFilter(role=Role.ADMIN), None, 10)
        demoted_id = "bob" if remaining_admin.id == "ada" else "ada"
        await administration.set_roles(Actor(org, remaining_admin.id), demoted_id, {Role.ADMIN})


async def test_list_is_filtered_and_paged_by_handle(shared_stores: Stores, admin: Actor) -> None:
    administration, org = shared_stores.user_administration, admin.organization_id
    await administration.deactivate(admin, "bob", "left")

    async def ids(user_filter: UserFilter, after: str | None = None, limit: int = 10) -> list[str]:
        return [user.id for user in await administration.list_users(org, user_filter, after, limit)]

    assert await ids(UserFilter()) == ["ada", "ann", "bob"]
    assert await ids(UserFilter(), "ada", 1) == ["ann"]
    assert await ids(UserFilter(role=Role.ADMIN)) == ["ada"]
    assert await ids(UserFilter(is_deactivated=True)) == ["bob"]
    assert await ids(UserFilter(is_deactivated=False, prefix="an")) == ["ann"]
    assert await administration.list_users(org + "x", UserFilter(), None, 10) == []

"""Locks of people in the transactions that depend on their roles or on their access."""

from functools import partial

import pytest

from storage.errors import AccountDeactivated, Forbidden, NotFound
from storage.identity.audit import Actor, command_line_actor
from storage.identity.records import user_document_id
from storage.identity.rights import lock_actor, lock_operator, require_access
from storage.identity.roles import Role
from storage.ids import UserKey
from storage.mongo import Session
from storage.stores import Stores

pytestmark = pytest.mark.anyio


async def change(stores: Stores, org: str, **fields: object) -> None:
    """Changes the document of `ann` directly."""
    await stores.mongo["users"].update_one({"_id": user_document_id(org, "ann")}, {"$set": fields})


async def may_act(stores: Stores, org: str, role: Role) -> bool:
    try:
        await stores.mongo.transact(lambda session: lock_actor(stores.mongo, Actor(org, "ann"), session, role))
    except Forbidden as error:
        return error.message != f"This needs the role {role.value}."
    return True


@pytest.mark.parametrize(
    ("granted", "sufficient"),
    [
        ("MEMBER", {Role.MEMBER}),
        ("OPERATOR", {Role.MEMBER, Role.OPERATOR}),
        ("ADMIN", {Role.MEMBER, Role.OPERATOR, Role.ADMIN}),
        ("SERVICE", {Role.SERVICE}),
    ],
)
@pytest.mark.usefixtures("admin")
async def test_granted_role_includes_lesser_roles(
    shared_stores: Stores, org: str, granted: str, sufficient: set[Role]
) -> None:
    await change(shared_stores, org, roles=[granted], roles_granted=True)
    assert {role for role in Role if await may_act(shared_stores, org, role)} == sufficient


@pytest.mark.usefixtures("admin")
async def test_token_decides_until_roles_are_granted(shared_stores: Stores, org: str) -> None:
    assert await may_act(shared_stores, org, Role.ADMIN)


@pytest.mark.parametrize("field", ["deactivated_at", "erasing_at"])
@pytest.mark.usefixtures("admin")
async def test_person_without_access_neither_acts_nor_signs_in(shared_stores: Stores, org: str, field: str) -> None:
    await change(shared_stores, org, **{field: await shared_stores.mongo.now()})
    assert not await may_act(shared_stores, org, Role.MEMBER)
    with pytest.raises(AccountDeactivated):
        await shared_stores.mongo.transact(partial(require_access, shared_stores.mongo, UserKey(org, "ann")))


async def test_unknown_person_neither_acts_nor_signs_in(shared_stores: Stores, org: str) -> None:
    assert not await may_act(shared_stores, org, Role.MEMBER)
    with pytest.raises(NotFound):
        await shared_stores.mongo.transact(partial(require_access, shared_stores.mongo, UserKey(org, "ann")))


async def test_system_and_command_line_need_no_role(shared_stores: Stores, org: str) -> None:
    for actor in (None, command_line_actor(org)):
        await shared_stores.mongo.transact(partial(lock_operator, shared_stores.mongo, actor))


async def test_lock_conflicts_with_a_concurrent_demotion(shared_stores: Stores, org: str, admin: Actor) -> None:
    """A demotion between the lock and the commit makes the transaction run again, which then refuses."""
    await shared_stores.user_administration.set_roles(admin, "ann", [Role.OPERATOR])
    attempts = 0

    async def work(session: Session) -> None:
        nonlocal attempts
        attempts += 1
        if attempts == 1:
            await shared_stores.mongo["do_not_call"].find_one({}, session=session)
            await shared_stores.user_administration.set_roles(admin, "ann", [Role.MEMBER])
        await lock_operator(shared_stores.mongo, Actor(org, "ann"), session)

    with pytest.raises(Forbidden):
        await shared_stores.mongo.transact(work)
    assert attempts == 2

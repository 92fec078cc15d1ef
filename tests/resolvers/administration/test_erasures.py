"""Erasure of users through the API: who may request it, and what it shows."""

import asyncio

import pytest

from storage.identity.roles import Role
from tests.resolvers.people import Person, SignIn

pytestmark = pytest.mark.anyio

ERASE = """
mutation ($id: ID!, $handle: String!) {
  done: eraseUser(userId: $id, handle: $handle) { userId state requestedById stepsDone completedAt user { erased } }
}
"""
ERASURES = "query ($after: ID) { erasures(afterUserId: $after) { userId state steps changedObjects } }"
REACTIVATE = "mutation ($id: ID!) { reactivateUser(userId: $id) { id } }"
FOLLOW = "mutation ($id: ID!) { follow(userId: $id) { id } }"


async def test_person_requests_own_erasure_with_handle(sign_in: SignIn) -> None:
    ada, bob = await sign_in("ada", roles=[Role.ADMIN]), await sign_in("bob")
    refused = await bob.fails(ERASE, id="bob", handle="bobby")
    assert (refused["code"], refused["field"]) == ("BAD_USER_INPUT", "handle")
    for _ in range(2):
        assert await bob.do(ERASE, id="bob", handle="@bob") == {
            "userId": "bob",
            "state": "PENDING",
            "requestedById": "bob",
            "stepsDone": 0,
            "completedAt": None,
            "user": {"erased": True},
        }
    entries = (await ada.run("{ auditLog { action actorId targetId details { name } } }"))["auditLog"]
    assert entries == [{"action": "USER_ERASED", "actorId": "bob", "targetId": "bob", "details": []}]
    assert (await sign_in("bob")).user.is_deactivated  # type: ignore[union-attr]
    assert await ada.code(REACTIVATE, id="bob") == "CONFLICT"
    assert await ada.code(FOLLOW, id="bob") == "NOT_FOUND"


async def test_only_administrators_erase_other_people(sign_in: SignIn) -> None:
    await sign_in("bob")
    for role in (Role.MEMBER, Role.OPERATOR, Role.SERVICE):
        other = await sign_in(f"user-{role.value}", roles=[role])
        assert await other.code(ERASE, id="bob", handle="bob") == "FORBIDDEN"
        assert await other.code(ERASURES) == "FORBIDDEN"
    assert await Person(other.stores).code(ERASE, id="bob", handle="bob") == "UNAUTHENTICATED"
    foreigner = await sign_in("ada", "other", [Role.ADMIN])
    assert await foreigner.code(ERASE, id="bob", handle="bob") == "NOT_FOUND"


async def test_administrator_erases_others_and_sees_the_progress(sign_in: SignIn) -> None:
    ada = await sign_in("ada", roles=[Role.ADMIN])
    for name in ("bob", "cat"):
        await sign_in(name)
        await ada.do(ERASE, id=name, handle=name)
    seen = [(each["userId"], each["state"]) for each in (await ada.run(ERASURES))["erasures"]]
    assert seen == [("cat", "PENDING"), ("bob", "PENDING")]
    assert [each["userId"] for each in (await ada.run(ERASURES, after="cat"))["erasures"]] == ["bob"]
    assert await ada.code(ERASURES, after="ada") == "NOT_FOUND"


async def test_progress_shows_no_number_of_objects(sign_in: SignIn) -> None:
    """A person who wrote only direct messages would otherwise show how many."""
    ada = await sign_in("ada", roles=[Role.ADMIN])
    await sign_in("bob")
    await ada.do(ERASE, id="bob", handle="bob")
    erasure = await ada.stores.erasures.find("acme", "bob")
    assert erasure is not None
    await ada.stores.erasures.add_progress(erasure, 7)
    assert [each["changedObjects"] for each in (await ada.run(ERASURES))["erasures"]] == [0]


async def test_organization_keeps_an_administrator(sign_in: SignIn) -> None:
    ada, eve = await sign_in("ada", roles=[Role.ADMIN]), await sign_in("eve", roles=[Role.ADMIN])
    set_roles = "mutation ($id: ID!) { setUserRoles(userId: $id, roles: [ADMIN]) { id } }"
    await ada.run(set_roles, id="eve")
    await eve.run(set_roles, id="ada")
    assert await ada.code(ERASE, id="ada", handle="ada") == "FORBIDDEN"
    codes = await asyncio.gather(ada.code(ERASE, id="eve", handle="eve"), eve.code(ERASE, id="ada", handle="ada"))
    assert sorted(map(str, codes)) == ["FORBIDDEN", "None"]

"""Service keys through the API: what a key looks like, and which arguments are refused."""

import pytest

from storage.identity.audit import command_line_actor
from storage.identity.keys.records import NewServiceKey
from storage.identity.roles import Role
from tests.resolvers.people import Answer, Person, SignIn

pytestmark = pytest.mark.anyio

CREATE = """
mutation ($input: CreateServiceKeyInput!) {
  done: createServiceKey(input: $input) {
    secret key { id account { id name service roles } scopes active createdById }
  }
}
"""
ROTATE = """
mutation ($input: RotateServiceKeyInput!) {
  done: rotateServiceKey(input: $input) { secret key { id previousSecretUntil } }
}
"""
REVOKE = "mutation ($id: ID!) { done: revokeServiceKey(serviceKeyId: $id) { active revokedAt } }"
LIST = "{ serviceKeys { id name active lastUsedAt account { name } } }"


async def create(ada: Person, name: str = "Bot", **more: object) -> Answer:
    return await ada.do(CREATE, input={"name": name, "scopes": ["chat:write", "chat:read"], **more})


async def test_key_is_created_rotated_and_revoked(sign_in: SignIn) -> None:
    ada = await sign_in("ada", roles=[Role.ADMIN])
    issued = await create(ada)
    id_ = issued["key"]["id"].removeprefix("ServiceKey:")
    assert issued["secret"].startswith(f"nrk_{id_}_")
    assert issued["key"] == {
        "id": f"ServiceKey:{id_}",
        "account": {"id": id_, "name": "Bot", "service": True, "roles": ["MEMBER", "SERVICE"]},
        "scopes": ["chat:read", "chat:write"],
        "active": True,
        "createdById": "ada",
    }
    rotated = await ada.do(ROTATE, input={"serviceKeyId": id_, "graceS": 60})
    assert rotated["secret"] != issued["secret"]
    assert rotated["key"]["previousSecretUntil"]
    assert (await ada.do(REVOKE, id=id_))["active"] is False
    assert (await ada.run(LIST))["serviceKeys"] == [
        {"id": f"ServiceKey:{id_}", "name": "Bot", "active": False, "lastUsedAt": None, "account": {"name": "Bot"}}
    ]


async def test_key_outlives_its_creator_whom_the_list_names(sign_in: SignIn) -> None:
    ada, boss = [await sign_in(id_, roles=[Role.ADMIN]) for id_ in ("ada", "boss")]
    secret = (await create(ada))["secret"]
    await ada.stores.service_keys.create(command_line_actor("acme"), NewServiceKey("By command", ["chat:read"]))
    await boss.run('mutation { deactivateUser(userId: "ada", reason: "left") { id } }')
    listed = (await boss.run("{ serviceKeys { name active createdBy { id deactivated } } }"))["serviceKeys"]
    assert listed == [
        {"name": "By command", "active": True, "createdBy": None},
        {"name": "Bot", "active": True, "createdBy": {"id": "ada", "deactivated": True}},
    ]
    assert (await ada.stores.key_recognizer.recognize(secret)).account.name == "Bot"


async def test_key_that_former_administrator_saw_needs_rotation(sign_in: SignIn) -> None:
    ada, boss = [await sign_in(id_, roles=[Role.ADMIN]) for id_ in ("ada", "boss")]
    ids = [(await create(ada, name))["key"]["id"] for name in ("Bot", "Mail", "Old")]
    await ada.stores.service_keys.create(command_line_actor("acme"), NewServiceKey("By command", ["chat:read"]))

    async def needing() -> list[str]:
        listed = (await boss.run("{ serviceKeys { name needsRotation } }"))["serviceKeys"]
        return sorted(key["name"] for key in listed if key["needsRotation"])

    assert await needing() == []
    await boss.run('mutation { setUserRoles(userId: "ada", roles: [MEMBER]) { id } }')
    assert await needing() == ["Bot", "Mail", "Old"]
    await boss.do(ROTATE, input={"serviceKeyId": ids[0], "graceS": 60})
    await boss.do(REVOKE, id=ids[2])
    assert await needing() == ["Mail"]
    await boss.run('mutation { setUserRoles(userId: "ada", roles: [ADMIN]) { id } }')
    assert await needing() == []
    await boss.run('mutation { deactivateUser(userId: "ada", reason: "left") { id } }')
    assert await needing() == ["Mail"]


async def test_only_administrators_manage_keys(sign_in: SignIn) -> None:
    ada = await sign_in("ada", roles=[Role.ADMIN])
    id_ = (await create(ada))["key"]["id"]
    for role in (Role.MEMBER, Role.OPERATOR, Role.SERVICE):
        other = await sign_in(f"user-{role.value}", roles=[role])
        assert await other.code(CREATE, input={"name": "Bot", "scopes": ["chat:read"]}) == "FORBIDDEN"
        assert await other.code(ROTATE, input={"serviceKeyId": id_, "graceS": 0}) == "FORBIDDEN"
        assert await other.code(REVOKE, id=id_) == "FORBIDDEN"
        assert await other.code(LIST) == "FORBIDDEN"


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({"scopes": []}, "scopes"),
        ({"scopes": ["chat:read", "chat:fly"]}, "scopes"),
        ({"name": " "}, "name"),
        ({"name": "x" * 101}, "name"),
        ({"expiresAt": "2020-01-01T00:00:00Z"}, "expiresAt"),
        ({"expiresAt": "2030-01-01T00:00:00"}, "expiresAt"),
        ({"idempotencyKey": ""}, "idempotencyKey"),
    ],
)
async def test_invalid_new_key_names_the_field(sign_in: SignIn, values: dict[str, object], field: str) -> None:
    ada = await sign_in("ada", roles=[Role.ADMIN])
    arguments = {"name": "Bot", "scopes": ["chat:read"], **values}
    assert (await ada.fails(CREATE, input=arguments))["field"] == field


@pytest.mark.parametrize("grace_s", [-1, 30 * 86_400 + 1])
async def test_invalid_grace_names_the_field(sign_in: SignIn, grace_s: int) -> None:
    ada = await sign_in("ada", roles=[Role.ADMIN])
    id_ = (await create(ada))["key"]["id"]
    assert (await ada.fails(ROTATE, input={"serviceKeyId": id_, "graceS": grace_s}))["field"] == "graceS"
